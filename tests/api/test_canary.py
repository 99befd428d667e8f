"""X34: a secret that is submitted in a job is found nowhere, on real processes.

The job runs to its end on real Spark into a real PostgreSQL; another fails with an error of the
driver's own.  Then everything that Holdfast has written or answers is searched, in plain and as
base64.
"""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.processes import TOKEN, Cluster
from tests.conformance.servers import Postgres

CANARY = "canary-7d1e0a-never-to-be-seen"
FORMS = [CANARY, urllib.parse.quote(CANARY), *(
    base64.b64encode(b"x" * shift + CANARY.encode()).decode()[4:-4] for shift in range(3)
)]  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("canary"))
    made.environ["HOLDFAST_TOMBSTONE_S"] = "30"
    made.master()
    made.worker()
    yield made
    made.end()


def job(port: int, table: str) -> str:
    return f"""
env {{ job.name = "has secrets", job.mode = BATCH, job.retry.times = 0
  spark.example.password = "${{DB_PASSWORD}}" }}
source {{ FakeSource {{ plugin_output = f, row.num = 5, schema {{ fields {{ id = bigint }} }} }} }}
sink {{ Jdbc {{ plugin_input = f, user = postgres, password = "${{DB_PASSWORD}}"
  url = "jdbc:postgresql://127.0.0.1:{port}/postgres?sslpassword=${{DB_PASSWORD}}"
  table = "{table}" }} }}
"""


def answers(cluster: Cluster) -> Iterator[tuple[str, bytes]]:
    """Everything that any path answers to an admin."""
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask(path: str) -> bytes:
        request = urllib.request.Request(cluster.urls[0] + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return bytes(error.read())

    document = json.loads(ask("/openapi.json"))
    for path, methods in document["paths"].items():
        if "get" not in methods or path == "/api/changes":
            continue
        for name in ("good", "bad"):
            filled = path.replace("{jobId}", name).replace("{state}", "FAILED")
            filled = filled.replace("{role}", "sink").replace("{name}", f"job-{name}.log")
            yield filled, ask(filled)


def test_x34_a_canary_is_found_nowhere(cluster: Cluster) -> None:
    database = Postgres()
    try:
        database.start()
        found = [*ran(cluster, database.port), *shown(cluster), *written(cluster)]
        assert not found + processes_with(FORMS), found
    finally:
        database.remove()


def ran(cluster: Cluster, port: int) -> Iterator[str]:
    """Run the two jobs; yield where the command itself shows the secret."""
    (cluster.folder / "good.conf").write_text(job(port, "public.rows"))
    (cluster.folder / "bad.conf").write_text(job(1, "public.rows"))
    for name, code in (("good", 0), ("bad", 1)):
        done = cluster.ask("submit", f"{name}.conf", "--set-job-id", name, DB_PASSWORD=CANARY)
        assert done.returncode == code, done.stderr + cluster.said()
        if has(done.stdout + done.stderr):
            yield f"the output of submit {name}"


def shown(cluster: Cluster) -> Iterator[str]:
    """Yield where an answer shows the secret."""
    checked = 0
    for path, body in answers(cluster):
        checked += 1
        if has(body.decode(errors="replace")):
            yield path
    assert checked > 60
    for verb in ("status", "explain", "logs"):
        text = cluster.ask(verb, "bad").stdout
        assert text
        if has(text):
            yield f"holdfast {verb}"


def written(cluster: Cluster) -> Iterator[str]:
    """Yield the files of store, blobs, logs and audit that hold the secret."""
    own = {cluster.folder / "good.conf", cluster.folder / "bad.conf"}
    files = [p for p in cluster.folder.rglob("*") if p.is_file() and p not in own]
    assert any("store.db" in p.name for p in files) and any("audit" in p.name for p in files)
    for file in files:
        if has(file.read_bytes().decode("latin-1")):
            yield str(file)


def has(text: str) -> bool:
    return any(form in text for form in FORMS)


def processes_with(forms: list[str]) -> list[str]:
    """The processes of this machine whose command line shows a secret."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if any(form.encode() in line for form in forms):
            found.append(f"process {folder.name}")
    return found
