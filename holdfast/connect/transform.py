"""The contract for transforms: DataFrame in, DataFrame out, nothing runs."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.connect.plugin import O, Plugin
from holdfast.connect.rows import Rows, Tables
from holdfast.model.job import Role
from holdfast.model.table import Table


class Transform(Plugin[O]):
    """A change to rows on their way.

    Most transforms see one table at a time and override `apply`; the engine picks the tables
    (`table_match_regex`, `table_transform`), builds a transform with the options meant for each,
    and passes the others through.  Two results with one table path are united.
    """

    role: ClassVar[Role] = Role.TRANSFORM

    per_table: ClassVar[bool] = True
    """Whether `table_match_regex` and `table_transform` apply."""

    @classmethod
    def joins(cls, options: O, inputs: tuple[str, ...]) -> bool:
        """Say whether rows of several inputs meet here, so that Spark must plan them together."""
        return False

    @classmethod
    def whole(cls, options: O) -> bool:
        """Say whether all rows must be seen at once, as for a sum: such a job cannot be sliced."""
        return False

    def apply(self, rows: Rows) -> Rows:
        """Return the changed table.  Hidden columns (`rows.hidden`) must be carried along."""
        raise NotImplementedError

    def foresee(self, table: Table) -> Table | None:
        """Return what `apply` makes of a table, as far as it is known without Spark.

        None: only Spark can tell.  A column whose type only Spark can tell has the type UNKNOWN,
        on the way in and out.  Raises the UserError that `apply` would.  For checks, any number of
        times.
        """
        return None

    def foresee_join(self, inputs: Mapping[str, Sequence[Table]]) -> Table | None:
        """Return what `join` makes of tables, as `foresee` does of one."""
        return None

    def join(self, inputs: Mapping[str, Tables]) -> Tables:
        """Return the tables joined from several inputs, by name; called where `joins` is true."""
        raise NotImplementedError
