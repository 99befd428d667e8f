"""What an incarnation left unfinished: commits that are complete and not surely visible.

A cancel by force leaves some, and so may a failure.  They stay in the job's record, for people;
what the next incarnation needs to finish them is in the saved state.
"""

from dataclasses import dataclass

from holdfast.core.checkpoint import Completed
from holdfast.core.commit import CommitStatus
from holdfast.core.former_commits import Former
from holdfast.core.pipeline import PipelineRecord


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The unfinished commits of one pipeline.

    `waiting` are complete and not on record as visible.  `begun`: the first of them may have been
    under way, so that some of it may show, or show later.  `unheard` is visible, and its listeners
    may not have run.  `life` (job/incarnation) staged them, "" if this one did.
    """

    pipeline: int
    sinks: tuple[str, ...]
    waiting: tuple[Completed, ...] = ()
    begun: bool = False
    unheard: Completed | None = None
    life: str = ""

    @property
    def all(self) -> tuple[Completed, ...]:
        """All of them, in order."""
        return (*((self.unheard,) if self.unheard else ()), *self.waiting)

    @property
    def words(self) -> str:
        """Say it in sentences."""
        said = []
        whose = f"pipeline {self.pipeline}" + (" of the former incarnation" if self.life else "")
        if self.unheard:
            which = f"Commit {self.unheard.number} of {whose}"
            said.append(f"{which} is visible, and its listeners may not have run.")
        if self.waiting:
            first, last = self.waiting[0].number, self.waiting[-1].number
            which = f"Commit {first}" if first == last else f"Commits {first} to {last}"
            verb = "is" if first == last else "are"
            under = f", and {first} may have been under way" if self.begun else ""
            said.append(f"{which} of {whose} {verb} abandoned{under}.")
        return " ".join(said)


def abandoned(pipelines: tuple[PipelineRecord, ...]) -> tuple[Abandoned, ...]:
    """Return what pipelines that are over have not finished, what was left to them first."""
    former = tuple(_former(f) for p in pipelines for f in p.formers if not f.settled)
    own = tuple(_of(p) for p in pipelines if p.commits.status is not CommitStatus.SETTLED)
    return former + own


def _former(former: Former) -> Abandoned:
    sinks = tuple(old for old, _ in former.names)
    begun = former.unheard is None
    life = f"{former.job}/{former.incarnation}"
    return Abandoned(former.pipeline, sinks, former.waiting, begun, former.unheard, life)


def _of(pipeline: PipelineRecord) -> Abandoned:
    commits = pipeline.commits
    deaf = commits.status is CommitStatus.LISTENING
    kept = pipeline.checkpoints.kept
    unheard = next((c for c in kept if deaf and c.number == commits.through), None)
    return Abandoned(pipeline.number, pipeline.sinks, commits.waiting, not deaf, unheard)
