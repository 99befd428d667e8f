"""Save modes, for each kind of sink: one table for each mode, and for each format of files.

A job that `fills` writes plainly; one that `empties` has the save modes, for the same tables.
"""

import shutil
from pathlib import Path

from tests.chaos.engine.reader import SUFFIXES
from tests.chaos.engine.sinks import KINDS, Database, Files, SinkKind

DROP_DATA = "data_save_mode = DROP_DATA"
RECREATE = "schema_save_mode = RECREATE_SCHEMA"
SCRIPT = """data_save_mode = CUSTOM_PROCESSING
    custom_sql = "TRUNCATE TABLE {table}\""""

PLAIN = ("", DROP_DATA), ("", RECREATE)
NEEDS = {"xml": ", xml_use_attr_format = true"}
FORMATS = tuple(
    (f"file_format_type = {name}{NEEDS.get(name, '')}", DROP_DATA)
    for name in SUFFIXES
    if name != "parquet"
)

MODES: dict[str, tuple[tuple[str, str], ...]] = {
    "files": (*PLAIN, *FORMATS),
    "spark-files": (("", "mode = overwrite"),),
    "jdbc-postgres": (*PLAIN, ("", SCRIPT)),
    "jdbc-mysql": (*PLAIN, ("", SCRIPT)),
}
"""What each table of a kind is written as, and what empties it.  Lakes have the plain ones."""


class SparkFiles(Files):
    """Folders of Parquet files that Spark's own writer makes."""

    name = "spark-files"

    def text(self, inputs: str, out: Path, table: str) -> str:
        """Return a Spark sink."""
        return f"""  Spark {{
    plugin_input = [{inputs}]
    path = "{out.absolute()}/{table}"
    format = parquet
  }}"""


EVERY: dict[str, type[SinkKind]] = {**KINDS, SparkFiles.name: SparkFiles}
"""All kinds of sinks that have save modes."""


def modes_of(kind: SinkKind) -> tuple[tuple[str, str], ...]:
    """Return what each table is written as, and what empties it."""
    return MODES.get(kind.name, PLAIN)


def with_mode(text: str, kind: SinkKind, table: str, number: int, *, empties: bool) -> str:
    """Return the sink of a table, the nth of its pipeline, with what belongs to that one."""
    how, mode = modes_of(kind)[number]
    lines = [how, mode.replace("{table}", table) if empties else ""]
    more = "".join(f"    {line}\n" for line in lines if line)
    return text.removesuffix("  }") + more + "  }"


def take_away(kind: SinkKind, out: Path, table: str) -> None:
    """Let a table be gone, as if somebody had renamed it by mistake."""
    if isinstance(kind, Database):
        kind.run(kind.database(out), f"ALTER TABLE {table} RENAME TO away_{table}")
    else:
        place = _folder(out, table)
        place.rename(place.with_name(f"away_{table}"))


def bring_back(kind: SinkKind, out: Path, table: str) -> None:
    """Mend that.  What was begun in its place meanwhile, if anything was, goes."""
    if isinstance(kind, Database):
        kind.run(kind.database(out), f"DROP TABLE IF EXISTS {table}")
        kind.run(kind.database(out), f"ALTER TABLE away_{table} RENAME TO {table}")
    else:
        away = _folder(out, f"away_{table}")
        place = away.with_name(table)
        shutil.rmtree(place, ignore_errors=True)
        away.rename(place)


def _folder(out: Path, table: str) -> Path:
    """Return where a table of files is: Iceberg and Paimon have a database above it."""
    (found,) = (
        out / above / table for above in ("", "db", "db.db") if (out / above / table).is_dir()
    )
    return found
