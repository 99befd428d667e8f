"""Write files inside Spark's Python workers: Excel, XML, copies of binary files, old Parquet.

Each worker writes under a name that holds its attempt, so that a task that runs twice leaves two
files and only those that Spark reports are committed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.connect.rejects import ROW_CHARS_MAX, shown
from holdfast.connectors.files.discovery import DEFAULT_PARTITION
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.formats.excel import Workbook
from holdfast.connectors.files.formats.xml import Document
from holdfast.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from holdfast.connectors.files.sink_options import LocalFileSinkOptions

RESULT = "path string, rows bigint"
_UNSAFE = set("\"#%'*/:=?\\{[]^\x7f") | {chr(n) for n in range(32)}


class WrittenFile(Protocol):
    """A file being written."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def close(self) -> None:
        """End the file."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All a Python writer must know; plain data, sent to Spark's workers."""

    folder: str
    format: FileFormat
    helpers: int
    rows_max: int
    encoding: str
    sheet_name: str
    sheet_max_rows: int
    root_tag: str
    row_tag: str
    attributes: bool
    codec: str


def write_in_python(
    rows: "DataFrame", options: "LocalFileSinkOptions", folder: str, helpers: int
) -> dict[str, int]:
    """Write rows into a folder; return the rows of each file, by its path in the folder.

    The first `helpers` columns name folders; rows of one partition stand together.  (For Parquet
    they are the last ones, as Spark's own writer has them.)
    """
    plan = Plan(
        folder, options.file_format_type, helpers, options.rows_max, options.encoding,
        options.sheet_name, options.sheet_max_rows, options.xml_root_tag, options.xml_row_tag,
        bool(options.xml_use_attr_format),
        options.spark_codec if options.file_format_type is FileFormat.PARQUET else "none",
    )  # fmt: skip
    if options.file_format_type is FileFormat.PARQUET and helpers:
        names = [c for c in rows.columns if c.startswith("__p")]
        rest = [c for c in rows.columns if c not in names]
        rows = rows.select(*names, *rest).sortWithinPartitions(*names)
    writer = _Binary(plan) if options.file_format_type is FileFormat.BINARY else _Writer(plan)
    result = rows.mapInArrow(writer, RESULT).toArrow()
    if not result.num_rows and options.create_empty_file_when_no_data:
        return {_Writer(plan).empty(rows.columns[helpers:]): 0}
    paths, counts = result.column("path").to_pylist(), result.column("rows").to_pylist()
    return dict(zip(cast(list[str], paths), cast(list[int], counts), strict=True))


def encoded_lines(rows: "DataFrame", encoding: str) -> "DataFrame":
    """Return rows whose column `value` holds text in another encoding, as raw bytes."""
    others = [c for c in rows.columns if c != "value"]
    ddl = ", ".join(["value binary", *(f"`{c}` string" for c in others)])
    made = rows.mapInArrow(_Encoder(encoding), ddl)
    return made.selectExpr("CAST(value AS STRING) AS value", *others)


