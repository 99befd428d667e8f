"""The kit finds sinks that are broken: each of these breaks one promise."""

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import ANYBODY, CommitId, Committable, Leftovers, Opening
from holdfast.connectors.files.committer import StagedFiles
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.writer import LocalFileSink
from holdfast.connectors.save_modes import DataSaveMode
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.table import Table
from holdfast.testing import sink_bounds, sink_crashes, sink_openings, sink_rivals
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check


class Copies(LocalFileSink):
    """Files stay staged, and every commit copies them anew."""

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        for source, target in _moves(self, committables):
            shutil.copy(source, target.with_stem(f"{target.stem}-{_count(target.parent)}"))


class ForgetsUsers(LocalFileSink):
    """All users share their numbers."""

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        super().commit(CommitId("all", identifier.number), committables)


class LooksThenActs(LocalFileSink):
    """The number is looked up before, and written down after, the rows show."""

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        mark = Path(self.options.root) / ".holdfast" / f"last-{identifier.user}"
        last = json.loads(mark.read_text()) if mark.exists() else 0
        if identifier.number <= last:
            return
        Copies.commit(self, identifier, committables)  # type: ignore[arg-type]
        mark.write_text(json.dumps(identifier.number))


class Tears(LocalFileSink):
    """Files show one by one, as far as they are there."""

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        for source, target in _moves(self, committables):
            if source.exists():
                source.rename(target)


class SweepsAll(LocalFileSink):
    """A sweep takes everything that is staged."""

    def sweep(self, leftovers: Leftovers) -> None:
        for folder in (Path(self.options.root) / ".holdfast").glob("*-t*"):
            shutil.rmtree(folder)


class NeverSweeps(LocalFileSink):
    """A sweep takes nothing."""

    def sweep(self, leftovers: Leftovers) -> None:
        return


class ShowsAtOnce(LocalFileSink):
    """Rows show before their commit."""

    def write(self, *given: object) -> Sequence[Committable]:
        made = super().write(*given)  # type: ignore[arg-type]
        self.commit(CommitId(str(given[1]), 1), made)
        return made


class EmptiesAtOnce(LocalFileSink):
    """Whoever prepares a table applies its save modes, as if nobody could come late."""

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        made = super().prepare(tables, opening)
        self.commit(CommitId(f"{opening.life}.{time.monotonic_ns()}", 1), made)
        return made


class EmptiesForEachPipeline(LocalFileSink):
    """Which life has emptied a folder is forgotten."""

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        for path in (Path(self.options.root) / ".holdfast" / "opened").glob("*"):
            path.unlink()
        super().commit(identifier, committables)


class EmptiesWhatIsKnown(LocalFileSink):
    """A savepoint's tables are emptied, too."""

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        return super().prepare(tables, Opening(opening.life))


BROKEN: list[tuple[type[LocalFileSink], SinkCheck]] = [
    (ShowsAtOnce, sink_crashes.rows_show_at_their_commit_and_not_before),
    (Copies, sink_crashes.a_process_may_die_between_any_two_calls),
    (Copies, sink_crashes.an_answer_may_be_lost),
    (ForgetsUsers, sink_crashes.numbers_may_have_gaps_and_users_do_not_mask_each_other),
    (LooksThenActs, sink_rivals.an_old_committer_that_was_paused_changes_nothing),
    (Tears, sink_bounds.what_was_staged_and_is_gone_fails_loudly),
    (SweepsAll, sink_bounds.what_a_checkpoint_needs_is_left_alone),
    (NeverSweeps, sink_bounds.leftovers_go),
    (EmptiesAtOnce, sink_openings.save_modes_change_nothing_before_their_commit),
    (EmptiesForEachPipeline, sink_openings.save_modes_apply_once_for_a_life_whoever_commits),
    (EmptiesWhatIsKnown, sink_openings.a_known_table_keeps_its_rows),
]


@pytest.mark.parametrize(("broken", "check"), BROKEN, ids=lambda one: one.__name__)
def test_the_kit_finds(
    broken: type[LocalFileSink], check: SinkCheck, spark: SparkSession, tmp_path: Path
) -> None:
    world = SinkWorld(
        spark,
        partial(_open, broken, tmp_path),
        partial(_read, tmp_path),
        lose=partial(_lose, tmp_path),
        staged=lambda: sum(1 for _ in tmp_path.glob(".holdfast/*-t*/*.parquet")),
        emptying=partial(_open, broken, tmp_path, DataSaveMode.DROP_DATA),
    )
    with pytest.raises(
        (AssertionError, UserError), match=r"broken promise|is gone|exists"
    ) as found:
        run_sink_check(check, world)
    assert check.__name__ in found.value.__notes__[0]


def _open(
    broken: type[LocalFileSink], folder: Path, mode: DataSaveMode = DataSaveMode.APPEND_DATA
) -> LocalFileSink:
    options = LocalFileSinkOptions(
        path=str(folder), file_format_type=FileFormat.PARQUET, data_save_mode=mode
    )
    return broken(options, PluginContext("check", "check", "Sink[0]-LocalFile", Mode.STREAMING))


def _read(folder: Path) -> Iterable[tuple[int, str]]:
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        yield from zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)


def _moves(sink: LocalFileSink, made: Sequence[Committable]) -> Iterable[tuple[Path, Path]]:
    root = Path(sink.options.root)
    for committable in made:
        for source, target in msgspec.convert(committable.content, StagedFiles).files:
            yield root / source, root / target


def _lose(folder: Path, made: Sequence[Committable]) -> None:
    (folder / msgspec.convert(made[-1].content, StagedFiles).files[-1][0]).unlink()


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())
