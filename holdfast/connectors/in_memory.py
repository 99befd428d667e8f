"""InMemory: count rows and drop them, and fail on request.

SeaTunnel's own tests use a sink of this name to see what a job does when its sink breaks; so do
ours.  A failure that the job may survive by trying again is raised as Unavailable.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from holdfast.connect.options import option, options
from holdfast.connect.rows import Tables
from holdfast.connect.sink import (
    ANYBODY,
    CommitId,
    Committable,
    Opening,
    Sink,
    Staging,
    WritePreview,
)
from holdfast.errors import Unavailable, UserError
from holdfast.model.job import Guarantee
from holdfast.model.table import Table

SLEEP_S = 5.0


@options
class InMemoryOptions:
    """Which faults to inject."""

    #: Fail each write.
    throw_exception: bool = False
    #: Run out of memory at each write.
    throw_out_of_memory: bool = False
    #: Wait 5 seconds in each write, before rows are counted.
    writer_sleep: bool = False
    #: Wait 5 seconds before each checkpoint.
    checkpoint_sleep: bool = False
    #: Fail each commit.
    throw_exception_of_committer: bool = False
    #: Fail the first attempt's write with the first of these messages, the second's with the next.
    throw_runtime_exception_list: list[str] | None = None
    #: Fail at the start unless this, once its placeholders are filled in, is assert_options_value.
    assert_options_key: str | None = None
    #: What assert_options_key must turn out to be.
    assert_options_value: str | None = None
    #: Accepted and not needed: rows are dropped.
    schema_save_mode: Literal[
        "RECREATE_SCHEMA", "CREATE_SCHEMA_WHEN_NOT_EXIST", "ERROR_WHEN_SCHEMA_NOT_EXIST", "IGNORE"
    ] = option("CREATE_SCHEMA_WHEN_NOT_EXIST")
    #: Accepted and not needed: rows are dropped.
    data_save_mode: Literal[
        "DROP_DATA", "APPEND_DATA", "CUSTOM_PROCESSING", "ERROR_WHEN_DATA_EXISTS"
    ] = option("APPEND_DATA")


class InMemory(Sink[InMemoryOptions]):
    """Count rows and drop them."""

    name = "InMemory"
    placeless = True
    guarantee: ClassVar[Guarantee] = Guarantee.AT_LEAST_ONCE
    because = "rows are counted as they come"

    @classmethod
    def writing(cls, options: InMemoryOptions, table: Table) -> WritePreview:
        """Say that nothing stays."""
        return WritePreview(how="rows are counted and dropped")

    def refuse(self, table: Table) -> None:
        """Raise UserError where placeholders do not come out as the job file says."""
        filled = self.options_for(table)
        key, value = filled.assert_options_key, filled.assert_options_value
        if key is not None and key != value:
            raise UserError(
                f"Sink InMemory: assert_options_key is '{key}' for table {table.path}, not"
                f" '{value}' as assert_options_value says.",
                code="sink.assert_failed",
            )

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Check that placeholders come out as the job file says."""
        for table in tables:
            self.refuse(table)
        return ()

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Count the rows, and fail where the options say so."""
        if self.options.writer_sleep:
            self.pause(SLEEP_S)
        if self.options.throw_out_of_memory:
            raise MemoryError("Sink InMemory runs out of memory, as throw_out_of_memory says.")
        messages = self.options.throw_runtime_exception_list
        if messages:
            message = messages[min(staging.attempt, len(messages)) - 1]
            raise Unavailable(f"Sink InMemory: {message}", code="sink.injected")
        found = [Committable(1, str(r.table.path), r.frame.count(), 0, None) for r in tables]
        if self.options.checkpoint_sleep:
            self.pause(SLEEP_S)
        if self.options.throw_exception:
            raise Unavailable("Sink InMemory: write failed.", code="sink.injected")
        return found

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Do nothing, or fail where the options say so."""
        if self.options.throw_exception_of_committer:
            raise Unavailable("Sink InMemory: commit failed.", code="sink.injected")
