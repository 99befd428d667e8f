"""PostgreSQL, through psycopg: staging by COPY, upserts by ON CONFLICT.

The server takes its own format at half the cost of text, and a library writes it at a tenth.  That
writes a column as the type that Arrow has, so it is used only where the table has that type.
"""

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as arrow_csv

from holdfast.connect.library import load_library, need_library
from holdfast.connectors.jdbc.database import (
    DROP_S,
    LEDGER,
    LOCK_S,
    REFUSED,
    STAGE,
    UNREACHED,
    Database,
    FoundColumn,
    Loader,
    Loading,
    Name,
    Needs,
    Session,
    StagedTable,
)
from holdfast.connectors.jdbc.rights import missing_rights
from holdfast.connectors.jdbc.staged_rows import chunk_table
from holdfast.connectors.jdbc.trust import untrusted
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.model.table import Column
from holdfast.model.types import Type

NATURAL: dict[str, tuple[pa.DataType, ...]] = {
    "bigint": (pa.int64(),),
    "integer": (pa.int32(),),
    "smallint": (pa.int16(), pa.int8()),
    "real": (pa.float32(),),
    "double precision": (pa.float64(),),
    "boolean": (pa.bool_(),),
    "date": (pa.date32(),),
    "timestamp": (pa.timestamp("us"),),
    "timestamp without time zone": (pa.timestamp("us"),),
    "timestamptz": (pa.timestamp("us", "UTC"),),
    "timestamp with time zone": (pa.timestamp("us", "UTC"),),
    "text": (pa.string(),),
    "varchar": (pa.string(),),
    "character varying": (pa.string(),),
    "character": (pa.string(),),
}
"""What the columns of a table are in Arrow, where the server reads them as they are."""

KEEP_SYNC = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
"""Staged rows of a durable checkpoint must survive a crash of the server."""

_SIZE = re.compile(r"\([\d, ]*\)")

PREPARING = 7_512_466_031
"""An advisory lock: of several tasks that start together, one makes tables at a time."""

WORDS_OF_LIBPQ = re.compile(
    r"^connection failed: |FATAL: +| Is the server running on that host and accepting TCP/IP"
    r" connections\?"
)
"""What libpq says beside the cause, and we say in our own words."""

USERS_FAULT = ("0A", "22", "23", "28", "2B", "3D", "3F", "42", "44")
"""SQLSTATE classes that trying again does not cure: values, constraints, names, rights."""

TYPES = {
    "string": "text", "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint",
    "int": "integer", "bigint": "bigint", "float": "real", "double": "double precision",
    "null": "text", "bytes": "bytea", "date": "date", "time": "time", "timestamp": "timestamp",
    "timestamp_tz": "timestamptz", "float_vector": "real[]", "float16_vector": "real[]",
    "bfloat16_vector": "real[]", "binary_vector": "bytea", "sparse_float_vector": "jsonb",
}  # fmt: skip

HOPELESS = (
    "authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied",
    "no password supplied",
)  # fmt: skip
"""What is said of a connection that does not open; libpq gives no SQLSTATE then."""

SETTINGS = {
    # Java's driver: libpq
    "sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey",
    "sslpassword": "sslpassword", "gssencmode": "gssencmode", "channelbinding": "channel_binding",
}  # fmt: skip

TARGETS = {"primary": "read-write", "master": "read-write", "any": "any"}

COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), not a.attnotnull,
  a.atthasdef or a.attidentity <> '', a.attgenerated <> '' or a.attidentity = 'a'
from pg_attribute a where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""

KEYS = """
select i.indexrelid, a.attname
from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = to_regclass(%s) and i.indisunique and i.indpred is null and i.indexprs is null
  and i.indisvalid
"""

STAGES = """
select c.relname, obj_description(c.oid, 'pg_class') from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = current_schema() and c.relkind = 'r'
  and starts_with(c.relname::text, %s)
"""

WRITERS = """
select pg_terminate_backend(s.pid) from pg_locks l join pg_stat_activity s on s.pid = l.pid
where l.relation = to_regclass(%s) and l.granted and s.pid <> pg_backend_pid()
  and s.usename = current_user and s.application_name = 'holdfast stage'
"""


