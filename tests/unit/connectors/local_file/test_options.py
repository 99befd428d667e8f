"""What a job file may not say, and how it is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.connect.options import describe
from holdfast.connect.sink import CommitId, Opening
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.source_options import LocalFileSourceOptions
from holdfast.connectors.files.writer import prepare_folder
from holdfast.errors import UserError
from holdfast.model.table import Table, TablePath

Check = Callable[..., list[str]]
SOURCE = {"path": "/data", "file_format_type": "text"}
SINK = {"path": "/data", "file_format_type": "text"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file_format_type": "text"}, "required option 'path' is missing"),
        ({"path": "/data"}, "required option 'file_format_type' is missing"),
        ({"path": "/d", "file_format_type": "doc"}, "text, csv, json, parquet"),
        ({"path": "/d", "file_format_type": "json"}, "json files do not tell their columns"),
        (SOURCE | {"encoding": "martian"}, "encoding = 'martian' is not known"),
        (SOURCE | {"encoding": "rot13"}, "encoding = 'rot13' is not known"),
        (SOURCE | {"encoding": "idna"}, "encoding = 'idna' is not known"),
        (SOURCE | {"compress_codec": "snappy"}, "Good values: none, lzo, gzip"),
        (SOURCE | {"file_filter_pattern": "(a"}, "file_filter_pattern is not a valid pattern"),
        (SOURCE | {"file_filter_modified_end": "soon"}, "is no time. Write it as 2024-01-31"),
        (SOURCE | {"read_columns": ["a"]}, "read_columns of text files needs schema.fields"),
        (
            SOURCE | {"read_columns": ["b"], "schema": {"fields": {"a": "int"}}},
            "no column 'b'. Columns: a.",
        ),
        ({"path": "/d", "file_format_type": "orc", "archive_compress_codec": "zip"}, "Unpack it"),
        ({"tables_configs": [SOURCE, SOURCE]}, "'default.default.default' twice"),
        ({"tables_configs": [{"path": "/d"}]}, "'file_format_type' is missing"),
    ],
)
def test_a_source_says_what_is_wrong(
    mistakes: Check, options: dict[str, Any], message: str
) -> None:
    found = mistakes(LocalFileSourceOptions, **options)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "/"}, "the whole machine"),
        (SINK | {"file_name_expression": "out"}, "must have ${transactionId}"),
        (SINK | {"file_name_expression": "${transactionId}/x"}, "may not have a '/'"),
        (SINK | {"filename_time_format": "YYYY"}, "'Y' in a time pattern is not understood"),
        (SINK | {"compress_codec": "brotli"}, "Good values: none, lzo, snappy, lz4, zlib, gzip."),
        (
            {"path": "/d", "file_format_type": "parquet", "compress_codec": "lzo"},
            "in parquet files",
        ),
        (SINK | {"encoding": "utf-16"}, "Use UTF-8"),
        ({"path": "/d", "file_format_type": "xml"}, "xml files need xml_use_attr_format"),
        (SINK | {"batch_size": 0}, "batch_size"),
        (SINK | {"data_save_mode": "CUSTOM_PROCESSING"}, "DROP_DATA, APPEND_DATA"),
    ],
)
def test_a_sink_says_what_is_wrong(mistakes: Check, options: dict[str, Any], message: str) -> None:
    found = mistakes(LocalFileSinkOptions, **options)
    assert len(found) == 1
    assert message in found[0]


def test_old_and_foreign_options_are_taken(mistakes: Check) -> None:
    assert mistakes(LocalFileSinkOptions, **SINK, save_mode="error", tmp_path="/x") == []
    sink_like = {"is_enable_transaction": True, "partition_dir_expression": "${k0}=${v0}"}
    assert mistakes(LocalFileSourceOptions, **SOURCE, **sink_like, delimiter="|") == []


@pytest.mark.parametrize("cls", [LocalFileSourceOptions, LocalFileSinkOptions])
def test_every_option_is_explained(cls: type) -> None:
    assert [o.key for o in describe(cls) if not o.doc.endswith(".")] == []


def test_dropping_data_empties_the_folder_and_nothing_above_it(
    tmp_path: Path, sink: Callable[..., Any]
) -> None:
    folder = tmp_path / "out"
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=1" / "old.txt").write_text("x")
    (tmp_path / "beside.txt").write_text("x")
    (folder / "link").symlink_to(tmp_path)
    made = sink(path=str(folder), file_format_type="text", data_save_mode="DROP_DATA")
    (due,) = made.prepare([Table(TablePath.parse("db.t"))], Opening("7.x"))
    assert (folder / "day=1" / "old.txt").exists(), "nothing goes before the commit"
    made.commit(CommitId("7.x.1.s", 1), [due])
    assert [p.name for p in folder.iterdir()] == [".holdfast"]
    assert (tmp_path / "beside.txt").exists()


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        ({"schema_save_mode": "ERROR_WHEN_SCHEMA_NOT_EXIST"}, "the folder does not exist"),
        ({"data_save_mode": "ERROR_WHEN_DATA_EXISTS"}, "there are files in it"),
    ],
)
def test_save_modes_may_refuse(
    tmp_path: Path, sink: Callable[..., Any], modes: dict[str, str], message: str
) -> None:
    folder = tmp_path / "out"
    if "data_save_mode" in modes:
        prepare_folder(sink(path=str(folder)).options, "7.x", True)
        prepare_folder(sink(path=str(folder), **modes).options, "7.x", True)
        # What is hidden is no data.
        (folder / "old.csv").write_text("x")
    with pytest.raises(UserError, match=message):
        prepare_folder(sink(path=str(folder), **modes).options, "7.x", True)


def test_a_folder_that_cannot_be_written_is_named_before_any_row(
    tmp_path: Path, sink: Callable[..., Any]
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"cannot write to .*/file/out: Not a directory"):
        prepare_folder(sink(path=str(tmp_path / "file" / "out")).options, "7.x", False)
