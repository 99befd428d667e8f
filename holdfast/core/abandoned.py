"""What a life had not finished at its end: commits that are complete and not surely visible.

A cancel by force leaves some, and so may a failure.  They stay in the job's record, for people;
what the next life needs to finish them is in the saved state.
"""

from dataclasses import dataclass

from holdfast.core.checkpoint import Completed
from holdfast.core.commit import CommitStatus
from holdfast.core.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The unfinished commits of one pipeline.

    `waiting` are complete and not on record as visible.  `begun`: the first of them may have been
    under way, so that some of it may show, or show later.  `unheard` is visible, and its listeners
    may not have run.
    """

    pipeline: int
    sinks: tuple[str, ...]
    waiting: tuple[Completed, ...] = ()
    begun: bool = False
    unheard: Completed | None = None

    @property
    def words(self) -> str:
        """Say it in sentences."""
        said = []
        if self.unheard:
            which = f"Commit {self.unheard.number} of pipeline {self.pipeline}"
            said.append(f"{which} is visible, and its listeners may not have run.")
        if self.waiting:
            first, last = self.waiting[0].number, self.waiting[-1].number
            which = f"Commit {first}" if first == last else f"Commits {first} to {last}"
            verb = "is" if first == last else "are"
            under = f", and {first} may have been under way" if self.begun else ""
            said.append(f"{which} of pipeline {self.pipeline} {verb} abandoned{under}.")
        return " ".join(said)


def abandoned(pipelines: tuple[Pipeline, ...]) -> tuple[Abandoned, ...]:
    """Return what pipelines that are over have not finished."""
    return tuple(_of(p) for p in pipelines if p.commits.status is not CommitStatus.SETTLED)


def _of(pipeline: Pipeline) -> Abandoned:
    commits = pipeline.commits
    deaf = commits.status is CommitStatus.LISTENING
    kept = pipeline.checkpoints.kept
    unheard = next((c for c in kept if deaf and c.number == commits.through), None)
    return Abandoned(pipeline.number, pipeline.sinks, commits.waiting, not deaf, unheard)
