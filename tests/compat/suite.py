"""What each job file of a suite needs before it can run, and how it should end.

A suite is a directory with `expect.json`, `jobs/` and the data its jobs read under `seatunnel/`.
Some files say something about the machine they run on (few slots, worker tags, files another job
left behind); it is set up here as the file implies.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from holdfast.connect.placeholders import RESERVED

LATER = re.compile(r"now|uuid|transactionId|[kv]\d+|" + "|".join(RESERVED))
"""Variables that a sink fills in, so nobody passes them."""

FEW_SLOTS = 2
LEFT_BEHIND = {
    # The job that writes these 100 rows stays with the cluster tests of the suite's authors.
    "sink_file_text_to_assert.conf": (
        "/tmp/seatunnel/config/checkpoint-batch-enable-test-resources/sinkfile", 100,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One job file and what is expected of it."""

    path: Path
    group: str
    streaming: bool
    variables: dict[str, str]
    exit: str
    status: str | None

    @property
    def name(self) -> str:
        """The file's name, for set-up rules and the table."""
        return self.path.name

    @property
    def slots(self) -> int | None:
        """How many slots the cluster of this file has; None: as many as it wants."""
        return FEW_SLOTS if "slot_not_enough" in self.name else None

    @property
    def tagged(self) -> bool:
        """Whether a worker carries the tags that the job asks for."""
        return "not_match" not in self.name


def load_cases(suite: Path) -> list[Case]:
    """Return every job file of a suite, in the order of `expect.json`."""
    rows = json.loads((suite / "expect.json").read_text())
    return [_case(suite, row) for row in rows]


def _case(suite: Path, row: dict[str, object]) -> Case:
    variables = row.get("variables")
    path = suite / str(row["job"])
    streaming = row.get("mode") == "STREAMING"
    named_error = "error" in path.name.lower() or row.get("expected_status") == "FAILED"
    expected = row.get("expected_exit") or ("!=0" if named_error else "==0")
    return Case(
        path=path,
        group=str(row["group"]),
        streaming=streaming and expected == "==0",
        variables=_values(variables if isinstance(variables, list) else []),
        exit=str(expected),
        status=str(row["expected_status"]) if row.get("expected_status") else None,
    )


def _values(names: list[str]) -> dict[str, str]:
    """Choose a sensible value for each variable that has no default and no later owner."""
    wanted = [n for n in names if ":" not in n and not LATER.fullmatch(n)]
    return {name: _value(name.lower()) for name in wanted}


def _value(name: str) -> str:
    if "mode" in name:
        return "BATCH"
    if "num" in name or "count" in name:
        return "20"
    if "parallelism" in name:
        return "2"
    return "holdfast"


def set_up(case: Case, scratch: Path, data: Path) -> Path:
    """Copy a job file with its paths moved below `scratch`; return the copy.

    `/tmp` is fresh for every job.  `/seatunnel` is shared, because some jobs read what others
    wrote there.
    """
    own = scratch / "own"
    shutil.rmtree(own, ignore_errors=True)
    (own / "tmp").mkdir(parents=True)
    text = case.path.read_text()
    text = text.replace("/tmp/", f"{own}/tmp/").replace("/seatunnel/read/", f"{data}/read/")
    text = re.sub(r'(["\'])/seatunnel/', rf"\1{data}/", text)
    for path in re.findall(rf"path\s*=\s*\"({own}/[^\"$]+)\"", text):
        if not Path(path).exists() and _reads(text, path):
            Path(path).mkdir(parents=True)
    if case.name in LEFT_BEHIND:
        where, rows = LEFT_BEHIND[case.name]
        folder = own / where.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "left.txt").write_text("".join(f"row {n}\n" for n in range(rows)))
    copy = own / case.name
    copy.write_text(text)
    return copy


def _reads(text: str, path: str) -> bool:
    """Say whether a path stands in the part of the file that comes before its sinks."""
    return text.find(path) < (text.find("sink") if "sink" in text else len(text))


def deferred(case: Case, data: Path) -> bool:
    """Say whether a job reads what another job of the suite has to write first."""
    named = re.findall(r'"/seatunnel/(read/[^"]+)"', case.path.read_text().partition("sink")[0])
    return any(not (data / path).exists() for path in named)
