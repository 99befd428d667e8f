"""MySQL and MariaDB, through pymysql: staging by INSERTs of many rows.

Literals are built column by column inside Arrow.  The session has NO_BACKSLASH_ESCAPES and talks
utf8mb4, in which no other character has the byte of a quote: doubling quotes is enough.
"""

import json
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connect.library import load_library, need_library
from holdfast.connectors.jdbc.columns import HEX
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
from holdfast.connectors.jdbc.rights import missing_grants
from holdfast.connectors.jdbc.trust import authority, untrusted
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.model.table import Column

STATEMENT_BYTES = 4 << 20
"""The most bytes of one INSERT, unless a single row has more."""

WORTH_ANOTHER_TRY = frozenset(
    {1020, 1021, 1023, 1028, 1040, 1041, 1053, 1077, 1078, 1079, 1080, 1094, 1129, 1152, 1158,
     1159, 1160, 1161, 1180, 1184, 1203, 1205, 1206, 1213, 1223, 1290, 1317, 1614, 1637, 1692,
     1792, 1836, 1927, 1969, 3024, 3032, 3100, 3101}
)  # fmt: skip
"""Server errors that may pass: connections, locks, resources, shutdown, read-only."""

STAGE_IDLE_S = 3_600
"""How long a task's connection may wait for its next rows."""

TYPES = {
    "boolean": "tinyint(1)", "tinyint": "tinyint", "smallint": "smallint", "int": "int",
    "bigint": "bigint", "float": "float", "double": "double", "null": "longtext", "date": "date",
    "time": "time(6)", "timestamp": "datetime(6)", "timestamp_tz": "timestamp(6) NULL",
    "float_vector": "json", "float16_vector": "json", "bfloat16_vector": "json",
    "binary_vector": "longblob", "sparse_float_vector": "json", "array": "json", "map": "json",
    "row": "json",
}  # fmt: skip

EACH_ITSELF = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
"""Keys that differ in case or an accent are two rows; most servers take them for one."""

COLUMNS = """
select column_name, column_type, is_nullable = 'YES', column_default is not null
  or is_nullable = 'YES' or extra like '%%auto_increment%%' or extra like '%%DEFAULT_GENERATED%%',
  generation_expression is not null and generation_expression <> '', character_set_name,
  collation_name
from information_schema.columns
where table_schema = coalesce(%s, database()) and table_name = %s order by ordinal_position
"""

DATABASE = "select 1 from information_schema.schemata where schema_name = %s"

KEYS = """
select index_name, column_name from information_schema.statistics
where table_schema = coalesce(%s, database()) and table_name = %s and non_unique = 0
"""

ENGINE = """
select t.engine, e.transactions from information_schema.tables t
join information_schema.engines e on e.engine = t.engine
where t.table_schema = coalesce(%s, database()) and t.table_name = %s
"""

STAGES = """
select table_name, table_comment from information_schema.tables
where table_schema = database() and left(table_name, %s) = %s
"""


