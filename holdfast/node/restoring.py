"""What a life begins with that goes on from another: whose position is whose, under new names.

Everything is found out before anything of the new life is written, and nothing of the old one is
used up.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.connect.registry import Registry
from holdfast.connect.report import Report
from holdfast.core.commit import Carried
from holdfast.core.job import Job as Record
from holdfast.core.job import JobStatus
from holdfast.core.match import Matching, match
from holdfast.errors import JobFileError, UserError
from holdfast.master import blob
from holdfast.master.blob import Content
from holdfast.master.desk import Desk
from holdfast.master.ports import BlobBad
from holdfast.master.transplant import Move, transplant
from holdfast.model.job import Job
from holdfast.model.tree import Plain
from holdfast.plan.identify import identities
from holdfast.plan.spec import decode_spec


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says of stages that have changed: `--map old=new`, `--allow-dropped`."""

    maps: Mapping[str, str]
    allow_dropped: bool = False


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Whose position is whose, between a life that is over and one that goes on from it."""

    move: Move
    matching: Matching

    def contents(self, saved: Sequence[Content], job: str, incarnation: str) -> dict[int, Content]:
        """Return what each pipeline of the new life starts from."""
        return transplant(saved, self.move, job, incarnation)

    def carried(self, former: Iterable[Carried]) -> tuple[Carried, ...]:
        """Return the watermark and what listeners remember, for each pipeline of the new life."""
        known = {one.pipeline: one for one in former}
        marks = {number: one.watermark for number, one in known.items()}
        return tuple(
            Carried(part.id, self.move.watermark(part, marks), self._remembered(part.id, known))
            for part in self.move.after.pipelines
        )

    def _remembered(self, number: int, known: Mapping[int, Carried]) -> str:
        """Return what the listeners of a pipeline's sinks remember, by the sinks' new names."""
        part = next(p for p in self.move.after.pipelines if p.id == number)
        found: dict[str, Plain] = {}
        for former in (known[n] for n in self.move.feeders(part) if n in known):
            for sink, state in json.loads(former.listeners or "{}").items():
                if self.move.moved.get(sink) in part.stages:
                    found[self.move.moved[sink]] = state
        return json.dumps(dict(sorted(found.items())), separators=(",", ":")) if found else ""


@dataclass(frozen=True, slots=True)
class Begin:
    """What a life begins with: blobs by pipeline, what goes with them, and what is said of it."""

    blobs: Mapping[int, str] = field(default_factory=dict)
    carried: tuple[Carried, ...] = ()
    said: tuple[str, ...] = ()


def go_on(spec: str, planned: Job, registry: Registry, given: Given, about: str) -> GoingOn:
    """Match a planned job with the saved job file of a former life, or refuse with every reason.

    `about` names that life in messages.
    """
    before = _plan_again(spec, registry, about)
    old, new = identities(before, registry), identities(planned, registry)
    matching = match(old, new, given.maps, allow_dropped=given.allow_dropped)
    if matching.mistakes:
        listed = "".join(f"\n- {mistake}" for mistake in matching.mistakes)
        raise UserError(
            f"The job file does not fit what {about} has saved, and nothing was started.{listed}",
            code="restore.mismatch",
        )
    return GoingOn(Move(before, planned, matching.moved), matching)


def _plan_again(spec: str, registry: Registry, about: str) -> Job:
    """Plan the job file of a former life.  It passed every check when it was submitted."""
    try:
        return replace(decode_spec(spec), lenient=True).job(registry, Report(lenient=True))
    except JobFileError as error:
        raise UserError(
            f"The job file that {about} ran with cannot be planned by this version of Holdfast, so"
            " it is not known which position belongs to which source. Restore it with the version"
            f" it ran with. What is wrong with it:\n{error}",
            code="restore.unplanned",
        ) from error


def savepoint_of(job_id: str, former: Sequence[Record]) -> Record:
    """Return the last life of a job, which has left a savepoint."""
    if not former:
        raise UserError(f"There is no job {job_id} to restore.", code="job.unknown")
    last = former[0]
    if last.status is not JobStatus.SAVEPOINT_DONE or not last.saved:
        raise UserError(
            f"Job {job_id} ended as {last.status} and left no savepoint. Submit it anew, or"
            " restore one that was stopped with: holdfast savepoint.",
            code="job.no_savepoint",
        )
    return last


async def begin(desk: Desk, former: Record, going: GoingOn, incarnation: str) -> Begin:
    """Store what a new life begins with.  A savepoint that cannot be read is refused."""
    ports = desk.ports
    try:
        saved = [blob.read(await ports.blobs.get(name)) for _, name in former.saved]
    except BlobBad as error:
        raise UserError(
            f"The savepoint of job {former.id} is damaged, and nothing was started. {error}",
            code="restore.damaged",
        ) from error
    blobs: dict[int, str] = {}
    for number, content in going.contents(saved, former.id, incarnation).items():
        name = f"{blob.prefix(former.id, incarnation)}{number:04}/{content.number:08}-{desk.term}"
        await _store(desk, name, blob.pack(content))
        blobs[number] = name
    return Begin(blobs, going.carried(former.carried), going.matching.said)


async def _store(desk: Desk, name: str, content: bytes) -> None:
    await desk.ports.durable("blob.put", lambda: desk.ports.blobs.put(name, content))
