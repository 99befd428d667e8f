"""The sinks that mark partitions: which of them a commit has touched, and where marks go."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import CommitEvent, CommitId, Committable, Sink
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.staged_files import DeltaFile as DeltaFile
from holdfast.connectors.delta.staged_files import DeltaStaged as DeltaStaged
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.connectors.files.committer import StagedFiles as LocalStaged
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.writer import LocalFileSink
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.staged_files import IcebergFile as IcebergFile
from holdfast.connectors.iceberg.staged_files import IcebergStaged as IcebergStaged
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.lake.mark_options import Action, Actions
from holdfast.model.job import Mode

CONTEXT = PluginContext("7", "job", "Sink[0]", Mode.BATCH)
MARK: dict[str, Any] = {
    "mark_done": Actions((Action.SUCCESS_FILE,)),
    "end_input_to_done": True,
}
LOCAL, LAKE = ".holdfast/7.i-t-a1-s1-t0", "_holdfast/7.i-t-a1-s1-t0"
VALUES = ("2024-05-01", "a b/ö", None)


def marked(sink: Sink[Any], root: Path, *committables: Committable) -> list[str]:
    """What is marked below a folder when the last commit has these."""
    assert sink.listens
    state = sink.listen(CommitEvent(CommitId("u", 1), committables), None)
    assert state is not None and not list(root.rglob("_SUCCESS"))
    assert sink.listen(CommitEvent(CommitId("u", 2), (), final=True), state) is None
    return sorted(str(p.parent.relative_to(root)) for p in root.rglob("_SUCCESS"))


def committable(content: Any) -> Committable:
    return Committable(1, "db.t", 1, 1, content)


@pytest.mark.parametrize(
    ("expression", "folders"),
    [
        ("${k0}=${v0}/${k1}=${v1}", ["dt=2024-05-01/hr=1", "dt=2024-05-01/hr=2"]),
        ("${v0}/${v1}", ["2024-05-01/1", "2024-05-01/2"]),
    ],
)
def test_files_are_marked_in_their_folders(
    tmp_path: Path, expression: str, folders: list[str]
) -> None:
    sink = LocalFileSink(
        LocalFileSinkOptions(
            path=str(tmp_path), partition_by=["dt", "hr"], partition_dir_expression=expression,
            **MARK,
        ),
        CONTEXT,
    )  # fmt: skip
    files = tuple((f"{LOCAL}/{n}", f"{folder}/{n}.csv") for n, folder in enumerate(folders))
    staged = LocalStaged(str(tmp_path), LOCAL, (*files, (f"{LOCAL}/9", "top.csv")))
    assert marked(sink, tmp_path, committable(staged.to_plain())) == folders


def test_delta_marks_beside_the_files(tmp_path: Path) -> None:
    sink = DeltaSink(DeltaSinkOptions(path=str(tmp_path), **MARK), CONTEXT)
    places = ("dt=2024-05-01", "partition=0815", "dt=__HIVE_DEFAULT_PARTITION__")
    files = [
        DeltaFile(f"{LAKE}/{n}", f"{place}/{n}.parquet", 1, 1, {"dt": value}, "{}")
        for n, (place, value) in enumerate(zip(places, VALUES, strict=True))
    ]
    staged = DeltaStaged(str(tmp_path), LAKE, "{}", ["dt"], files)
    assert marked(sink, tmp_path, committable(staged.to_plain())) == sorted(places)


def test_iceberg_marks_below_data(tmp_path: Path) -> None:
    catalog, place = {"type": "hadoop", "warehouse": tmp_path.as_uri()}, tmp_path / "db" / "t"
    sink = IcebergSink(
        IcebergSinkOptions(catalog=catalog, namespace="db", table="t", **MARK), CONTEXT
    )
    files = [
        IcebergFile(f"{LAKE}/{n}", f"data/{n}", 1, 1, [value], [], {}, {}, {}, {}, {})
        for n, value in enumerate(VALUES)
    ]
    staged = IcebergStaged(["db", "t"], str(place), LAKE, 0, {}, True, files, ["dt"])
    found = marked(sink, place, committable(staged.to_plain()))
    assert found == ["data/dt=2024-05-01", "data/dt=a%20b%2F%C3%B6", "data/dt=null"]


@pytest.mark.parametrize("partitions", [["dt"], None])
def test_a_file_sink_without_partitions_cannot_mark_any(partitions: list[str] | None) -> None:
    options = LocalFileSinkOptions(path="/x", partition_by=partitions, **MARK)
    said = [message for _, message in options.problems()]
    assert any("give partition_by" in message for message in said) == (partitions is None)