class MySql(Database):
    """A MySQL or MariaDB server."""

    json_type: ClassVar[str] = "json"

    ddl_commits: ClassVar[bool] = True

    def connect(self, purpose: str) -> Any:
        """Return a connection in autocommit mode, with the settings that a sink relies on."""
        driver = load_library("pymysql", "Jdbc", "mysql")
        address, (host, port) = self.address, self.address.hosts[0]
        connection = driver.connections.Connection(
            host=host, port=port, user=address.user or None, password=address.password,
            database=address.database or None, charset="utf8mb4", autocommit=True,
            connect_timeout=address.timeout_s, program_name=f"holdfast {purpose}",
            client_flag=driver.constants.CLIENT.MULTI_STATEMENTS if purpose == "commit" else 0,
            defer_connect=True, **self._tls(),
        )  # fmt: skip
        try:
            line = socket.create_connection((host, port), address.timeout_s)
        except OSError as error:
            raise Unavailable(
                f"{address.shown} cannot be reached: {error}.", code="sink.unavailable"
            ) from error
        try:
            _keep_alive(line)
            connection.connect(line)
            _arrange(connection, purpose, self.statement_s, self.idle_s)
        except BaseException:
            line.close()
            raise
        return connection

    def _tls(self) -> dict[str, Any]:
        """Return how to encrypt, by `sslMode`; without it the line is plain."""
        mode = (self.address.setting("sslMode") or "").upper().replace("-", "_")
        if not mode and (self.address.setting("requireSSL") or "").lower() == "true":
            mode = "REQUIRED"
        if mode in ("", "DISABLED", "DISABLE", "PREFERRED"):
            return {}
        context = authority(self.address.setting("serverSslCert"), "serverSslCert")
        context.check_hostname = mode in ("VERIFY_IDENTITY", "VERIFY_FULL")
        if mode in ("REQUIRED", "TRUST"):
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that pymysql raises."""
        return (load_library("pymysql", "Jdbc", "mysql").MySQLError,)

    def check_libraries(self) -> None:
        """Raise UserError that names the extra if the library is not here."""
        need_library("pymysql", "Jdbc", "mysql")

    def mend(self, error: HoldfastError) -> str:
        """Return what a person can do where no session opens."""
        match error.about.get("number"):
            case 1044:
                return f"GRANT ALL ON {self.quote(self.address.database)}.* to that user."
            case 1045:
                return "Check user and password, and from which hosts that user may come."
            case 1049:
                return "Create that database, or correct url."
        return UNREACHED if isinstance(error, Unavailable) else "Check user and url."

    def missing_rights(self, session: Session, needs: Needs) -> Iterator[str]:
        """Yield a sentence, with the statement that mends it, for each right that is missing."""
        ((who,),) = session.run("SELECT CURRENT_USER()")
        grants = [str(row[0]) for row in session.run("SHOW GRANTS")]
        table = needs.table or ("",)
        made = len(table) > 1 and not session.run(DATABASE, (table[0],))
        return missing_grants(grants, self.address.database, str(who), needs, made=made)

    def explain(self, error: Exception) -> HoldfastError:
        """Return what an error means, by its number."""
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        said = " ".join(str(a) for a in error.args[1:]) or str(error)
        if refused := untrusted(self.address, said, "serverSslCert"):
            return refused
        about = f"{self.address.shown} said: {said} ({number})"
        # Those from 2000 on are the client's own: the line is down or was never up.
        if number == 0 or 2000 <= number < 3000 or number in WORTH_ANOTHER_TRY:
            return Unavailable(about, code="sink.unavailable", number=number)
        return UserError(about, code=REFUSED, number=number)

    def quote(self, name: str) -> str:
        """Return an identifier in backticks."""
        return "`" + name.replace("`", "``") + "`"

    def type_of(self, column: Column, key: bool) -> str:
        """Return the type of a new column; text in a key must have a length."""
        kind, length = column.type, column.length
        match kind.kind:
            case "decimal":
                return f"decimal({kind.precision},{min(kind.scale, 30)})"
            case "string" if key:
                return f"varchar({length or 255}) {EACH_ITSELF}"
            case "string" if 0 < length <= 16_000:
                return f"varchar({length})"
            case "string":
                return "longtext"
            case "bytes" if key:
                return f"varbinary({length or 255})"
            case "bytes":
                return "longblob"
            case name:
                return TYPES[name]

    def find_columns(self, session: Session, table: Name) -> list[FoundColumn]:
        """Return the columns of a table; none if it does not exist."""
        found = []
        for name, kind, nullable, filled, computed, charset, collation in session.run(
            COLUMNS, _where(table)
        ):
            text = f" CHARACTER SET {charset} COLLATE {collation}" if charset else ""
            found.append(
                FoundColumn(name, kind + text, bool(nullable), bool(filled), bool(computed))
            )
        return found

    def unique_keys(self, session: Session, table: Name) -> list[frozenset[str]]:
        """Return the columns of each unique index."""
        found: dict[str, set[str]] = {}
        for index, column in session.run(KEYS, _where(table)):
            found.setdefault(index, set()).add(column)
        return [frozenset(columns) for columns in found.values()]

    def check_table(self, session: Session, table: Name) -> None:
        """Raise UserError for a table of an engine without transactions."""
        for engine, transactions in session.run(ENGINE, _where(table)):
            if transactions != "YES":
                raise UserError(
                    f"Table {'.'.join(table)} of {self.address.shown} has engine {engine}, which"
                    " has no transactions, so rows could not arrive once. ALTER TABLE ..."
                    " ENGINE=InnoDB.",
                    code="sink.no_transactions",
                )

    def clear(self, table: str) -> str:
        """Return a DELETE: a TRUNCATE would end the transaction."""
        return f"DELETE FROM {table}"

    def create_around(self, session: Session, table: Name) -> None:
        """Make the database of a table if it is missing."""
        if len(table) > 1 and not session.run(DATABASE, (table[0],)):
            session.run(f"CREATE DATABASE IF NOT EXISTS {self.quote(table[0])}")

    @contextmanager
    def alone(self, session: Session) -> Iterator[None]:
        """Keep other jobs from preparing tables meanwhile."""
        ((got,),) = session.run("SELECT GET_LOCK('holdfast_prepare', %s)", (LOCK_S,))
        if got != 1:
            raise Unavailable(
                f"Another job has been preparing tables of {self.address.shown} for {LOCK_S} s.",
                code="sink.unavailable",
            )
        yield
        session.run("SELECT RELEASE_LOCK('holdfast_prepare')")

    def run_script(self, session: Session, script: str) -> None:
        """Run what a user wrote, perhaps several statements."""
        with self.explained():
            cursor = session.connection.cursor()
            cursor.execute(script)
            while cursor.nextset():
                pass

    def create_ledger(self, session: Session) -> None:
        """Make the ledger if it is missing."""
        if not self.find_columns(session, (LEDGER,)):
            session.run(
                f"CREATE TABLE IF NOT EXISTS {LEDGER} (id char(64) CHARACTER SET ascii COLLATE"
                " ascii_bin PRIMARY KEY, commit_user longtext CHARACTER SET utf8mb4 NOT NULL,"
                " number bigint NOT NULL, watermark bigint, committed_at timestamp NULL)"
                " ENGINE=InnoDB"
            )

    def open_ledger(self, session: Session, key: str, user: str) -> None:
        """Make sure that a user has a row in the ledger."""
        session.run(
            f"INSERT INTO {LEDGER} (id, commit_user, number) VALUES (%s, %s, -1)"
            " ON DUPLICATE KEY UPDATE id = id",
            (key, user),
        )

    def create_stage(self, session: Session, staged: StagedTable, columns: Sequence[str]) -> None:
        """Make a staging table; its comment names its owner."""
        comment = json.dumps({"staging": staged.owner}).replace("'", "''")
        session.run(
            f"CREATE TABLE {staged.table} ({', '.join(columns)}) ENGINE=InnoDB"
            f" DEFAULT CHARACTER SET utf8mb4 COMMENT='{comment}'"
        )

    def find_stages(self, session: Session) -> list[StagedTable]:
        """Return every staging table of the database that this sink uses."""
        found = session.run(STAGES, (len(STAGE), STAGE))
        return [StagedTable(table, _owner(comment)) for table, comment in found]

    def drop_stage(self, session: Session, table: str) -> None:
        """Remove a staging table.  A task that still writes to it is waited for, for a while."""
        session.run(f"SET SESSION lock_wait_timeout = {DROP_S}")
        session.run(f"DROP TABLE IF EXISTS {table}")

    def loader(self, session: Session, loading: Loading, schema: "pa.Schema") -> Loader:
        """Return INSERTs of many rows."""
        return MySqlInserts(session, loading.table, loading.columns, loading.rows)

    def delete_using(self, target: str, rows: str, on: str) -> str:
        """Return a DELETE of rows that match those of a query."""
        return f"DELETE t FROM {target} t JOIN ({rows}) d ON {on}"

    def upsert_tail(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return the ON DUPLICATE KEY clause."""
        # A key set to itself: there is nothing else to update.
        changes = ", ".join(f"{n} = VALUES({n})" for n in others or keys[:1])
        return f"ON DUPLICATE KEY UPDATE {changes}"


