"""Provoke what goes wrong on a first day, for real, and print the whole of what is said.

A disk that is full, a user without rights, a certificate that nobody trusts, a driver that is not
there: each on the command line, as a user meets it.  `make errors` prints all of it, or one
(ONLY=nul); `test_provoked.py` holds the words to what is promised.
"""

import argparse
import os
import pwd
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from textwrap import indent

from tests.conformance.servers import NOBODY
from tests.proxied import openssl

RUN = ("run", "job.conf", "-q", "--cores", "2")
LIST = ("list", "--patience", "1", "--masters")
FEW = "FakeSource { row.num = 3, schema { fields { id = bigint, name = string } } }"
MANY = "FakeSource { row.num = 200000, schema { fields { id = bigint, name = string } } }"
NUL = (
    'FakeSource { rows = [{ kind = INSERT, fields = [1, "a\\u0000b"] }]'
    ", schema { fields { id = bigint, name = string } } }"
)
CSV = (
    'LocalFile { path = "HERE/in", file_format_type = csv'
    ", schema { fields { id = int, name = string } } }"
)
JDBC = 'Spark { format = jdbc, options { url = "jdbc:mysql://host/db", dbtable = orders'
PRINT = "Console {}"
NOT_OURS = (
    "Traceback", "An error occurred", "org.apache", "java.", "Caused by", "SQLSTATE", "\tat ",
    "== SQL", "SELECT ", "Py4J", "Errno", ".py:", "_ssl.c",
)  # fmt: skip
"""Words of those who raise errors, which mend nothing."""
BY_NAME = "the table is partitioned by name, and a value of it has a NUL character: a␀b."


@dataclass(frozen=True)
class Scene:
    """What is done, and how what is said of it must begin: the root, by the stage at fault."""

    name: str
    said: str
    source: str = FEW
    sink: str = PRINT
    command: tuple[str, ...] = RUN
    nobody: bool = False
    heals: bool = False  #: It may pass by itself, so it is tried again.
    small: bool = False  #: It needs a disk that is full, which root alone can mount.
    environ: tuple[tuple[str, str], ...] = ()

    @property
    def job(self) -> str:
        """The job file; tried again once and at once, where that is done at all."""
        return (
            "env { job.mode = BATCH, job.retry.times = 1, job.retry.interval.seconds = 0 }\n"
            f"source {{ {self.source} }}\nsink {{ {self.sink} }}\n"
        )


