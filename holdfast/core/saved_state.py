"""What an ended incarnation leaves to be restored: a saved state, and unfinished commits.

A savepoint, a failure and a cancel leave the same thing, written with the terminal status: where
each pipeline would continue, and what is complete and not visible yet.  It stays until somebody
removes it or its time is over, whatever happens to the incarnations that start from it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from holdfast.core.checkpoint import Completed, Totals
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord


class SavedKind(StrEnum):
    """Why an incarnation left a saved state."""

    SAVEPOINT = "savepoint"
    FAILED = "failed"
    CANCELED = "canceled"


KINDS = {
    JobStatus.SAVEPOINT_DONE: SavedKind.SAVEPOINT,
    JobStatus.FAILED: SavedKind.FAILED,
    JobStatus.CANCELED: SavedKind.CANCELED,
}


@dataclass(frozen=True, slots=True)
class SavedPart:
    """Where one pipeline continues.  `blob` "": from the start of its input.

    `number` is the checkpoint's, 0 for the state that it began from itself.  `through` is the
    last commit that is visible.  `waiting` are complete and not visible; `unheard` is visible, and
    its listeners have not run.
    """

    pipeline: int
    blob: str
    number: int
    through: int
    watermark: int | None
    listeners: str
    waiting: tuple[Completed, ...] = ()
    unheard: Completed | None = None
    sources: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether a commit has yet to be finished, or its listeners to be run."""
        return bool(self.waiting) or self.unheard is not None

    @property
    def blobs(self) -> tuple[str, ...]:
        """The checkpoints that a restore needs."""
        more = (*self.waiting, *((self.unheard,) if self.unheard else ()))
        return tuple(dict.fromkeys(b for b in (self.blob, *(c.blob for c in more)) if b))


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved state.  `life` is the number that people use to name it within its job.

    `origin` names the saved state that its incarnation began from, "" for none.  `made_s`
    is the age of the cluster (`led_s`) when it was saved; `ended_s` is a date, for people.
    `removed`: it is on its way out, and nothing may start from it.
    """

    record_name: ClassVar[str] = "saved"

    job: str
    incarnation: str
    life: int
    kind: SavedKind
    name: str
    spec: str
    parts: tuple[SavedPart, ...]
    totals: Totals
    ended_s: float
    made_s: float
    retained_s: float
    origin: str = ""
    removed: bool = False

    @property
    def id(self) -> str:
        """What names it in records."""
        return saved_id(self.job, self.incarnation)

    @property
    def unfinished(self) -> bool:
        """Whether it has commits to finish: what is staged for them must stay."""
        return any(p.unfinished for p in self.parts)

    @property
    def blobs(self) -> frozenset[str]:
        """The checkpoints that a restore needs."""
        return frozenset(b for p in self.parts for b in p.blobs)


def saved_id(job: str, incarnation: str) -> str:
    """Return what names the saved state of an incarnation in records."""
    return f"{job}/{incarnation}"


def leave(job: JobRecord, pipelines: tuple[PipelineRecord, ...], made_s: float) -> Saved | None:
    """Return what an incarnation leaves at its end.

    None if it is FINISHED, or has nothing complete of its own: then what it began from, if it began
    from something, is still where to continue.
    """
    kind = KINDS.get(job.status)
    parts = tuple(_part(p) for p in sorted(pipelines, key=lambda p: p.number))
    own = any(p.number or p.unfinished for p in parts)
    if kind is None or not own:
        return None
    return Saved(
        job.id, job.incarnation, job.life, kind, job.name, job.spec, parts, job.totals,
        job.ended_s, made_s, job.retained_s, job.origin,
    )  # fmt: skip


def _part(pipeline: PipelineRecord) -> SavedPart:
    latest, commits = pipeline.checkpoints.latest, pipeline.commits
    kept = pipeline.checkpoints.kept
    deaf = commits.listened < commits.through
    unheard = next((c for c in kept if deaf and c.number == commits.through), None)
    return SavedPart(
        pipeline.number,
        latest.blob if latest else pipeline.restore or "",
        latest.number if latest else 0,
        commits.through,
        commits.watermark,
        commits.listeners,
        commits.waiting,
        unheard,
        tuple(s for t in pipeline.tasks for s in t.sources),
        pipeline.sinks,
    )
