"""The kinds of sinks that scenarios write to: how a job names them, and what others see there.

What is shown is read by libraries and drivers that are not ours: pyarrow over files, delta-rs,
pyiceberg, Paimon's Rust library, psycopg, PyMySQL.  Rows are only added: one that was written
twice is seen twice.
"""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.chaos.engine.mariadb import MariaDb, driver
from tests.chaos.engine.reader import hidden_files, ids, ids_of, parquet_files, shown_files
from tests.chaos.engine.servers import Postgres, Server


class SinkKind:
    """One kind of sink.  `out` is what belongs to one job, or to jobs that share their tables."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self) -> None:
        """Be ready for jobs.  Repeatable; may take seconds."""

    def close(self) -> None:
        """End what was started."""

    def make_room(self, out: Path) -> None:
        """Prepare for one job.  Repeatable."""

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return the sink of a job file that writes to a table."""
        raise NotImplementedError

    def shown(self, out: Path, table: str) -> Counter[int]:
        """Return how often each id is shown."""
        raise NotImplementedError

    def hidden(self, out: Path) -> Counter[int]:
        """Return the ids that are staged and not shown.  One may be shown in the next moment."""
        raise NotImplementedError

    def left(self, out: Path) -> list[str]:
        """Return the names of what was staged and neither committed nor removed."""
        raise NotImplementedError

    def lose(self, out: Path) -> int:
        """Remove everything that is staged, as a careless cleaner would; return how much."""
        raise NotImplementedError

    def tidy(self, out: Path, table: str) -> None:
        """Do what others do to a table meanwhile: compact it, expire it, take rows away."""
        raise NotImplementedError


class StagedFiles(SinkKind):
    """Where rows are staged as Parquet files."""

    def staged(self, out: Path) -> list[Path]:
        """Return the files that were staged and are not shown."""
        raise NotImplementedError

    def hidden(self, out: Path) -> Counter[int]:
        """Read the staged files that are whole."""
        return ids_of(self.staged(out))

    def left(self, out: Path) -> list[str]:
        """Return the staged files."""
        return [str(path) for path in self.staged(out)]

    def lose(self, out: Path) -> int:
        """Remove the staged files."""
        found = self.staged(out)
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)


class Files(StagedFiles):
    """Folders of Parquet files."""

    name = "files"

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return a LocalFile sink."""
        return f"""  LocalFile {{
    plugin_input = [{inputs}]
    path = "{out.absolute()}/{table}"
    file_format_type = parquet
  }}"""

    def shown(self, out: Path, table: str) -> Counter[int]:
        """Read the files that no name on the way hides, and those that were taken away."""
        return ids(out / table) + ids(out / "taken" / table)

    def tidy(self, out: Path, table: str) -> None:
        """Take all files away, as a loader does that has read them."""
        for path in shown_files(out / table):
            goal = out / "taken" / path.relative_to(out)
            goal.parent.mkdir(parents=True, exist_ok=True)
            path.rename(goal)

    def staged(self, out: Path) -> list[Path]:
        """Return the files that were staged: hidden ones."""
        return hidden_files(out)


class Lake(StagedFiles):
    """Tables of a lake format, which stage in a folder that readers do not know of."""

    def staged(self, out: Path) -> list[Path]:
        """Return the files in there; a log may have hidden files that were not staged."""
        return [p for p in parquet_files(out) if "_holdfast" in p.relative_to(out).parts]


class Delta(Lake):
    """Tables of Delta Lake."""

    name = "delta"

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return a Delta sink."""
        return f"""  Delta {{
    plugin_input = [{inputs}]
    path = "{out.absolute()}/{table}"
  }}"""

    def shown(self, out: Path, table: str) -> Counter[int]:
        """Read the table with delta-rs."""
        if not (out / table / "_delta_log").exists():
            return Counter()
        read = import_module("deltalake").DeltaTable(out / table)
        return _counted(read.to_pyarrow_table(columns=["id"])["id"].to_pylist())

    def tidy(self, out: Path, table: str) -> None:
        """Compact the table, remove the files and the log that it needs no more."""
        found = import_module("deltalake").DeltaTable(out / table)
        found.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
        found.optimize.compact()
        found.vacuum(0, dry_run=False, enforce_retention_duration=False)
        found.create_checkpoint()
        found.cleanup_metadata()


class Iceberg(Lake):
    """Tables of Iceberg, in folders."""

    name = "iceberg"

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return an Iceberg sink."""
        return f"""  Iceberg {{
    plugin_input = [{inputs}]
    iceberg.catalog.config = {{ type = hadoop, warehouse = "{out.absolute().as_uri()}" }}
    namespace = db
    table = {table}
  }}"""

    def shown(self, out: Path, table: str) -> Counter[int]:
        """Read the table with pyiceberg, from its folder, without a catalog."""
        folder = out / "db" / table
        if not (folder / "metadata").exists():
            return Counter()
        table_at = import_module("pyiceberg.table").StaticTable.from_metadata
        rows = table_at(str(folder.absolute())).scan(selected_fields=("id",))
        return _counted(rows.to_arrow()["id"].to_pylist())


class Paimon(Lake):
    """Tables of Paimon that rows are only added to."""

    name = "paimon"

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return a Paimon sink."""
        return f"""  Paimon {{
    plugin_input = [{inputs}]
    warehouse = "{out.absolute()}"
    database = db
    table = {table}
  }}"""

    def shown(self, out: Path, table: str) -> Counter[int]:
        """Read the table with Paimon's own library."""
        if not (out / "db.db" / table / "snapshot").exists():
            return Counter()
        library = import_module("pypaimon_rust.datafusion")
        catalog = library.PaimonCatalog({"warehouse": str(out.absolute())})
        reader = catalog.get_table(f"db.{table}").new_read_builder()
        splits = reader.new_scan().plan().splits()
        found: Counter[int] = Counter()
        for batch in reader.new_read().read(splits):
            found += _counted(batch["id"].to_pylist())
        return found


