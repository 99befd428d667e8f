"""Bugs of the kinds that damage rows silently, planted: the torture files notice each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.connectors.files import splits, text_part, text_values
from holdfast.connectors.files.formats import csv, csv_blocks, csv_quotes, csv_sifting
from holdfast.errors import HoldfastError
from tests.unit.connectors.local_file.test_torture import read, table
from tests.unit.connectors.local_file.torture import CASES, Case

Make = Callable[..., Any]
Plant = Callable[[pytest.MonkeyPatch], None]
assert table, "a fixture"


def cut_at_quoted_line_breaks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv_quotes.Scan, "feed", lambda *_: (csv_quotes.NONE, csv_quotes.NONE))


def splits_begin_at_any_line(patch: pytest.MonkeyPatch) -> None:
    def starts(path: str, places: Any, _dialect: Any) -> dict[int, int]:
        with Path(path).open("rb") as file:
            return {place: splits._line_start(file, place) for place in places}

    patch.setattr(splits, "row_starts", starts)


def null_for_a_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv, "converted", lambda *a: (text_values.converted(*a)[0], []))


def null_for_a_missing_field(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv_sifting, "_by_width", lambda *_: {})


def hexadecimal_for_a_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv, "_has_hex", lambda _: False)


def infinity_for_a_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv, "doubtful", lambda *_: False)


def question_mark_for_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(text_part, "WRONG", ord("?"))
    patch.setattr(csv, "_decoded", lambda cells: (cells.fill_null(b"").cast("binary"), []))


def text_after_a_quote_kept(patch: pytest.MonkeyPatch) -> None:
    follow = csv_quotes.Scan.feed
    patch.setattr(csv_quotes.Scan, "feed", lambda *a: (follow(*a)[0], csv_quotes.NONE))


def unclosed_quotes_swallow(patch: pytest.MonkeyPatch) -> None:
    make = csv_blocks._Cutter._block
    patch.setattr(csv_blocks._Cutter, "_block", lambda self, parts, _: make(self, parts, False))


PLANTS: tuple[Plant, ...] = (
    cut_at_quoted_line_breaks,
    splits_begin_at_any_line,
    null_for_a_value,
    null_for_a_missing_field,
    hexadecimal_for_a_number,
    infinity_for_a_number,
    question_mark_for_bytes,
    text_after_a_quote_kept,
    unclosed_quotes_swallow,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_noticed(
    plant: Plant, table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [case for case in CASES if len(case.content) < 3000]
    assert not any(wrong(case, table) for case in small)
    plant(monkeypatch)
    assert any(wrong(case, table) for case in small)


def wrong(case: Case, table: Make) -> bool:
    """Say whether a file, cut in the middle, is read otherwise than it should be."""
    made, path = table(case, row_error_handle_way="SKIP")
    wanted = (list(case.rows), case.rejected if case.rule else 0)
    try:
        return any(read(made, path, [place]) != wanted for place in (0, len(case.content) // 2))
    except (HoldfastError, AssertionError, ValueError):
        return True
