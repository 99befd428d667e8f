"""A copy with dlt: by the readers it comes with, or fed with Arrow batches by hand.

Run as a script in dlt's own environment: FORMAT IN OUT MARKS READERS, where OUT is a folder or the
address of a PostgreSQL server, and READERS is `own` (rows as Python's dictionaries, as the examples
of its documentation have them) or `arrow` (the fastest that can be had).  dlt can also take over a
Parquet file as it is, without reading a row; that is a copy of files and not of rows, and no other
peer does it, so it is not measured.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
# Files of this many rows are loaded side by side; one file would be loaded by one worker.
os.environ["DATA_WRITER__FILE_MAX_ITEMS"] = "500000"

import dlt
import dlt.sources.filesystem
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from dlt.sources import DltResource

BATCH_ROWS = 131_072
BLOCK_BYTES = 16 << 20
COLUMNS = pa.schema(
    {
        "id": pa.int64(), "customer": pa.int32(), "amount": pa.decimal128(12, 2),
        "price": pa.float64(), "name": pa.string(), "city": pa.string(), "active": pa.bool_(),
        "day": pa.date32(), "at": pa.timestamp("us"), "score": pa.float32(),
    }
)  # fmt: skip

form, source, target, marks, readers = sys.argv[1:6]


def parquet() -> Iterator[pa.RecordBatch]:
    """Read Parquet files as batches."""
    for file in sorted(Path(source).glob("*.parquet")):
        yield from pyarrow.parquet.ParquetFile(file).iter_batches(BATCH_ROWS)


def csv() -> Iterator[pa.RecordBatch]:
    """Read CSV files as batches; faster than the reader that comes with dlt, which is DuckDB's."""
    reading = pyarrow.csv.ReadOptions(column_names=COLUMNS.names, block_size=BLOCK_BYTES)
    types = pyarrow.csv.ConvertOptions(column_types=COLUMNS)
    kind = pyarrow.dataset.CsvFileFormat(read_options=reading, convert_options=types)
    yield from pyarrow.dataset.dataset(source, schema=COLUMNS, format=kind).to_batches()


def own() -> DltResource:
    """Read with what comes with dlt."""
    found = dlt.sources.filesystem.readers(source, file_glob=f"*.{form}")
    if form == "parquet":
        return found.read_parquet()
    return found.read_csv(names=COLUMNS.names, header=None, parse_dates=["day", "at"])


def by_hand() -> DltResource:
    """Read batches with Arrow."""
    return dlt.resource(parquet if form == "parquet" else csv)


def doubles(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Widen `score`: dlt makes a column of doubles for floats and then fails to load floats."""
    place = batch.schema.get_field_index("score")
    return batch.set_column(place, "score", batch.column(place).cast(pa.float64()))


database = target.startswith("postgres")
pipeline = dlt.pipeline(
    "bench",
    destination=dlt.destinations.postgres(target)
    if database
    else dlt.destinations.filesystem(target),
    dataset_name="bench",
    pipelines_dir=str(Path(marks).with_name("dlt")),
)
ready = time.time()
rows = (own() if readers == "own" else by_hand()).with_name("rows")
pipeline.run(
    rows.add_map(doubles) if database else rows,
    write_disposition="append",
    loader_file_format="parquet",
)
ended = time.time()
Path(marks).write_text(json.dumps({"ready": ready, "ended": ended}))