def _where(table: Name) -> tuple[str | None, str]:
    return (table[0] if len(table) > 1 else None, table[-1])


def _keep_alive(line: socket.socket) -> None:
    """A peer that is gone without a word is found out in half a minute, not in two hours."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (("KEEPIDLE", 10), ("KEEPINTVL", 5), ("KEEPCNT", 4)):
        if hasattr(socket, f"TCP_{name}"):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"), value)


def _arrange(connection: Any, purpose: str, statement_s: int, idle_s: int) -> None:
    """Set what the server's configuration may have set differently."""
    cursor = connection.cursor()
    # Values that do not fit are refused, never cut; a quote is the only character to escape.
    cursor.execute(
        "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_TRANS_TABLES',"
        " 'NO_BACKSLASH_ESCAPES'), time_zone = '+00:00'"
    )
    # A commit then reads staged rows without waiting for an abandoned task.
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    wait_s = STAGE_IDLE_S if purpose == "stage" else idle_s
    cursor.execute(
        f"SET SESSION wait_timeout = {wait_s}, innodb_lock_wait_timeout = {LOCK_S},"
        f" lock_wait_timeout = {LOCK_S}"
    )
    if purpose == "commit" and statement_s > 0 and "MariaDB" in connection.get_server_info():
        cursor.execute(f"SET SESSION max_statement_time = {statement_s}")


