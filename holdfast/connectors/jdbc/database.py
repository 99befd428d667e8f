"""What the sink asks of a database server, whichever it is."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.connectors.jdbc.address import Address
from holdfast.connectors.jdbc.trust import CERTIFICATE
from holdfast.errors import HoldfastError
from holdfast.model.table import Column

if TYPE_CHECKING:
    import pyarrow as pa

STAGE = "holdfast_stage_"
"""How the names of staging tables begin."""

LEDGER = "holdfast_commit"
"""The table with the last commit of each user."""

IDLE_S = 10
"""How long a transaction of a commit may lie idle.  A leader that is frozen inside one holds locks
that the next leader needs, so the server ends it."""

LOCK_S = 30
"""How long a commit waits for another one; then the engine asks again."""

DROP_S = 5
"""How long a drop waits for a task that still writes."""

REFUSED = "sink.refused"
"""The code of what the server understood and will not do."""

UNREACHED = "Check host and port in url, that the server runs, and that no firewall is in the way."
"""What to do where no server answers."""

Name = tuple[str, ...]
"""A table: perhaps its schema or database, and its name."""


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column as the database has it."""

    name: str
    type: str
    nullable: bool
    filled: bool
    """Whether the database has a value for it where a row brings none."""

    computed: bool
    """Whether a row may not bring a value for it."""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A staging table and the whole name of the try it belongs to."""

    table: str
    owner: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job will do in a database, and so must be allowed to.

    `ledger`: whether the ledger is there already; without a `table`, that and staging is all.
    """

    ledger: bool
    table: Name | None = None
    there: bool = False
    """Whether the table is there."""

    rights: tuple[str, ...] = ()
    """What is done to its rows: INSERT, SELECT, UPDATE, DELETE."""

    columns: tuple[str, ...] = ()
    """Its columns that rows are written to."""

    empties: bool = False
    """Whether the rows that are there are removed."""

    makes: bool = False
    """Whether the table is created, or recreated."""


@dataclass(frozen=True, slots=True)
class Loading:
    """What one task loads rows into: columns and types of a staging table, and rows a statement."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: int
    apart: bool = False
    """Whether each task makes a table of its own for its chunk."""


class Session:
    """One connection.  Each statement is its own transaction, unless BEGIN is run."""

    def __init__(self, database: "Database", connection: Any) -> None:
        self.database = database
        self.connection = connection
        self.affected = 0
        """How many rows the last statement has changed."""

    def run(self, statement: str, values: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows.  Values are for `%s`; without any, % is plain text."""
        with self.database.explained():
            cursor = self.connection.cursor()
            cursor.execute(statement, values)
            self.affected = cursor.rowcount
            return list(cursor.fetchall()) if cursor.description else []

    def close(self) -> None:
        """Hang up; the server rolls back what is under way."""
        self.connection.close()