SCENES = [
    Scene(
        "full-disk", "Sink[0]-LocalFile (job.conf:3:8): the disk of HERE/disk/out is full: no",
        MANY, 'LocalFile { path = "HERE/disk/out", file_format_type = csv }', heals=True,
        small=True,
    ),
    Scene(
        "full-disk-delta", "Sink[0]-Delta (job.conf:3:8): the disk of HERE/disk/out is full: no",
        MANY, 'Delta { path = "HERE/disk/out" }', heals=True, small=True,
    ),
    Scene(
        "full-home", "the disk of HERE/full/home is full: no space left on device (the disk has",
        environ=(("HOLDFAST_HOME", "HERE/full/home"),), small=True,
    ),
    Scene(
        "home-that-may-not-be-written", "Holdfast cannot create the folder HERE/ours/home/logs:"
        " Permission denied. ", environ=(("HOLDFAST_HOME", "HERE/ours/home"),), nobody=True,
    ),
    Scene(
        "log-that-may-not-be-written", "permission denied: user USER may not use HERE/ours/run.log."
        " ", command=(*RUN, "--log-file", "HERE/ours/run.log"), nobody=True,
    ),
    Scene(
        "may-not-write", "Sink[0]-LocalFile (job.conf:3:8): LocalFile cannot write to"
        " HERE/ours/out: permission denied: user USER may not write to HERE/ours. ",
        sink='LocalFile { path = "HERE/ours/out", file_format_type = csv }',
        nobody=True,
    ),
    Scene(
        "may-not-write-delta", "Sink[0]-Delta (job.conf:3:8): Delta cannot write to HERE/ours/out:"
        " permission denied: user USER may not write to HERE/ours. ",
        sink='Delta { path = "HERE/ours/out" }', nobody=True,
    ),
    Scene(
        "may-not-read", "Source[0]-LocalFile cannot read HERE/ours/in.csv: permission denied: user"
        " USER may not read HERE/ours/in.csv. ", CSV.replace("HERE/in", "HERE/ours/in.csv"),
        'LocalFile { path = "HERE/theirs/out", file_format_type = csv }', nobody=True,
    ),
    Scene(
        "certificate-of-a-database", "Sink[0]-Jdbc (job.conf:3:8): the certificate of postgresql at"
        " 127.0.0.1:PORT/postgres is not trusted",
        sink='Jdbc { url = "jdbc:postgresql://127.0.0.1:PORT/postgres", properties { sslmode ='
        ' verify-ca, sslrootcert = "HERE/other.pem" }, user = postgres, database = postgres,'
        ' table = "public.t" }',
    ),
    Scene(
        "certificate-of-a-reader", "Source[0]-Spark (job.conf:2:10): the server's certificate is"
        " not trusted", 'Spark { format = text, path = "swebhdfs://127.0.0.1:HTTPS/in.txt" }',
    ),
    Scene(
        "certificate-of-a-master", "No master can be trusted. https://127.0.0.1:HTTPS: its"
        " certificate is not trusted", command=("list", "--masters", "https://127.0.0.1:HTTPS"),
        environ=(("HOLDFAST_TLS_CA", "HERE/other.pem"), ("HOLDFAST_TOKEN", "a-token")),
    ),
    Scene(
        "no-driver", "Source[0]-Spark (job.conf:2:10): Spark does not have a JDBC driver for this"
        " url", JDBC + " } }",
    ),
    Scene(
        "no-driver-class", "Source[0]-Spark (job.conf:2:10): Spark does not have the JDBC driver"
        " com.mysql.cj.jdbc.Driver", JDBC + ", driver = com.mysql.cj.jdbc.Driver } }",
    ),
    Scene(
        "no-driver-to-write", "Sink[0]-Spark (job.conf:3:8): Spark does not have a JDBC driver",
        sink=JDBC + " } }",
    ),
    Scene(
        "masters-without-a-scheme", "--masters: masters must be URLs such as http://127.0.0.1:5801,"
        " not 'm1:5801'", command=("list", "--masters", "m1:5801,m2:5801"),
    ),
    Scene(
        "no-master", "No master could answer within 1 s. http://127.0.0.1:1: Connection refused."
        " Start one (holdfast master)", command=(*LIST, "http://127.0.0.1:1"),
        environ=(("HOLDFAST_TOKEN", "a-token"),),
    ),
    Scene(
        "no-master-that-looks", "No master could answer within 1 s. http://127.0.0.1:1: Connection"
        " refused. ", command=("check", "--connect", "--patience", "1", "job.conf"),
        environ=(("HOLDFAST_TOKEN", "a-token"), ("HOLDFAST_MASTERS", "http://127.0.0.1:1")),
    ),
    Scene(
        "masters-with-a-blank", "--masters: masters must be URLs such as http://127.0.0.1:5801, not"
        " 'http://m1:5801 http://m2:5801' (it has a blank",
        command=("submit", "job.conf", "--masters", "http://m1:5801 http://m2:5801"),
    ),
    Scene(
        "masters-of-a-worker", "HOLDFAST_MASTERS: masters must be URLs such as http://",
        command=("worker",), environ=(("HOLDFAST_MASTERS", "http://m1:99999"),),
    ),
    Scene(
        "masters-that-are-no-list", "node.yaml:1:10: masters[0] must be text, not a block.",
        command=("worker", "--config", "node.yaml"),
    ),
    *(
        Scene(
            f"nul-{sink.split()[0].lower()}", f"Sink[0]-{sink.split()[0]} (job.conf:3:8): {said}",
            NUL, sink,
        )
        for said, sink in (
            ("a value of a partition column has a NUL character",
             'LocalFile { file_format_type = parquet, have_partition = true, partition_by = [name],'
             ' path = "OUT" }'),
            (f"Delta cannot write to OUT: {BY_NAME}",
             'Delta { path = "OUT", partition_keys = [name] }'),
            (f"Iceberg cannot write to d.t: {BY_NAME}",
             'Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "OUT" }, namespace = d,'
             " table = t, iceberg.table.partition-keys = name }"),
            (f"Paimon cannot write to OUT/d.db/t: {BY_NAME}",
             'Paimon { warehouse = "OUT", database = d, table = t,'
             ' paimon.table.partition-keys = "name" }'),
        )
    ),
    Scene(
        "unknown-connector", "job.conf:2:10: source Kafka: there is no source of this name. Spark"
        " { format = kafka",
        "Kafka { topic = people }", "LocalFil { path = out, file_format_type = csv }",
    ),
    Scene("a-bad-row", "Source[0]-LocalFile cannot read HERE/in/people.csv, line 2: column id ="
          " 'x' is not an int. ",
          CSV, 'Delta { path = "OUT" }'),
]  # fmt: skip


