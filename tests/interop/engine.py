"""The reference engines, in a process and an environment of their own: one Spark for the whole run.

Python's packages are pinned in `pins.txt`; the jars come by Maven, each with its checksum.  Both
are kept in `.interop`, which git ignores.  What cannot be had ends the run, in words.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".interop"

JARS = {
    "io.delta:delta-spark_4.1_2.13:4.4.0":
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta:delta-storage:4.4.0":
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0":
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    "org.apache.paimon:paimon-bundle:1.4.2":
        "85a1587409e6c044b46eb20370a46ecd288576b8bc7aadf6b0432a4f2370f5d1",
}  # fmt: skip


class Engine:
    """A process that reads and writes tables as their own projects do."""

    def __init__(self, folder: Path) -> None:
        python, jars = _environment(), [str(_jar(name, said)) for name, said in JARS.items()]
        self._log = (folder / "reference.log").open("w")
        command = [str(python), str(HERE / "reference.py"), str(folder), ",".join(jars)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
            cwd=folder,
        )  # fmt: skip

    def ask(self, do: str, **given: Any) -> Any:
        """Have the engines do something; return what came of it, or raise AssertionError."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"The reference engine has ended. {self._log.name} says why.")
        said = json.loads(line)
        if "error" in said:
            raise AssertionError(f"{do} {given}: {said['error']}")
        return said["found"]

    def sql(self, *statements: str) -> list[list[Any]]:
        """Have Spark run statements; return the rows of the last one."""
        found: list[list[Any]] = self.ask("sql", statements=statements)
        return found

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


def _environment() -> Path:
    """Return the Python of the engines; the first time, this downloads them."""
    home, pins = CACHE / "python", (HERE / "pins.txt").read_text()
    python, installed = home / "bin" / "python", home / "pins.txt"
    if installed.exists() and installed.read_text() == pins:
        return python
    print("Making the environment of the reference engines ...", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    _run([sys.executable, "-m", "venv", "--without-pip", str(home)], "make an environment")
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python), "-r"]
    _run([*install, str(HERE / "pins.txt")], "get the packages of tests/interop/pins.txt")
    installed.write_text(pins)  # last: one that was not finished is made anew
    return python


def _jar(name: str, checksum: str) -> Path:
    """Return a jar; the first time, Maven fetches it."""
    _, artifact, version = name.split(":")
    path = CACHE / "jars" / f"{artifact}-{version}.jar"
    if not path.exists():
        if shutil.which("mvn") is None:
            raise SystemExit(f"make interop needs {name}, which Maven fetches. Install mvn.")
        copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={name}"]
        _run([*copy, f"-DoutputDirectory={path.parent}"], f"fetch {name}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != checksum:
        path.unlink()
        raise SystemExit(f"{name} has the checksum {found}, and {checksum} was expected.")
    return path


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=_made(CACHE))
    if done.returncode:
        tail = (done.stdout + done.stderr)[-2000:]
        raise SystemExit(f"make interop cannot {what}:\n{tail}")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