def _owner(comment: str | None) -> str:
    try:
        return str(json.loads(comment or "{}").get("staging", ""))
    except ValueError:
        return ""  # somebody has changed the comment: whose it was is not known


class MySqlInserts(Loader):
    """INSERTs of many rows."""

    def __init__(self, session: Session, table: str, columns: Sequence[str], rows: int) -> None:
        self._session = session
        self._rows = rows
        self._head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ".encode()
        ((packet,),) = session.run("SELECT @@session.max_allowed_packet")
        self._bytes = min(STATEMENT_BYTES, int(packet) // 2)

    def load(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Send rows."""
        sent = 0
        for values in (group for batch in batches for group in self._groups(_rows(batch))):
            statement = self._head + b"),(".join(values).join((b"(", b")"))
            with self._session.database.explained():
                self._session.connection.query(statement)
            sent += len(statement)
        return sent

    def _groups(self, rows: list[bytes]) -> Iterator[list[bytes]]:
        start, size = 0, 0
        for at, row in enumerate(rows):
            if at > start and (at - start >= self._rows or size + len(row) > self._bytes):
                yield rows[start:at]
                start, size = at, 0
            size += len(row) + 3
        if start < len(rows):
            yield rows[start:]


def _rows(batch: pa.RecordBatch) -> list[bytes]:
    """Return each row as a list of SQL literals."""
    columns = [_literals(batch.column(i), batch.schema.field(i)) for i in range(batch.num_columns)]
    joined: Any = pc.binary_join_element_wise(*columns, ",")
    return [bytes(row) for row in joined.cast(pa.binary()).to_pylist()]


def _literals(values: Any, field: Any) -> Any:
    """Return a column as SQL literals."""
    kind = values.type
    if pa.types.is_boolean(kind):
        text: Any = pc.cast(pc.cast(values, pa.int8()), pa.string())
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        text = pc.cast(values, pa.string())
    else:
        text = _quoted(values, field)
    return pc.fill_null(text, "NULL")


def _quoted(values: Any, field: Any) -> Any:
    text = as_text(values)
    head = "x'" if field.name.startswith(HEX) else "'"
    escaped = pc.replace_substring(text, "'", "''")
    return pc.binary_join_element_wise(head, escaped, "'", "")


def as_text(values: Any) -> Any:
    """Return a column as text that MySQL reads; instants in UTC."""
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.local_timestamp(pc.cast(values, pa.timestamp("us", "UTC")))
    return values if pa.types.is_string(values.type) else pc.cast(values, pa.string())
