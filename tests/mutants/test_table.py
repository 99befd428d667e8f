"""Each planted bug still has its place, and tests of the names it gives."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, planted
from tests.mutants.table import BUGS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: str(bug.name))
def test_a_planted_bug_has_its_place_and_its_tests(bug: Bug) -> None:
    good = (ROOT / bug.file).read_text()
    bad = planted(bug, good)
    assert bad != good
    if bug.file.endswith(".py"):
        compile(bad, bug.file, "exec")
    for test in bug.tests:
        file, _, name = test.partition("::")
        found = {n.name for n in _functions(ROOT / file)}
        assert not name or name in found, f"{bug.name}: there is no {test}"
    assert bug.tests


def test_no_two_bugs_have_one_name() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)


def _functions(path: Path) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
