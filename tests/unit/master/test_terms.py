"""Terms are counted for people: one for each leader, however much was written in between."""

import msgspec
import pytest

from holdfast.master.leader_store import KEPT, TERMS, Terms, read
from holdfast.store.contract import Item


def test_terms_are_counted_by_one_though_the_store_has_leapt() -> None:
    terms = Terms().then(2).then(160).then(90_000)
    assert terms.count == 3
    assert terms.numbers() == {2: 1, 160: 2, 90_000: 3}
    again = read(Item(TERMS, msgspec.json.encode(terms), 7, 1))
    assert again == terms


def test_only_the_latest_are_remembered_and_none_is_counted_twice() -> None:
    terms = Terms()
    for revision in range(10, 10 * (KEPT + 20), 10):
        terms = terms.then(revision)
    numbers = terms.numbers()
    assert terms.count == KEPT + 19 and len(numbers) == KEPT
    assert numbers[10 * terms.count] == terms.count and min(numbers.values()) == 20


def test_a_count_that_cannot_be_read_is_said_and_begun_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert read(None) == Terms()
    assert read(Item(TERMS, b"a few", 7, 1)) == Terms()
    assert "cannot be read" in caplog.text
