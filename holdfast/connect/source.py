"""The contract for sources.

A source is asked what to read next (`plan`), then to read it (`read`).  The answer to `plan` is
data, so a slice that failed is read again from the same words, by any process.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from holdfast.connect.plugin import O, Plugin
from holdfast.connect.rows import Tables
from holdfast.model.job import Mode, Role
from holdfast.model.table import Table
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Slice:
    """What one Spark job reads, and where the source reads next once it has.

    Both are plain data: they are stored in checkpoints and sent between processes.
    """

    content: Plain
    after: Plain


class NoSlice(Enum):
    """Why `plan` has no slice."""

    IDLE = "idle"
    """Nothing now; ask again later."""

    END = "end"
    """Nothing ever again: the source is bounded and has been read whole."""


IDLE, END = NoSlice.IDLE, NoSlice.END


@dataclass(frozen=True, slots=True)
class Budget:
    """How much the next slice may take.  `rows` None: all there is, in one go.

    `now_s` is a clock that never goes back, for sources that pace themselves.
    """

    rows: int | None
    now_s: float


class Source(Plugin[O]):
    """Where rows come from.

    A source that is read in one go overrides `read` alone.
    """

    role: ClassVar[Role] = Role.SOURCE

    repeatable: ClassVar[bool] = False
    """Whether reading a slice again gives the very same rows and costs little.

    The rows of any other source are kept by Spark where several consumers read them, so that all
    see the same.
    """

    @classmethod
    def basis(cls, options: O, mode: Mode, parallelism: int) -> Mapping[str, Plain]:
        """Return all that the meaning of a position depends on, by option.

        A job may be restored with a changed file.  Where anything of this has changed, a position
        from before would be taken for another place, and the restore is refused.
        """
        return {"parallelism": parallelism}

    def tables(self) -> tuple[Table, ...] | None:
        """Return the tables this source yields as far as its options tell; None: ask Spark.

        Called for plans and checks, without Spark, any number of times.
        """
        return None

    def plan(self, position: Plain, budget: Budget) -> Slice | NoSlice:
        """Return what to read next, or why there is nothing.

        `position` is None at first and then the `after` of the last slice that was kept, perhaps
        read back from a checkpoint by another process.  May be called again with a position it
        has seen before.
        """
        return Slice(None, "read") if position is None else END

    def read(self, spark: "SparkSession", content: Plain) -> Tables:
        """Return the rows of a slice, lazily: no Spark job runs before the sink writes."""
        raise NotImplementedError

    def look(self, spark: "SparkSession") -> Iterator[str]:
        """Open what this source reads; yield a sentence for each problem that a job would meet.

        Each sentence says what mends the problem.  An error that is raised is one more problem,
        the last one.  Called once by `holdfast check --connect`, which calls `plan` and `read`
        besides: what these raise need not be said here.
        """
        yield from ()

    def read_carefully(self) -> bool:
        """Called when Spark met a malformed row; return whether to read the slice once more.

        For a source that reads on trust at first, because that is faster.
        """
        return False

    def committed(self, position: Plain) -> None:
        """Called when everything before `position` is visible; a log may be released up to there.

        At least once for the last position of a commit; not for each one.
        """