class Postgres(Database):
    """A PostgreSQL server."""

    json_type: ClassVar[str] = "jsonb"

    upserts_read: ClassVar[bool] = True

    # Rows of a table that is created in the same transaction need no marks later that say that
    # they are there, and a commit need not pick them out: it takes a third less.
    chunks_apart: ClassVar[bool] = True

    def connect(self, purpose: str) -> Any:
        """Return a connection in autocommit mode, with the settings that a sink relies on."""
        driver = load_library("psycopg", "Jdbc", "postgres")
        connection = driver.connect(autocommit=True, **self._parameters(purpose))
        try:
            _arrange(connection, purpose, self.statement_s, self.idle_s)
        except BaseException:
            connection.close()
            raise
        return connection

    def _parameters(self, purpose: str) -> dict[str, Any]:
        address = self.address
        known = {
            SETTINGS[k.lower()]: v for k, v in address.settings.items() if k.lower() in SETTINGS
        }
        if (address.setting("ssl") or "false").lower() not in ("false", "0"):
            known.setdefault("sslmode", "verify-full")
        target = TARGETS.get((address.setting("targetServerType") or "").lower())
        if target:
            known["target_session_attrs"] = target
        return known | {
            "host": ",".join(host for host, _ in address.hosts),
            "port": ",".join(str(port) for _, port in address.hosts),
            "dbname": address.database,
            "user": address.user or None,
            "password": address.password or None,
            "application_name": f"holdfast {purpose}",
            "options": _options(address.setting("options"), address.setting("currentSchema")),
            "connect_timeout": address.timeout_s,
            "client_encoding": "UTF8",
            # A peer that is gone without a word is found out in half a minute, not in two hours.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 4,
            "tcp_user_timeout": 30_000,
        }

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that psycopg raises."""
        return (load_library("psycopg", "Jdbc", "postgres").Error,)

    def check_libraries(self) -> None:
        """Raise UserError that names the extra if a library is not here."""
        for module in ("psycopg", "pgpq"):
            need_library(module, "Jdbc", "postgres")

    def mend(self, error: HoldfastError) -> str:
        """Return what a person can do where no session opens."""
        said = str(error)
        if "database" in said and "does not exist" in said:
            return "Create that database, or correct url."
        if "permission denied for database" in said:
            name, user = self.quote(self.address.database), self.quote(self.address.user)
            return f"Mend it with: GRANT CONNECT ON DATABASE {name} TO {user}"
        if "pg_hba.conf" in said:
            return "Have the server's pg_hba.conf let this user in from here."
        if isinstance(error, UserError):
            return "Check user and password."
        return UNREACHED

    def missing_rights(self, session: Session, needs: Needs) -> Iterator[str]:
        """Yield a sentence, with the statement that mends it, for each right that is missing."""
        return missing_rights(self, session, needs)

    def explain(self, error: Exception) -> HoldfastError:
        """Return what an error means, by its SQLSTATE; one without any is a broken line."""
        state: str = getattr(error, "sqlstate", None) or ""
        said = _plain(error)
        if refused := untrusted(self.address, said, "sslrootcert"):
            return refused
        about = f"{self.address.shown} said: {said}"
        hopeless = not state and any(words in said for words in HOPELESS)
        if state[:2] in USERS_FAULT or hopeless:
            return UserError(about, code=REFUSED, sqlstate=state)
        return Unavailable(about, code="sink.unavailable", sqlstate=state)

    def quote(self, name: str) -> str:
        """Return an identifier in double quotes."""
        return '"' + name.replace('"', '""') + '"'

    def type_of(self, column: Column, key: bool) -> str:
        """Return the type of a new column."""
        kind = column.type
        if kind.kind == "string" and column.length:
            return f"varchar({column.length})"
        return _type(kind)

    def find_columns(self, session: Session, table: Name) -> list[FoundColumn]:
        """Return the columns of a table; none if it does not exist."""
        return [FoundColumn(*row) for row in session.run(COLUMNS, (self.table(table),))]

    def unique_keys(self, session: Session, table: Name) -> list[frozenset[str]]:
        """Return the columns of each unique index."""
        found: dict[int, set[str]] = {}
        for index, column in session.run(KEYS, (self.table(table),)):
            found.setdefault(index, set()).add(column)
        return [frozenset(columns) for columns in found.values()]

    def create_around(self, session: Session, table: Name) -> None:
        """Make the schema of a table if it is missing."""
        if len(table) > 1 and not session.run(
            "select 1 from pg_namespace where nspname = %s", (table[0],)
        ):
            session.run(f"CREATE SCHEMA {self.quote(table[0])}")

    def clear(self, table: str) -> str:
        """Return a TRUNCATE, which is quick and can be rolled back."""
        return f"TRUNCATE TABLE {table}"

    @contextmanager
    def alone(self, session: Session) -> Iterator[None]:
        """Keep other jobs from preparing tables meanwhile, in a transaction."""
        session.run("BEGIN")
        session.run("SELECT pg_advisory_xact_lock(%s)", (PREPARING,))
        yield
        session.run("COMMIT")

    def run_script(self, session: Session, script: str) -> None:
        """Run what a user wrote, perhaps several statements."""
        session.run(script)

    def create_ledger(self, session: Session) -> None:
        """Make the ledger if it is missing."""
        (where,) = session.run("SELECT current_schema(), to_regclass(%s)", (LEDGER,))
        if where[0] is None:
            raise UserError(
                f"Jdbc has no schema to keep its ledger in: the search path of {self.address.shown}"
                " names none. Add ?currentSchema=name to url.",
                code="sink.schema_missing",
            )
        if where[1] is not None:
            return
        with self.alone(session):
            session.run(
                f"CREATE TABLE IF NOT EXISTS {LEDGER} (id text PRIMARY KEY, commit_user text"
                " NOT NULL, number bigint NOT NULL, watermark bigint, committed_at timestamptz)"
            )

    def open_ledger(self, session: Session, key: str, user: str) -> None:
        """Make sure that a user has a row in the ledger."""
        session.run(
            f"INSERT INTO {LEDGER} (id, commit_user, number) VALUES (%s, %s, -1)"
            " ON CONFLICT DO NOTHING",
            (key, user),
        )

    def create_stage(self, session: Session, staged: StagedTable, columns: Sequence[str]) -> None:
        """Make a staging table; its comment names its owner."""
        comment = json.dumps({"staging": staged.owner}).replace("'", "''")
        session.run("BEGIN")
        session.run(
            f"CREATE TABLE {staged.table} ({', '.join(columns)}) WITH (autovacuum_enabled = false)"
        )
        # Without standard_conforming_strings a backslash would be special: E'' says that it is.
        session.run(
            f"COMMENT ON TABLE {staged.table} IS E'{comment.replace(chr(92), chr(92) * 2)}'"
        )
        session.run("COMMIT")

    def find_stages(self, session: Session) -> list[StagedTable]:
        """Return every staging table of the schema that this sink uses."""
        found = session.run(STAGES, (STAGE,))
        return [StagedTable(table, _owner(comment)) for table, comment in found]

    def drop_stage(self, session: Session, table: str) -> None:
        """Remove a staging table and its chunks; a task that still writes there is cut off."""
        session.run(f"SET lock_timeout = '{DROP_S}s'")
        try:
            self._drop_all(session, table)
        except Unavailable as error:
            if error.about.get("sqlstate") != "55P03":
                raise
            session.run("ROLLBACK")
            session.run(WRITERS, (table,))
            self._drop_all(session, table)

    def _drop_all(self, session: Session, table: str) -> None:
        """Remove a staging table, after which no chunk can come, and then its chunks."""
        session.run("BEGIN")
        session.run(f"DROP TABLE IF EXISTS {table}")
        chunks = [name for name, _ in session.run(STAGES, (f"{table}_",))]
        if chunks:
            session.run(f"DROP TABLE IF EXISTS {', '.join(chunks)}")
        session.run("COMMIT")

    def open_chunk(self, session: Session, loading: Loading, chunk: int) -> Loading:
        """Make the table of a chunk.  To look at the staging table is to lock it till the end."""
        table = chunk_table(loading.table, chunk)
        session.run(
            f"CREATE TABLE {table} (LIKE {loading.table}) WITH (autovacuum_enabled = false)"
        )
        return replace(loading, table=table)

    def loader(self, session: Session, loading: Loading, schema: "pa.Schema") -> Loader:
        """Return a COPY in the server's own format, if the columns have the types of the rows."""
        if is_natural(schema, loading.types):
            return BinaryCopy(session, loading, schema)
        return TextCopy(session, loading)

    def delete_using(self, target: str, rows: str, on: str) -> str:
        """Return a DELETE of rows that match those of a query."""
        return f"DELETE FROM {target} t USING ({rows}) d WHERE {on}"

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return the ON CONFLICT clause."""
        if not others:
            return f"ON CONFLICT ({', '.join(keys)}) DO NOTHING"
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


def _arrange(connection: Any, purpose: str, statement_s: int, idle_s: int) -> None:
    """Set what the server's configuration may have set differently."""
    connection.execute(KEEP_SYNC)
    connection.execute("SET timezone = 'UTC'")
    connection.execute("SET default_transaction_isolation = 'read committed'")
    if purpose != "stage":
        connection.execute(f"SET lock_timeout = '{LOCK_S}s'")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{idle_s}s'")
    if purpose == "commit" and statement_s > 0:
        connection.execute(f"SET statement_timeout = '{statement_s}s'")