@dataclass(frozen=True)
class World:
    """A folder in which all of that is: `disk` is full soon, `ours` is closed to user nobody."""

    folder: Path
    names: dict[str, str]

    def provoke(self, scene: Scene) -> subprocess.CompletedProcess[str]:
        """Have it happen; return what was said, standard error with standard output."""
        there = self.folder / scene.name
        there.mkdir()
        (there / "job.conf").write_text(self.filled(scene.job, scene))
        (there / "node.yaml").write_text("masters: { m1: 5801 }\n")
        home = there / "home"
        environ = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        environ |= {"HOLDFAST_HOME": str(home), "HOLDFAST_AOT": "off", "COLUMNS": "200"}
        environ |= {name: self.filled(value, scene) for name, value in scene.environ}
        words = (self.filled(word, scene) for word in scene.command)
        command = [sys.executable, "-m", "holdfast", *words]
        if scene.nobody and os.geteuid() == 0:
            os.chown(there, NOBODY, NOBODY)
            command = as_nobody(command)
        return subprocess.run(
            command, cwd=there, env=environ, text=True, check=False, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wrong(self, scene: Scene, ran: subprocess.CompletedProcess[str]) -> list[str]:
        """Return what is not as it should be: the root first, by the stage at fault, in words."""
        said, found = (
            ran.stdout,
            [f"it says {words!r}" for words in NOT_OURS if words in ran.stdout],
        )
        # Behind how the job ended nothing comes before the cause, and behind that where the log is.
        lines = [line for line in said.splitlines() if line]
        ended = [n for n, line in enumerate(lines) if " is FAILED after " in line]
        cause = "".join(lines[ended[0] + 1 if ended else 0 :][:1]).removeprefix("Error: ")
        checks = {
            "exit code is not 1": ran.returncode == 1,
            "the cause is not first": cause.startswith(self.filled(scene.said, scene)),
            "the cause is no sentence": cause.endswith("."),
            "what heals alone is tried again": ("Retry 1 of 1" in said) == scene.heals,
            "a job that failed names its log": not ended or "The log of job" in lines[-1],
        }
        return found + [what for what, holds in checks.items() if not holds]

    def filled(self, text: str, scene: Scene) -> str:
        """Fill in where things are."""
        user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        for name, value in {
            "USER": user,
            "OUT": str(self.folder / scene.name / "out"),
            **self.names,
        }.items():
            text = text.replace(name, value)
        return text


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Set up what the scenes need."""
    with ExitStack() as cleanup:
        for name in ("in", "ours", "theirs", "disk", "full"):
            (folder / name).mkdir()
        (folder / "in/people.csv").write_text("1,Ann\nx,Bo\n")
        (folder / "ours/in.csv").write_text("1,Ann\n")
        for path, mode in (("ours/in.csv", 0o600), ("ours", 0o755), ("theirs", 0o777)):
            (folder / path).chmod(mode)
        if os.geteuid() == 0:
            for name in ("disk", "full"):
                mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder / name)]
                subprocess.run(mount, check=True)
                unmount = ["umount", "-l", str(folder / name)]
                cleanup.callback(subprocess.run, unmount, check=True)
            (folder / "full/all").write_bytes(b"-" * (1 << 20))
        else:  # its own folders are closed to it in the same way
            (folder / "ours/in.csv").chmod(0)
            (folder / "ours").chmod(0o555)
        for name in ("server", "other"):
            signs_itself(folder, name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        https = cleanup.enter_context(serving(Https(("127.0.0.1", 0), Quiet), context))
        database = cleanup.enter_context(serving(Database(("127.0.0.1", 0), Greeting), context))
        yield World(folder, {"HERE": str(folder), "PORT": str(database), "HTTPS": str(https)})


def signs_itself(folder: Path, name: str) -> None:
    """Make a certificate that signs itself."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / f"{name}.key",
            "-out", folder / f"{name}.pem")  # fmt: skip


