"""What sources, transforms and sinks have in common: a name, options and where they run."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_args

from holdfast.errors import Cancelled, UserError
from holdfast.model.job import Mode, Role

O = TypeVar("O")  # noqa: E741

PAUSE_STEP_S = 0.1
"""How long a pause may overlook a cancel."""


@dataclass(frozen=True, slots=True)
class PluginContext:
    """Where a plug-in runs.  The same for every attempt of one incarnation of a job."""

    job_id: str
    job_name: str
    stage: str
    mode: Mode
    parallelism: int = 1
    checkpointing: bool = False
    allow_python: bool = False
    output: str | None = None
    """The name the job file gives this stage's rows (`plugin_output`)."""

    batches: bool = True
    """Whether rows may travel as Arrow batches (`Rows.batches`)."""

    life: str = ""
    """Which incarnation of which job it is (`life_of`); empty where none runs."""


def problems_of(*asks: Callable[[], object]) -> Iterator[str]:
    """Call everything and yield what is refused, so that all problems are reported at once."""
    for ask in asks:
        try:
            ask()
        except UserError as error:
            yield from error.sentences


class Plugin(Generic[O]):
    """A source, transform or sink.  `class Csv(Sink[CsvOptions])` says which options it takes."""

    name: ClassVar[str]
    """The name job files use; upper and lower case do not matter."""

    notes: ClassVar[str] = ""
    """More for its page in the documentation than options can say."""

    example: ClassVar[str] = ""
    """The few lines that a first job needs, as they stand in its block: for its page and
    `holdfast init`.  They pass `holdfast check`."""

    refused: ClassVar[str] = ""
    """Where set, a job that names this plug-in is refused with this sentence."""

    stands_in: ClassVar[Mapping[str, str]] = {}
    """Names of connectors that are not here, in small letters, and the options with which this
    one does their work: for those who move a job file over."""

    needs_python: ClassVar[bool] = False
    """Whether it runs code out of the job file, which only the operator may allow."""

    placeless: ClassVar[bool] = False
    """Whether none of its options says where it reads or writes, as with a terminal.

    Any other that declares no option as its identity is known by all of them.
    """

    role: ClassVar[Role]
    options_class: ClassVar[type[Any]]

    def __init__(self, options: O, context: PluginContext) -> None:
        self.options = options
        self.context = context
        self.cancelled: Callable[[], bool] = lambda: False
        """Says whether the job is being cancelled; the engine replaces it."""

    @classmethod
    def lacks(cls, options: O, spark: Mapping[str, str]) -> Iterable[str]:
        """Return a sentence for each thing a job with these Spark settings would miss.

        Called while a job is planned, without Spark.
        """
        return ()

    def check_libraries(self) -> None:
        """Raise UserError that names the extra if a library this plug-in needs is not installed.

        For checks: nothing is loaded, nothing is opened.
        """

    def pause(self, seconds: float) -> None:
        """Wait, but raise Cancelled soon after the job is cancelled."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.cancelled():
                raise Cancelled(f"{self.context.stage} was cancelled.")
            time.sleep(min(left, PAUSE_STEP_S))

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in getattr(cls, "__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type):
                    cls.options_class = argument