def _options(given: str | None, schema: str | None) -> str | None:
    if not schema:
        return given
    path = schema.replace("\\", "\\\\").replace(" ", "\\ ")
    return f"{given or ''} -c search_path={path}".strip()


def _type(kind: Type) -> str:
    match kind.kind:
        case "decimal":
            return f"numeric({kind.precision},{kind.scale})"
        case "array" if kind.parts[0].kind not in ("array", "map", "row"):
            return f"{_type(kind.parts[0])}[]"
        case "array" | "map" | "row":
            return "jsonb"
        case name:
            return TYPES[name]


def _owner(comment: str | None) -> str:
    try:
        return str(json.loads(comment or "{}").get("staging", ""))
    except ValueError:
        return ""  # somebody has changed the comment: whose it was is not known


def _plain(error: Exception) -> str:
    """Return what the server said: without the statement, which is ours and mends nothing."""
    diag = getattr(error, "diag", None)
    parts = (diag.message_primary, diag.message_detail, diag.message_hint) if diag else ()
    said = ". ".join(part.rstrip(".") for part in parts if part) or str(error)
    return WORDS_OF_LIBPQ.sub("", " ".join(said.split())).strip()


class PostgresCopy(Loader):
    """One COPY, of whatever a subclass makes of batches."""

    form = ""

    def __init__(self, session: Session, loading: Loading) -> None:
        self._session = session
        # Only a table that this transaction has created can be frozen.
        how = f"FORMAT {self.form}{', FREEZE' if loading.apart else ''}"
        self._statement = (
            f"COPY {loading.table} ({', '.join(loading.columns)}) FROM STDIN WITH ({how})"
        )

    def load(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Send rows; at the end the server says what it could not read."""
        sent, cursor = 0, self._session.connection.cursor()
        with self._session.database.explained(), cursor.copy(self._statement) as copy:
            for piece in self.pieces(batches):
                copy.write(piece)
                sent += len(piece)
        return sent

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield what is sent."""
        raise NotImplementedError


class TextCopy(PostgresCopy):
    """Lines of CSV.  Arrow quotes all text and leaves nulls bare, which is how COPY reads it."""

    form = "csv"

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield lines."""
        for batch in batches:
            text = io.BytesIO()
            arrow_csv.write_csv(batch, text, arrow_csv.WriteOptions(include_header=False))
            yield text.getbuffer()


class BinaryCopy(PostgresCopy):
    """The server's own format."""

    form = "binary"

    def __init__(self, session: Session, loading: Loading, schema: pa.Schema) -> None:
        super().__init__(session, loading)
        library = load_library("pgpq", "Jdbc", "postgres")
        self._encoder = library.ArrowToPostgresBinaryEncoder(schema)

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield a head, rows and a tail."""
        yield self._encoder.write_header()
        for batch in batches:
            yield self._encoder.write_batch(batch)
        yield self._encoder.finish()


def is_natural(schema: pa.Schema, types: Sequence[str]) -> bool:
    """Say whether columns of the database have just the types that Arrow has."""
    return all(_fits(kind, name) for kind, name in zip(schema.types, types, strict=True))


def _fits(kind: Any, name: str) -> bool:
    bare = _SIZE.sub("", name)
    if bare == "numeric":
        return pa.types.is_decimal128(kind)
    return kind in NATURAL.get(bare, ())