class Front(socketserver.ThreadingTCPServer):
    """A server that shows its certificate to whoever comes."""

    daemon_threads = True
    context: ssl.SSLContext

    def handle_error(self, request: object, client_address: object) -> None:
        """Who distrusts it hangs up: nothing to say."""


class Https(Front):
    """One that speaks TLS from the first byte."""

    def get_request(self) -> tuple[ssl.SSLSocket, object]:
        plain, address = self.socket.accept()
        return self.context.wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False
        ), address


class Quiet(SimpleHTTPRequestHandler):
    """It keeps its words to itself."""

    def log_message(self, format: str, *args: object) -> None:
        return


class Database(Front):
    """The door of a PostgreSQL with TLS; nobody who distrusts it gets any further."""


class Greeting(socketserver.BaseRequestHandler):
    """PostgreSQL's answer to a client that asks for TLS: S, and then TLS."""

    server: Database

    def handle(self) -> None:
        assert self.request.recv(8)[4:] == (80877103).to_bytes(4), "the request for TLS"
        self.request.sendall(b"S")
        self.server.context.wrap_socket(self.request, server_side=True).close()


@contextmanager
def serving(server: Front, context: ssl.SSLContext) -> Iterator[int]:
    """Have a server serve; hand over its port."""
    server.context = context
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def as_nobody(command: list[str]) -> list[str]:
    """Have user nobody run it, also where this Python lies in a folder that is closed to him.

    In a mount namespace of its own, an open folder with the Python alone stands in for that one.
    """
    python = Path(sys.base_prefix).resolve()
    closed = next((p for p in reversed(python.parents) if not p.stat().st_mode & 0o001), None)
    lines = ["set -eu"]
    if closed:
        lines += [
            "kept=$(mktemp -d)", f"mount --bind {python} $kept",
            f"mount -t tmpfs -o mode=755 tmpfs {closed}", f"mkdir -p {python}",
            f"mount --move $kept {python}", "rmdir $kept",
        ]  # fmt: skip
    lines.append(f'exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "$@"')
    apart = ["unshare", "--mount", "--propagation", "private"]
    return [*apart, "bash", "-c", "\n".join(lines), "as_nobody", *command]


def main() -> None:
    """Print the whole of what is said of each, and what is wrong with that."""
    found: list[str] = []
    parser = argparse.ArgumentParser()
    parser.add_argument("only", nargs="?", default="")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory(prefix="holdfast-errors-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with world(folder) as there:
            for scene in SCENES:
                if not any(part in scene.name for part in only.split(",")):
                    continue
                ran = there.provoke(scene)
                print(f"--- {scene.name}: holdfast {there.filled(' '.join(scene.command), scene)}")
                if scene.command[:1] == RUN[:1]:
                    print(indent(there.filled(scene.job, scene), "    "), end="")
                print(f"{ran.stdout}--- exit code {ran.returncode}", flush=True)
                wrong = there.wrong(scene, ran)
                found += wrong
                print("".join(f"WRONG: {one}\n" for one in wrong))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
