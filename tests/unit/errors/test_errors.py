"""Broken job files beside the exact words a user is told.

Each file in `cases` has a `.txt` of the same name.  `python tests/unit/errors/test_errors.py`
rewrites them all; read the difference as an operator would at three in the morning: what is wrong,
where, why, and what to do?
"""

from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import options
from holdfast.connect.registry import Registry
from holdfast.connect.source import Source
from holdfast.errors import JobFileError
from holdfast.model.secret import Secret
from holdfast.plan.check import check_job
from holdfast.plan.load import decode_job, parse_job

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(p for p in FOLDER.iterdir() if p.suffix != ".txt")
VARIABLES = {"reserved_variable.conf": {"table_name": "people"}}


@options
class VaultOptions:
    password: Secret  #: What opens it.
    pin: Secret | None = None  #: What opens it, too.
    token: list[Secret] | None = None  #: More of that kind.


class Vault(Source[VaultOptions]):
    name = "Vault"


@cache
def registry(vault: bool) -> Registry:
    """All connectors; for the case about secrets, one more that has some."""
    found = Registry.load()
    if vault:
        module = ModuleType("vault")
        vars(module).update(Vault=Vault)
        found.add(module)
    return found


def include(path: str) -> str:
    """There is nothing to include."""
    raise FileNotFoundError(path)


def told(case: Path) -> str:
    """Return what a user is told about a job file; empty if nothing is wrong."""
    report = CheckReport()
    try:
        text = decode_job(case.read_bytes(), case.name)
        tree = parse_job(text, case.name, VARIABLES.get(case.name, {}), include, report)
        if tree is not None:
            job = check_job(tree, case.name, registry("secret" in case.stem), report)
            assert (job is None) == bool(report.mistakes)
        report.raise_if_any()
    except JobFileError as error:
        return f"{error}\n"
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_job_file_is_explained(case: Path) -> None:
    found = told(case)
    assert found
    assert "hunter" not in found
    assert found == case.with_suffix(".txt").read_text(encoding="utf-8")


def test_there_is_an_explanation_for_every_case_and_none_to_spare() -> None:
    explained = {p.stem for p in FOLDER.glob("*.txt")}
    assert explained == {case.stem for case in CASES}
    assert len(CASES) >= 35


if __name__ == "__main__":
    for one in CASES:
        one.with_suffix(".txt").write_text(told(one), encoding="utf-8")