@dataclass(frozen=True)
class Database:
    """A database server.  Plain data, sent to Spark's workers; each session opens a connection."""

    address: Address
    statement_s: int = 0
    idle_s: int = IDLE_S

    json_type: ClassVar[str]

    upserts_read: ClassVar[bool] = False
    """Whether an INSERT that may update needs the right to read the table."""

    ddl_commits: ClassVar[bool] = False
    """Whether statements like DROP TABLE end a transaction."""

    chunks_apart: ClassVar[bool] = False
    """Whether chunks that are tables of their own are cheaper to load and to commit."""

    def connect(self, purpose: str) -> Any:
        """Return a connection in autocommit mode."""
        raise NotImplementedError

    def check_libraries(self) -> None:
        """Raise UserError that names the extra if a library is not here."""
        raise NotImplementedError

    def mend(self, error: HoldfastError) -> str:
        """Return what a person can do where no session opens, for the end of a sentence."""
        raise NotImplementedError

    def missing_rights(self, session: Session, needs: "Needs") -> Iterator[str]:
        """Yield a sentence, with the statement that mends it, for each right that is missing."""
        raise NotImplementedError

    def explain(self, error: Exception) -> HoldfastError:
        """Return what a driver's error means: the user's fault, or worth another try."""
        raise NotImplementedError

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that the driver raises."""
        raise NotImplementedError

    def quote(self, name: str) -> str:
        """Return an identifier as SQL writes it."""
        raise NotImplementedError

    def type_of(self, column: Column, key: bool) -> str:
        """Return the type of a new column."""
        raise NotImplementedError

    def find_columns(self, session: Session, table: Name) -> list[FoundColumn]:
        """Return the columns of a table; none if it does not exist."""
        raise NotImplementedError

    def unique_keys(self, session: Session, table: Name) -> list[frozenset[str]]:
        """Return the sets of columns that no two rows share."""
        raise NotImplementedError

    def create_around(self, session: Session, table: Name) -> None:
        """Make the schema or database of a table if it is missing."""
        raise NotImplementedError

    def clear(self, table: str) -> str:
        """Return the statement that empties a table inside a transaction."""
        raise NotImplementedError

    def check_table(self, session: Session, table: Name) -> None:
        """Raise UserError for a table whose changes cannot be rolled back."""

    @contextmanager
    def alone(self, session: Session) -> Iterator[None]:
        """Keep other jobs from preparing tables meanwhile."""
        raise NotImplementedError
        yield

    def run_script(self, session: Session, script: str) -> None:
        """Run what a user wrote, perhaps several statements."""
        raise NotImplementedError

    def create_ledger(self, session: Session) -> None:
        """Make the ledger if it is missing."""
        raise NotImplementedError

    def open_ledger(self, session: Session, key: str, user: str) -> None:
        """Make sure that a user has a row in the ledger, with a number below all others."""
        raise NotImplementedError

    def create_stage(self, session: Session, staged: StagedTable, columns: Sequence[str]) -> None:
        """Make a staging table that remembers its owner and survives a crash of the server."""
        raise NotImplementedError

    def find_stages(self, session: Session) -> list[StagedTable]:
        """Return every staging table."""
        raise NotImplementedError

    def drop_stage(self, session: Session, table: str) -> None:
        """Remove a staging table, also if an abandoned task still writes to it."""
        raise NotImplementedError

    def load(self, loading: Loading, batches: Iterator["pa.RecordBatch"], chunk: int = 0) -> int:
        """Load batches, at least one, in one transaction; return how many bytes that took."""
        with self.session("stage") as session:
            session.run("BEGIN")
            if loading.apart:
                loading = self.open_chunk(session, loading, chunk)
            first = next(batches)
            loader = self.loader(session, loading, first.schema)
            sent = loader.load(itertools.chain((first,), batches))
            session.run("COMMIT")
        return sent

    def open_chunk(self, session: Session, loading: Loading, chunk: int) -> Loading:
        """Make the table of a chunk, and return how it is loaded; a transaction has begun.

        That must fail once the staging table is gone, and hold up the process that drops it.
        """
        raise NotImplementedError

    def loader(self, session: Session, loading: Loading, schema: "pa.Schema") -> "Loader":
        """Return what loads batches into a staging table; a transaction has begun."""
        raise NotImplementedError

    def delete_using(self, target: str, rows: str, on: str) -> str:
        """Return a DELETE of rows `t` of a target for which a row `d` of a query matches."""
        raise NotImplementedError

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return what follows an INSERT ... SELECT to update rows whose key is there.

        All names are quoted.
        """
        raise NotImplementedError

    def table(self, name: Name) -> str:
        """Return a table's name as SQL writes it."""
        return ".".join(self.quote(part) for part in name)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the driver raises into our errors."""
        try:
            yield
        except self.errors as error:
            raise self.explain(error) from error

    def open(self, purpose: str) -> Session:
        """Open a connection, which the caller closes.  Where nobody gets in, say what mends it."""
        try:
            with self.explained():
                return Session(self, self.connect(purpose))
        except HoldfastError as error:
            if error.code == CERTIFICATE:  # it says so itself
                raise
            said = f"{str(error).rstrip('.? ')}. {self.mend(error)}"
            raise type(error)(said, code=error.code, **error.about) from error

    @contextmanager
    def session(self, purpose: str) -> Iterator[Session]:
        """Open a connection for a while."""
        session = self.open(purpose)
        try:
            yield session
        finally:
            session.close()


class Loader:
    """Loads batches of Arrow rows into a staging table."""

    def load(self, batches: Iterator["pa.RecordBatch"]) -> int:
        """Send rows; return how many bytes that took.  The caller commits."""
        raise NotImplementedError
