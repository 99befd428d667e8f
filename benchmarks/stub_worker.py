"""Workers without Spark, many in a process: they take tasks, answer barriers at once, move nothing.

They use the links, messages and heartbeats of real workers, so that a master meets the traffic that
it would meet; only the threads that run slices are missing.  Each answer holds a position for each
source and one committable for the task's sink, which names so many files and is carried until a
complete checkpoint holds it, as real ones are.  While a file named `withhold` is there, barriers
are taken and not answered; once it is gone, all are answered at once.

    python -m benchmarks.stub_worker CREW.json
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from holdfast.core.gather import Counts, StagedCommittable, TaskAck, WrittenRows
from holdfast.core.task import WorkerId
from holdfast.model.secret import Secret
from holdfast.process.links import Dialer
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    DeployTask,
    Heartbeat,
    StopTask,
    TaskKey,
    TaskReport,
    ToLeader,
    ToWorker,
)

ROWS = 100
"""What each task says it has read and written between two barriers."""


class Member(msgspec.Struct):
    """One worker, and what it holds from the start: as (key, attempt)."""

    name: str
    incarnation: str
    slots: int
    held: list[tuple[TaskKey, int]]


class CrewFile(msgspec.Struct):
    """All that the process needs to know.  `sources` names those of a task, by the task's id."""

    masters: list[str]
    join_token: str
    beat_s: float
    sources: dict[str, list[str]]
    sink: str
    members: list[Member]
    files: int = 1
    withhold: str = ""


@dataclass
class Running:
    """One attempt as its worker knows it."""

    attempt: int
    progress: int = 0
    epochs: int = 0
    carried: list[StagedCommittable] = field(default_factory=list)
    answered: TaskAck | None = None


class Gate:
    """Where answers wait while they are withheld; how many do stands in a file beside."""

    def __init__(self, file: str) -> None:
        self._file = Path(file) if file else None
        self._answers: dict[tuple[str, TaskKey], Callable[[], None]] = {}

    def pass_on(self, worker: str, barrier: Barrier, answer: Callable[[], None]) -> None:
        """Answer now, or once answers are no longer withheld; of a task only the latest."""
        if self._file and self._file.exists():
            self._answers[worker, barrier.key] = answer
        else:
            answer()

    async def watch(self) -> None:
        """Let answers go when they may, and tell how many wait."""
        while self._file:
            if self._answers:
                if not self._file.exists():
                    answers, self._answers = self._answers, {}
                    for answer in answers.values():
                        answer()
                self._file.with_suffix(".count").write_text(str(len(self._answers)))
            await asyncio.sleep(0.05)


class StubWorker:
    """One worker.  `tell` sends to every master."""

    def __init__(
        self, member: Member, crew: CrewFile, gate: Gate, tell: Callable[[ToLeader], None]
    ) -> None:
        self.place = WorkerId(member.name, member.incarnation)
        self.slots = member.slots
        self.tasks = {key: Running(attempt) for key, attempt in member.held}
        self.term = 0
        self.sequence = 0
        self._crew = crew
        self._gate = gate
        self._tell = tell

    async def run(self) -> None:
        """Beat, until cancelled."""
        while True:
            self._tell(self.hello())
            await asyncio.sleep(self._crew.beat_s)

    def hello(self) -> Heartbeat:
        """Return everything this worker is and holds."""
        self.sequence += 1
        held = []
        for key, running in self.tasks.items():
            running.progress += 1
            rows = ROWS * running.epochs
            held.append(
                TaskReport(key, running.attempt, None, running.progress, read=rows, written=rows)
            )
        return Heartbeat(
            self.place.worker, self.place.incarnation, self.sequence, self.term, self.slots, (),
            tuple(held),
        )  # fmt: skip

    def hear(self, message: ToWorker) -> None:
        """Take in a leader's message; a lower term than the highest seen is refused."""
        if message.term < self.term:
            return
        self.term = message.term
        match message:
            case DeployTask(_, key, attempt):
                known = self.tasks.get(key)
                if known is None or known.attempt < attempt:
                    self.tasks[key] = Running(attempt)
                    self._tell(self.hello())
            case StopTask(_, key, attempt):
                known = self.tasks.get(key)
                if known and known.attempt <= attempt:
                    del self.tasks[key]
            case Barrier(_, key, attempt):
                known = self.tasks.get(key)
                if known and known.attempt == attempt:
                    running, barrier = known, message
                    self._gate.pass_on(
                        self.place.worker, message, lambda: self._answer(running, barrier)
                    )

    def _answer(self, running: Running, barrier: Barrier) -> None:
        self._tell(BarrierAck(self.term, barrier.key, self._acked(running, barrier)))

    def _acked(self, running: Running, barrier: Barrier) -> TaskAck:
        if running.answered and running.answered.number == barrier.number:
            return running.answered  # asked again
        task, sink = barrier.key.task, self._crew.sink
        running.epochs += 1
        rows = ROWS * running.epochs
        running.carried = [s for s in running.carried if s.created > barrier.complete]
        content = {
            "version": 1, "table": "t", "rows": ROWS, "bytes": 1_000,
            "content": {"files": [
                f"{task}-a{running.attempt}-s{running.epochs}-{n:05}.parquet"
                for n in range(self._crew.files)
            ]},
        }  # fmt: skip
        running.carried.append(StagedCommittable(barrier.number, sink, content))  # type: ignore[arg-type]
        running.answered = TaskAck(
            barrier.number, task, running.attempt, self.place,
            tuple((source, {"next": rows}) for source in self._crew.sources[task]),
            tuple(running.carried), ended=False,
            counts=Counts(rows, (WrittenRows(sink, "t", rows, 10 * rows),)),
        )  # fmt: skip
        return running.answered


def _quiet(_message: str, **_about: object) -> None:
    """Hear of links that come and go: a master that is killed is part of the measurement."""


async def _work(crew: CrewFile) -> None:
    token, gate = Secret(crew.join_token), Gate(crew.withhold)
    doing = [gate.watch()]
    for member in crew.members:
        dialers: list[Dialer] = []
        worker = StubWorker(member, crew, gate, lambda m, to=dialers: to[0].tell(m))  # type: ignore[misc]
        dialers.append(Dialer(crew.masters, token, worker.hello, worker.hear, _quiet))
        doing += [dialers[0].run(), worker.run()]
        # Heartbeats of real workers do not come all at once either.
        await asyncio.sleep(crew.beat_s / len(crew.members))
    await asyncio.gather(*doing)


if __name__ == "__main__":
    asyncio.run(_work(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=CrewFile)))
