"""What a job starts from that continues a former incarnation: which position each stage gets.

Everything is checked before anything of the new incarnation is written, and nothing of the former
one is used up.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.job import TERMINAL
from holdfast.core.job import JobRecord as Record
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.core.stage_match import Matching, match
from holdfast.errors import JobFileError, SourceLocation, Unavailable, UserError
from holdfast.master import checkpoint_content
from holdfast.master.accept import JobStart, check_line, contents_of, told
from holdfast.master.checkpoint_content import CheckpointContent
from holdfast.master.leader import Leader
from holdfast.master.looks import LookRequests
from holdfast.master.restored_checkpoints import Move, resumed, transplant
from holdfast.model.job import JobPlan, Role, Stage
from holdfast.model.tree import Block, Items, Node
from holdfast.plan.plugins import identities
from holdfast.plan.promises import keyed
from holdfast.plan.record import JobSource, decode_spec, encode_spec
from holdfast.wire.messages import Looked

LOOK_S = 5.0
"""How long a restore waits for what a worker sees; its client waits longer for its answer."""

SAVE_MODES = frozenset({"schema_save_mode", "data_save_mode", "custom_sql", "mode"})
"""What says what a sink does to a table that is there.  It applies to none that a state knows."""

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


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a worker opens before a job is restored: the places that its job file names.

    A wrong password or a table that lacks a column is reported while the job is as it was.
    """

    leader: Leader
    looks: LookRequests
    job: str
    spec: JobSource
    planned: JobPlan
    moved: Mapping[str, str]
    """Old stages and the new ones that continue them."""

    async def warnings(self, token: str) -> list[str]:
        """Have a worker look; return what to warn of.

        Raises UserError for what a sink, or a source that is new, cannot work with.  A source that
        continues may not need what is missing, so that is a warning.  So is a look that cannot be
        had: a job may be restored before its workers are there.
        """
        request = hashlib.sha256(f"restore {self.job} {token}".encode()).hexdigest()[:32]
        spec, tags = encode_spec(self._as_it_will_be()), dict(self.planned.tag_filter)
        try:
            self.looks.begin(self.leader, request, spec, tags, LOOK_S)
        except (UserError, Unavailable) as error:
            return [f"No worker has opened what job {self.job} names: {error}"]
        look = await self.looks.wait(request, LOOK_S + 1)
        if not look.answer.done():
            return [f"Worker {look.worker} has not opened all that job {self.job} names in time."]
        return self._told(look.answer.result())

    def _told(self, found: Looked) -> list[str]:
        going_on = {s.place for s in self._kept(Role.SOURCE)}
        warned: list[str] = []
        wrong: list[str] = []
        for file, line, column, said in found.mistakes:
            place = SourceLocation(file, line, column)
            (warned if place in going_on else wrong).append(f"{place}: {said}")
        if wrong:
            listed = "".join(f"\n- {one}" for one in wrong)
            raise UserError(
                f"Job {self.job} cannot be restored with this job file, as worker"
                f" {found.worker} sees it. Nothing was started, and what the job has left"
                f" stays.{listed}",
                code="restore.places",
            )
        if found.failure:
            warned.append(f"Worker {found.worker} has not opened all: {found.failure}.")
        return warned

    def _kept(self, role: Role) -> list[Stage]:
        names = set(self.moved.values())
        return [s for s in self.planned.stages if s.role is role and s.id in names]

    def _as_it_will_be(self) -> JobSource:
        """Return the job file without the save modes that will not apply any more."""
        known = {stage.options.place for stage in self._kept(Role.SINK)}
        tree = _without(self.spec.tree, known)
        assert isinstance(tree, Block)
        return replace(self.spec, tree=tree)


def _without(node: Node, known: Set[SourceLocation]) -> Node:
    """Return a tree without the save modes of blocks that stand at some places."""
    match node:
        case Block(entries, place):
            kept = [e for e in entries if place not in known or e.key not in SAVE_MODES]
            return Block(tuple(replace(e, node=_without(e.node, known)) for e in kept), place)
        case Items(items, place):
            return Items(tuple(_without(item, known) for item in items), place)
    return node
