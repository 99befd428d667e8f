"""What a job starts from that continues a former incarnation: which position each stage gets.

Everything is checked before anything of the new incarnation is written, and nothing of the former
one is used up.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.job import TERMINAL
from holdfast.core.job import JobRecord as Record
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.core.stage_match import Matching, match
from holdfast.errors import JobFileError, UserError
from holdfast.master import checkpoint_content
from holdfast.master.accept import JobStart, check_line, contents_of, told
from holdfast.master.checkpoint_content import CheckpointContent
from holdfast.master.leader import Leader
from holdfast.master.restored_checkpoints import Move, resumed, transplant
from holdfast.model.job import JobPlan
from holdfast.plan.plugins import identities
from holdfast.plan.promises import keyed
from holdfast.plan.record import decode_spec

BY_KEY = "Every sink replaces rows by their keys, so none can appear twice."


@dataclass(frozen=True, slots=True)
class RestoreChoices:
    """What the user says of stages that have changed: `--map old=new`, `--allow-dropped`; and of
    rows that a later incarnation has made visible: `--write-again`."""

    maps: Mapping[str, str]
    allow_dropped: bool = False
    write_again: bool = False


@dataclass(frozen=True, slots=True)
class RestoredPositions:
    """Which position belongs to which stage, between a former incarnation and the new one."""

    move: Move
    matching: Matching

    def contents(
        self, saved: Sequence[CheckpointContent], job: str, incarnation: str
    ) -> dict[int, CheckpointContent]:
        """Return what each pipeline of the new incarnation starts from."""
        return transplant(saved, self.move, job, incarnation)


def go_on(
    spec: str, planned: JobPlan, registry: Registry, given: RestoreChoices, about: str
) -> RestoredPositions:
    """Match a planned job with the job file of a former incarnation, or refuse with every reason.

    `about` names that incarnation in messages.
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
    return RestoredPositions(Move(before, planned, matching.moved), matching)


def _plan_again(spec: str, registry: Registry, about: str) -> JobPlan:
    """Plan the job file of a former incarnation.  It passed every check when it was submitted."""
    try:
        return decode_spec(spec).job(registry, CheckReport(settled=True))
    except JobFileError as error:
        raise UserError(
            f"The job file that {about} ran with cannot be planned by this version of Holdfast, so"
            " it is not known which position belongs to which source. Restore it with the version"
            f" it ran with. What is wrong with it:\n{error}",
            code="restore.unplanned",
        ) from error


def chosen(leader: Leader, job_id: str, number: int, lives: Sequence[Record]) -> Saved:
    """Return the saved state to continue from: the latest of a job, or the one with this number.

    `lives` are all known incarnations of the job, the present one first.
    """
    found = leader.vault.of(job_id)
    for saved in found:
        if number in (0, saved.life):
            return saved
    if found:
        there = ", ".join(str(saved.life) for saved in found)
        raise UserError(
            f"Job {job_id} has no saved state {number}; it has {there}.", code="saved.unknown"
        )
    if not lives:
        raise UserError(f"There is no job {job_id} to restore.", code="job.unknown")
    last = lives[0]
    how = f"ended as {last.status} and" if last.status in TERMINAL else f"is {last.status} and has"
    raise UserError(
        f"Job {job_id} {how} left nothing to continue from. A job leaves a saved state when it is"
        " stopped with a savepoint (holdfast savepoint), and when it fails or is cancelled after"
        " its first checkpoint, for as long as savepoint.retained.seconds says. Submit it again.",
        code="job.no_savepoint",
    )


def undone(leader: Leader, job_id: str) -> list[str]:
    """Return the warnings for a job whose former incarnations left commits unfinished."""
    return [
        f"Incarnation {saved.life} of job {job_id} ended with commits that are complete and not"
        " visible. This one reads everything from the beginning. A commit of that incarnation that"
        " was in progress may still become visible, its save modes included. To finish those"
        f" commits first: holdfast restart {job_id}."
        for saved in leader.vault.of(job_id)
        if any(part.waiting for part in saved.parts)
    ]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A saved state, the job file it was saved with, and the planned job that continues it."""

    leader: Leader
    registry: Registry
    saved: Saved
    spec: str
    planned: JobPlan

    async def begin(
        self, given: RestoreChoices, job: Record, pipelines: tuple[PipelineRecord, ...]
    ) -> tuple[tuple[Record, tuple[PipelineRecord, ...]], JobStart, list[str]]:
        """Return the records of the new incarnation, what it starts with, and what to report of it.

        Nothing is written, and whatever does not fit is refused.
        """
        saved, about = self.saved, f"job {self.saved.job}"
        kept = self.leader.jobs.get(job.id)
        if kept and not kept.terminal:
            raise UserError(kept.in_use(), code="job.exists")
        by_key = not given.write_again and keyed(self.planned, self.registry)
        again = given.write_again or by_key
        check_line(self.leader.vault, saved, write_again=again)
        going = await asyncio.to_thread(go_on, self.spec, self.planned, self.registry, given, about)
        contents = await contents_of(self.leader.desk, saved)
        begun = resumed(saved, going.move.moved, pipelines)
        made = going.contents(list(contents.values()), job.id, job.incarnation)
        packed = tuple(
            (number, checkpoint_content.pack(content)) for number, content in made.items()
        )
        start, said = JobStart(saved, packed, again), list(going.matching.said)
        past = self.leader.vault.past(saved) if by_key else []
        if past:
            more = "; ".join(told(heir) for heir in past)
            said.append(f"{BY_KEY} Rows that are visible are written again: {more}.")
        return (job, begun), start, said


def incarnation_of(token: str) -> str:
    """Return a name for an incarnation that continues another: the same for the same submit, as
    what it starts with is stored before its records."""
    return hashlib.sha256(f"life {token}".encode()).hexdigest()[:20]