class Database(SinkKind):
    """Tables of a database server; each `out` is a database of its own."""

    driver = ""
    user = ""
    home = ""
    """A database that is always there."""

    databases = ""
    """How to ask for the names of all databases."""

    tables = ""
    """How to ask for the names of all tables of a database."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server: Server | None = None

    @property
    def port(self) -> int:
        """Where the server listens."""
        assert self._server, "the server of a sink has not been started"
        return self._server.port

    @staticmethod
    def database(out: Path) -> str:
        """Return the name of a job's database."""
        return re.sub(r"\W", "_", out.name)

    def make_server(self) -> Server:
        """Return the server, to be started."""
        raise NotImplementedError

    def connect(self, database: str) -> Any:
        """Return a connection that commits at once."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the server, unless it runs."""
        if self._server is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            server = self.make_server()
            server.start()
            self._server = server

    def close(self) -> None:
        """End the server."""
        if self._server:
            self._server.remove()
            self._server = None

    def make_room(self, out: Path) -> None:
        """Create the database, unless it is there."""
        if self.database(out) not in self._names(self.home, self.databases):
            self.run(self.home, f"CREATE DATABASE {self.database(out)}")

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return a Jdbc sink that only adds: a key would hide a row that is written twice."""
        return f"""  Jdbc {{
    plugin_input = [{inputs}]
    url = "jdbc:{self.driver}://127.0.0.1:{self.port}/{self.database(out)}"
    user = {self.user}
    password = hush
    table = {table}
    generate_sink_sql = true
    enable_upsert = false
    create_index = false
  }}"""

    def shown(self, out: Path, table: str) -> Counter[int]:
        """Ask the server, through its usual driver; rows that were taken away count, too."""
        there = {table, f"taken_{table}"} & {*self._names(self.database(out), self.tables)}
        found: Counter[int] = Counter()
        for name in there:
            found += self._ids(out, f"SELECT id FROM {name}")
        return found

    def tidy(self, out: Path, table: str) -> None:
        """Take all rows away, as an archive does."""
        self.run(self.database(out), f"CREATE TABLE taken_{table} AS SELECT * FROM {table}")
        self.run(self.database(out), f"DELETE FROM {table}")

    def hidden(self, out: Path) -> Counter[int]:
        """Ask for the rows of staging tables, the first column of which is the id."""
        found: Counter[int] = Counter()
        for table in self.left(out):
            try:
                found += self._ids(out, f"SELECT c0 FROM {table}")
            except self.driver_error:
                if table in self.left(out):
                    raise  # else it was committed in this moment
        return found

    def left(self, out: Path) -> list[str]:
        """Return the staging tables."""
        names = self._names(self.database(out), self.tables)
        return [name for name in names if name.startswith("holdfast_stage_")]

    def lose(self, out: Path) -> int:
        """Drop the staging tables."""
        found = self.left(out)
        for table in found:
            self.run(self.database(out), f"DROP TABLE IF EXISTS {table}")
        return len(found)

    @property
    def driver_error(self) -> type[Exception]:
        """What the driver raises."""
        raise NotImplementedError

    def run(self, database: str, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows."""
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def _ids(self, out: Path, statement: str) -> Counter[int]:
        return _counted([row[0] for row in self.run(self.database(out), statement)])

    def _names(self, database: str, statement: str) -> list[str]:
        return [str(row[0]) for row in self.run(database, statement)]


class PostgresTables(Database):
    """Tables of PostgreSQL."""

    name = "jdbc-postgres"
    driver = "postgresql"
    user = "postgres"
    home = "postgres"
    databases = "SELECT datname FROM pg_database"
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"

    def make_server(self) -> Server:
        """Return a PostgreSQL server."""
        return Postgres(self.folder)

    def connect(self, database: str) -> Any:
        """Return a connection that commits at once."""
        address = f"postgres://postgres@127.0.0.1:{self.port}/{database}"
        return import_module("psycopg").connect(address, autocommit=True)

    @property
    def driver_error(self) -> type[Exception]:
        """What the driver raises."""
        found: type[Exception] = import_module("psycopg").Error
        return found


class MysqlTables(Database):
    """Tables of MariaDB, which speaks as MySQL does."""

    name = "jdbc-mysql"
    driver = "mysql"
    user = "root"
    home = "test"
    databases = "SHOW DATABASES"
    tables = "SHOW TABLES"

    def make_server(self) -> Server:
        """Return a MariaDB server."""
        return MariaDb(self.folder)

    def connect(self, database: str) -> Any:
        """Return a connection that commits at once."""
        assert isinstance(self._server, MariaDb)
        return self._server.connect(database=database)

    @property
    def driver_error(self) -> type[Exception]:
        """What the driver raises."""
        found: type[Exception] = driver().err.MySQLError
        return found


KINDS: dict[str, type[SinkKind]] = {
    kind.name: kind for kind in (Files, Delta, Iceberg, Paimon, PostgresTables, MysqlTables)
}
"""All kinds; a new one is a class above, named here."""

TIDIED = [name for name, kind in KINDS.items() if kind.tidy is not SinkKind.tidy]
"""Kinds whose tables others can tidy with tools of their own; for Iceberg in folders, and Paimon
without Java, none can."""


def _counted(found: Sequence[Any]) -> Counter[int]:
    return Counter(int(value) for value in found)
