"""A checked job and its parts: stages, and how they are cut into pipelines and tasks."""

from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import SourceLocation
from holdfast.model.tree import Block


class Mode(StrEnum):
    """BATCH ends by itself; STREAMING runs until it is stopped."""

    BATCH = "BATCH"
    STREAMING = "STREAMING"


class Role(StrEnum):
    """What a stage does with rows."""

    SOURCE = "source"
    TRANSFORM = "transform"
    SINK = "sink"


class Guarantee(StrEnum):
    """What a sink promises about each row, whichever process is killed."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class EventTime:
    """Which column of a source says when a row happened, and how late rows may come.

    `own`: the source itself names the column, so that it must have it.
    """

    column: str
    delay_ms: int
    idle_s: float
    own: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """One plug-in of a job: which, with what options, fed by which stages.

    `id` is stable across restarts and shown everywhere: `Source[0]-FakeSource`.  `options` is the
    tree below the plug-in's name; the worker builds the plug-in from it.
    """

    id: str
    role: Role
    plugin: str
    options: Block
    inputs: tuple[str, ...]
    output: str | None
    parallelism: int
    place: SourceLocation
    event_time: EventTime | None = None


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What one worker runs: the largest part of a pipeline that Spark must plan together.

    Stage ids, sources first, each after what feeds it.  A sink or transform that two tasks share
    is in both.  A `whole` task cannot be sliced: something in it needs all rows at once.  A task
    takes one slot for each reader that runs in parallel.
    """

    id: str
    stages: tuple[str, ...]
    whole: bool = False
    slots: int = 1


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """One connected part of a job's graph: the unit of checkpoint and commit."""

    id: int
    tasks: tuple[TaskPlan, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """The ids of all stages of this pipeline, each once."""
        return tuple(dict.fromkeys(s for task in self.tasks for s in task.stages))


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job file that passed every check, ready to run."""

    name: str
    mode: Mode
    stages: tuple[Stage, ...]
    pipelines: tuple[PipelinePlan, ...]
    parallelism: int
    checkpoint_interval_ms: int | None
    checkpoint_timeout_ms: int | None
    retry_times: int
    retry_interval_s: int
    rows_per_second: int | None
    bytes_per_second: int | None
    tag_filter: tuple[tuple[str, str], ...]
    spark: tuple[tuple[str, str], ...]
    file: str
    saved_retained_s: float = 2_592_000.0

    def stage(self, stage_id: str) -> Stage:
        """Return the stage with this id."""
        return next(s for s in self.stages if s.id == stage_id)

    def of(self, role: Role) -> tuple[Stage, ...]:
        """Return the stages of one role, in the order of the file."""
        return tuple(s for s in self.stages if s.role == role)
