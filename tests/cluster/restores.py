"""A job of every source, whose file changes from life to life, and what its sinks must show."""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.api.views import Accepted
from holdfast.errors import UserError
from tests.cluster.processes import Cluster

STEP = 1_000_000
ROUNDS = 60


@dataclass(frozen=True)
class Part:
    """A source and the sinks that it feeds.  `number` tells its rows from all others'."""

    kind: str
    number: int
    name: str
    outs: tuple[str, ...]
    parallelism: int = 1
    options: str = ""
    sink_options: str = ""
    rows: int = 2 * ROUNDS
    folder: str = ""

    @property
    def plugin(self) -> str:
        """The plug-in of its source."""
        return self.kind if self.kind in ("FakeSource", "Spark") else "LocalFile"

    def source(self, base: Path) -> str:
        """Its source in a job file."""
        head = f"plugin_output = {self.name}, parallelism = {self.parallelism}, {self.options}"
        folder = base / (self.folder or f"in{self.number}")
        if self.kind == "FakeSource":
            return f"""FakeSource {{ {head}
    row.num = {self.rows}, split.num = {ROUNDS}
    auto.increment.enabled = true, auto.increment.start = {self.number * STEP}
    schema {{ table = "t{self.number}", columns = [{{ name = id, type = bigint }}]
      primaryKey {{ name = pk, columnNames = [id] }} }} }}"""
        schema = f'schema {{ table = "t{self.number}", fields {{ id = bigint }} }}'
        if self.kind == "Spark":
            return f'Spark {{ {head} format = json, path = "{folder}", {schema} }}'
        looks = "once" if self.kind == "once" else "continuous"
        return f"""LocalFile {{ {head}
    path = "{folder}", file_format_type = json, discovery_mode = {looks}, {schema} }}"""

    def sinks(self, base: Path) -> list[str]:
        """Its sinks in a job file."""
        return [
            f'LocalFile {{ plugin_input = {self.name}, path = "{base / out}",'
            f" file_format_type = json, data_save_mode = DROP_DATA, {self.sink_options} }}"
            for out in self.outs
        ]


@dataclass(frozen=True)
class Change:
    """What one life's file says otherwise than the one before, and the user's word for it."""

    what: str
    parts: tuple[Part, ...]
    maps: dict[str, str] = field(default_factory=dict)
    allow_dropped: bool = False
    sinks_reversed: bool = False
    interval_ms: int = 400

    def text(self, base: Path) -> str:
        """The job file."""
        sources = "\n  ".join(part.source(base) for part in self.parts)
        sinks = [sink for part in self.parts for sink in part.sinks(base)]
        sinks = sinks[::-1] if self.sinks_reversed else sinks
        joined = "\n  ".join(sinks)
        return f"""env {{ job.mode = STREAMING, checkpoint.interval = {self.interval_ms} }}
source {{
  {sources}
}}
sink {{
  {joined}
}}
"""


def with_part(
    parts: tuple[Part, ...], number: int, change: Callable[[Part], Part]
) -> tuple[Part, ...]:
    """The parts, one of them changed."""
    return tuple(change(part) if part.number == number else part for part in parts)


def renamed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """All datasets under other names."""
    return tuple(replace(part, name=f"{part.name}_anew") for part in parts)


class Story:
    """One job of many lives."""

    def __init__(self, cluster: Cluster, base: Path, job: str) -> None:
        self.cluster = cluster
        self.base = base
        self.job = job
        self.given: Counter[int] = Counter()

    def give(self, part: Part, count: int = 4) -> set[int]:
        """Put a file with new rows where a source reads; return their ids."""
        folder = self.base / (part.folder or f"in{part.number}")
        folder.mkdir(exist_ok=True)
        first = part.number * STEP + self.given[part.number]
        self.given[part.number] += count
        ids = range(first, first + count)
        draft = self.base / "draft"
        draft.write_text("".join(json.dumps({"id": i}) + "\n" for i in ids))
        draft.rename(folder / f"f{self.given[part.number]:06}.json")
        return set(ids)

    def shown(self, out: str) -> Counter[int]:
        """What a reader of a sink's folder sees: each id, and how often."""
        found: Counter[int] = Counter()
        for folder, below, files in os.walk(self.base / out):
            below[:] = [name for name in below if not name.startswith((".", "_"))]
            for name in (n for n in files if n.endswith(".json") and not n.startswith(".")):
                lines = (Path(folder) / name).read_text().splitlines()
                found.update(json.loads(line)["id"] for line in lines)
        return found

    def all_shown(self, outs: tuple[str, ...]) -> Counter[int]:
        """What the folders show that a sink has had."""
        return sum((self.shown(out) for out in outs), Counter())

    def submit(self, change: Change, *, restore: bool) -> Accepted:
        """Submit the file, or go on with it; a tombstone is waited for."""

        def tried() -> Accepted | None:
            try:
                return self.cluster.client.submit_text(
                    change.text(self.base), job_id=self.job, restore=restore, maps=change.maps,
                    allow_dropped=change.allow_dropped,
                )  # fmt: skip
            except UserError as error:
                if error.code == "job.exists":
                    return None
                raise

        accepted = self.cluster.until(f"the job is accepted: {change.what}", tried)
        assert isinstance(accepted, Accepted)
        return accepted

    def stop(self) -> None:
        """Stop the job with a savepoint."""
        self.cluster.client.savepoint(self.job)
        ended = self.cluster.client.wait(self.job, lambda _: None)
        assert ended.status == "SAVEPOINT_DONE", ended.reason