@dataclass(frozen=True, slots=True)
class _Encoder:
    encoding: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = pa.array([self._encoded(v) for v in batch.column(0).to_pylist()], pa.binary())
            columns: list[Any] = [values, *batch.columns[1:]]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _encoded(self, line: Any) -> bytes:
        try:
            return cast(str, line).encode(self.encoding)
        except UnicodeEncodeError as error:
            bad = error.object[error.start : error.end]
            raise UserError(
                f"LocalFile cannot write '{bad}' in {self.encoding}, which does not have it."
                f" Row: {shown(error.object, ROW_CHARS_MAX)}. Use encoding = UTF-8."
            ) from error


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the rows of one task, a file for each partition folder and `rows_max` rows."""

    plan: Plan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made: list[tuple[str, int]] = []
        file: WrittenFile | None = None
        here: tuple[Any, ...] | None = None
        for batch in batches:
            for key, run in _runs(batch, self.plan.helpers):
                while run.num_rows:
                    full = self.plan.rows_max and made and made[-1][1] >= self.plan.rows_max
                    if file is None or key != here or full:
                        if file:
                            file.close()
                        made.append((self._name(key, len(made)), 0))
                        file, here = self._open(made[-1][0], run.schema), key
                    name, count = made[-1]
                    room = self.plan.rows_max - count if self.plan.rows_max else run.num_rows
                    taken = run.slice(0, room)
                    file.write(taken)
                    made[-1] = (name, count + taken.num_rows)
                    run = run.slice(taken.num_rows)
        if file:
            file.close()
        yield _result(made)

    def empty(self, names: list[str]) -> str:
        """Write a file without rows; return its name."""
        schema = pa.schema([(n, pa.string()) for n in names])
        self._open("part-empty", schema).close()
        return "part-empty"

    def _name(self, key: tuple[Any, ...], number: int) -> str:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        folders = [f"__p{i}={_escaped(value)}/" for i, value in enumerate(key)]
        attempt = f"{task.partitionId():05d}-{task.taskAttemptId()}-{number:05d}"
        return "".join(folders) + f"part-{attempt}"

    def _open(self, name: str, schema: pa.Schema) -> WrittenFile:
        path = Path(self.plan.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plan = self.plan
        match plan.format:
            case FileFormat.EXCEL:
                return Workbook(path, schema.names, plan.sheet_name, plan.sheet_max_rows)
            case FileFormat.XML:
                return Document(
                    path, schema.names, plan.root_tag, plan.row_tag, plan.attributes,
                    plan.encoding,
                )  # fmt: skip
            case _:
                return _OldParquet(path, schema, plan.codec)


class _OldParquet:
    """A Parquet file with timestamps as INT96."""

    def __init__(self, path: Path, schema: pa.Schema, codec: str) -> None:
        name: Any = {"lz4_raw": "lz4", "uncompressed": "none"}.get(codec, codec)
        self._file = pq.ParquetWriter(
            str(path), schema, compression=name, use_deprecated_int96_timestamps=True
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        self._file.write_batch(batch)

    def close(self) -> None:
        """End the file."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class _Binary:
    """Puts the parts of binary files together again."""

    plan: Plan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made: dict[str, int] = {}
        file, here = None, None
        for batch in batches:
            for row in batch.to_pylist():
                name, part = row["relativePath"], row["partIndex"]
                if name != here:
                    if file:
                        file.close()
                    path = Path(self.plan.folder) / _inside(name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    file, here = path.open("wb"), name
                    made[name] = 0
                if part != made[name]:
                    raise UserError(
                        f"LocalFile cannot put {name} together: part {made[name]} is missing or"
                        f" is there twice (found part {part})."
                    )
                assert file is not None
                file.write(row["data"])
                made[name] += 1
        if file:
            file.close()
        yield _result(list(made.items()))


def _inside(name: str) -> str:
    """Return a relative path that stays inside the folder it is put in."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\x00" in name:
        raise UserError(f"LocalFile will not write {name}: it leads out of the sink's folder.")
    return name


def _runs(batch: pa.RecordBatch, helpers: int) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Yield the rows of each partition, without the columns that name it."""
    if not helpers:
        yield (), batch
        return
    keys = list(zip(*(batch.column(i).to_pylist() for i in range(helpers)), strict=True))
    rest = batch.select(batch.schema.names[helpers:])
    start = 0
    for at in range(1, len(keys) + 1):
        if at == len(keys) or keys[at] != keys[start]:
            yield keys[start], rest.slice(start, at - start)
            start = at


def _escaped(value: Any) -> str:
    """Return a partition value as Spark and Hive write it in folder names."""
    if value is None or value == "":
        return DEFAULT_PARTITION
    return "".join(f"%{ord(c):02X}" if c in _UNSAFE else c for c in str(value))


def _result(made: list[tuple[str, int]]) -> pa.RecordBatch:
    paths = pa.array([path for path, _ in made], pa.string())
    rows = pa.array([count for _, count in made], pa.int64())
    return pa.RecordBatch.from_arrays([paths, rows], names=["path", "rows"])
