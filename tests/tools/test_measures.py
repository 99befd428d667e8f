"""What the tools count: lines of code, calls between files, digests of histories, lost guards."""

import asyncio
import sys
from pathlib import Path

import pytest

from tools import digests, rooms, walk
from tools.guards import Meant, compare
from tools.rename_text import Words

CODE = '''"""A module.

Two lines of what it says.
"""

import os
from pathlib import (
    Path,
)

# A comment.
LIMIT = 3
"""What the limit means."""


class A:
    """A class."""

    #: Said of b.
    b: int = 1  # and why

    def c(self) -> str:
        """Return text."""
        return """two
lines"""
'''


def test_only_code_is_counted() -> None:
    lines = CODE.splitlines()
    counted = [lines[n - 1].strip() for n in sorted(rooms.code_lines(CODE))]
    assert counted == [
        "LIMIT = 3", "class A:", "b: int = 1  # and why", "def c(self) -> str:",
        'return """two', 'lines"""',
    ]  # fmt: skip


def test_a_breach_needs_a_row_and_a_row_needs_a_breach(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tidy_exceptions.toml"
    monkeypatch.setattr(rooms, "EXCEPTIONS", file)
    found = {"upper": {"holdfast.a": "351 code lines"}, "lower": {}}
    assert rooms.check(found) == ["upper: holdfast.a: 351 code lines"]
    rooms.freeze(found)
    assert rooms.check(found) == []
    assert rooms.check({"upper": {}, "lower": {}}) == [
        "upper: holdfast.a needs no exception any more: take its row out of tidy_exceptions.toml"
    ]


def test_a_digest_sees_every_fact_and_only_one_of_two_sees_sentences() -> None:
    history = [{"kind": "write", "label": "pipeline.Doomed", "why": "It went wrong."}]
    reworded = [{**history[0], "why": "It failed."}]
    renamed = [{**history[0], "label": "pipeline.Failed"}]
    names = {"values": {"pipeline.Failed": "pipeline.Doomed"}}
    every, shape = digests.digests(history, {})
    assert digests.digests(reworded, {}) == (digests.digests(reworded, {})[0], shape)
    assert digests.digests(reworded, {})[0] != every
    assert digests.digests(renamed, {})[1] != shape
    assert digests.digests(renamed, names) == (every, shape)


def test_what_a_checkpoint_holds_is_compared_without_its_checksum() -> None:
    one = [{"content": '12 abc\n{"version":1}'}]
    two = [{"content": '99 def\n{"version":1}'}]
    other = [{"content": '12 abc\n{"version":2}'}]
    assert digests.digests(one, {}) == digests.digests(two, {})
    assert digests.digests(one, {})[1] != digests.digests(other, {})[1]


def test_a_guard_names_what_is_lost_unless_it_was_meant() -> None:
    before = {"cli": {"run --cores": {"help": "Cores."}, "run -q": {}}, "tests": {"a::b": 3}}
    now = {"cli": {"run --cores": {"help": "Other."}}, "tests": {"a::b": 2}}
    wrong = compare(before, now, Meant({}, Words({}), {}))
    assert [line.split("\n")[0] for line in wrong] == [
        "cli: LOST run -q", "cli: CHANGED run --cores", "tests: CHANGED a::b",
    ]  # fmt: skip
    tables = {"cli": {"gone": {"run -q": "why"}, "renamed": {"Cores.": "Other."}},
              "tests": {"gone": {"a::*": "why"}}}  # fmt: skip
    assert compare(before, now, Meant(tables, Words({}), {})) == []


def test_a_guard_of_wrong_names_fails_for_a_new_one() -> None:
    meant = Meant({}, Words({}), {})
    assert compare({"dotted_strings": {}}, {"dotted_strings": {"holdfast.no": "x"}}, meant)


def test_moved_tests_are_the_same_tests() -> None:
    meant = Meant({}, Words({"tests.unit.node.test_a": "tests.unit.api.test_a"}), {})
    before = {"tests": {"tests/unit/node/test_a.py::test_x": 2}}
    now = {"tests": {"tests/unit/api/test_a.py::test_x": 2}}
    assert compare(before, now, meant) == []


def test_a_call_between_files_counts_once_for_each_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "callee.py").write_text(
        "import asyncio\n\n\ndef steps():\n    yield 1\n    yield 2\n\n\n"
        "async def late():\n    await asyncio.sleep(0)\n    return 1\n"
    )
    (tmp_path / "caller.py").write_text(
        "import callee\n\n\nasync def go():\n    return list(callee.steps()), await callee.late()\n"
        "\n\ndef sort():\n    return sorted([2, 1], key=lambda n: n)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(walk, "PACKAGE", f"{tmp_path}/")
    import caller  # type: ignore[import-not-found]

    tracer = walk.Tracer()
    sys.setprofile(tracer.note)
    try:
        asyncio.run(caller.go())
        caller.sort()
    finally:
        sys.setprofile(None)
    (phase,) = tracer.phases
    assert dict(phase[1]) == {
        ("caller.py", "go", "callee.py", "steps"): 1,
        ("caller.py", "go", "callee.py", "late"): 1,
    }
