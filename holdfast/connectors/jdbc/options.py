"""What a job file may say to the Jdbc sink."""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Literal

from holdfast.connect.options import option, options
from holdfast.connect.placeholders import has_placeholder
from holdfast.connectors.jdbc.address import Address, read_url, same_server
from holdfast.connectors.jdbc.query import Insert, read_insert
from holdfast.connectors.save_modes import SchemaSaveMode
from holdfast.model.secret import Secret

SECRET_SETTINGS = ("password", "user")


class JdbcDataSaveMode(StrEnum):
    """What to do about rows that are there before the first one."""

    DROP_DATA = "DROP_DATA"
    APPEND_DATA = "APPEND_DATA"
    CUSTOM_PROCESSING = "CUSTOM_PROCESSING"
    ERROR_WHEN_DATA_EXISTS = "ERROR_WHEN_DATA_EXISTS"


@options
class JdbcSinkOptions:
    """Options of the Jdbc sink."""

    #: Where the database is: `jdbc:postgresql://host:5432/database`, `jdbc:mysql://...` or
    #: `jdbc:mariadb://...`.  For PostgreSQL, `?currentSchema=name` names the schema that the
    #: ledger and the staging tables are in.  What only Java's driver understands is ignored.
    url: str = option(identity=same_server)
    #: Ignored: no Java driver is needed.
    driver: str | None = None
    user: str | None = option(None, aliases=("username",))  #: Who connects.
    password: Secret | None = None  #: The password of `user`.
    #: An INSERT with `?` for the columns of the stream, in their order, or `:name`.  Without it,
    #: statements are built from `table` and `primary_keys`.
    query: str | None = option(None, identity=True)
    #: Ignored: what the server is, it says itself.
    compatible_mode: str | None = None
    #: The database of the table: for MySQL any one of the server, for PostgreSQL that of `url`.
    database: str | None = option(None, identity=True)
    #: The table to write, for PostgreSQL perhaps as `schema.table`; may hold `${table_name}` and
    #: its like.
    table: str | None = option(None, identity=True)
    #: The columns that tell rows apart; without it, those of the stream's primary or unique key.
    primary_keys: list[str] | None = None
    #: Ignored: both databases can insert or update in one statement.
    support_upsert_by_query_primary_key_exist: bool = False
    #: How many seconds a connection may take to open.
    connection_check_timeout_sec: int = option(30, at_least=1)
    #: Ignored: what fails for a while is tried again by the engine, from the last checkpoint.
    max_retries: int = option(0, at_least=0)
    #: The most rows of one INSERT into a staging table of MySQL; PostgreSQL takes a stream.
    batch_size: int = option(1000, at_least=1)
    #: Makes no difference: rows arrive once either way, see below.
    is_exactly_once: bool = False
    #: Make statements from `table` and `primary_keys`.  Implied where there is no `query`.
    generate_sink_sql: bool = False
    #: Ignored: no XA transactions are needed.
    xa_data_source_class_name: str | None = None
    #: How often a commit whose connection broke is tried before the engine takes over.
    max_commit_attempts: int = option(3, at_least=1)
    #: How many seconds a statement of a commit may take; no limit if less than 1.
    transaction_timeout_sec: int = -1
    #: Ignored: each commit is one transaction.
    auto_commit: bool = True
    #: How column names are spelled in the table: as in the stream, or in one case.
    field_ide: Literal["ORIGINAL", "UPPERCASE", "LOWERCASE"] = "ORIGINAL"
    #: More settings of the connection, under the names that the URL has for them.
    properties: dict[str, Secret] | None = None
    #: What the job's first commit does to a table that is there; readers see the old until then.
    schema_save_mode: SchemaSaveMode = SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST
    #: What the job's first commit does to rows that are there; they are shown until then.
    data_save_mode: JdbcDataSaveMode = JdbcDataSaveMode.APPEND_DATA
    #: What CUSTOM_PROCESSING runs in the job's first commit. It must not end the transaction; on
    #: MySQL and MariaDB it must bear to be run twice.
    custom_sql: str | None = None
    #: Update rows whose key is there.  If false, a table that only grows is inserted into, and a
    #: key that is there already fails the job.
    enable_upsert: bool = True
    #: Makes no difference: staging tables of PostgreSQL are always loaded by COPY, those of MySQL
    #: by INSERTs of many rows.
    use_copy_statement: bool = False
    #: Whether a table that is created gets its primary key and unique indexes.
    create_index: bool = True

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell: (option, sentence)."""
        try:
            address = read_url(self.url)
        except ValueError as error:
            yield "url", str(error)
            return
        if not address.database and (not self.database or has_placeholder(self.database)):
            yield "url", "url names no database. Add it: jdbc:...//host:port/database."
        yield from self._statement_problems(address)
        if self.data_save_mode is JdbcDataSaveMode.CUSTOM_PROCESSING and not self.custom_sql:
            yield "data_save_mode", "data_save_mode = CUSTOM_PROCESSING needs custom_sql."

    def _statement_problems(self, address: Address) -> Iterator[tuple[str, str]]:
        if self.query is None:
            if not (self.table or self.database or self.generate_sink_sql):
                yield "", "give 'table' (and perhaps 'primary_keys'), or an INSERT as 'query'."
            return
        if self.generated:
            return
        try:
            read_insert(self.query, address.kind)
        except ValueError as error:
            yield "query", str(error)

    @property
    def generated(self) -> bool:
        """Whether statements are built from the table's columns; `query` gives way to this."""
        return self.query is None or self.generate_sink_sql

    @property
    def insert(self) -> Insert | None:
        """The statement that the user wrote, or None."""
        if self.generated:
            return None
        assert self.query is not None
        return read_insert(self.query, self.address.kind)

    @property
    def address(self) -> Address:
        """Where the database is and who asks, with everything secret in it."""
        read = read_url(self.url)
        extra = {k: v.reveal() for k, v in (self.properties or {}).items()}
        settings = {**read.settings, **extra}
        bare = replace(read, settings=settings)
        return replace(
            bare,
            database=read.database or self.database or "",
            user=self.user or bare.setting("user") or "",
            password=self.password.reveal() if self.password else bare.setting("password") or "",
            settings={k: v for k, v in settings.items() if k.lower() not in SECRET_SETTINGS},
            timeout_s=self.connection_check_timeout_sec,
        )

    def spelled(self, name: str) -> str:
        """Return a column's name as `field_ide` spells it."""
        match self.field_ide:
            case "UPPERCASE":
                return name.upper()
            case "LOWERCASE":
                return name.lower()
        return name
