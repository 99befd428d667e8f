"""`holdfast audit verify`: a line that was changed or taken out shows."""

from pathlib import Path

import pytest

from holdfast.api.access import ADMIN
from holdfast.api.audit import Audit
from holdfast.cli.audit import audit
from holdfast.errors import UserError


def written(file: Path) -> Path:
    log = Audit(file)
    for number in range(3):
        log.forces(ADMIN, f"job-{number}")
    return file


def test_a_log_that_nobody_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "audit.log")
    audit("verify", file)
    assert capsys.readouterr().out == f"{file}: 3 lines, and each follows from the one before.\n"


def test_a_changed_line_and_a_missing_one_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "audit.log")
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0].replace("job-0", "job-9"), *lines[1:]]))
    with pytest.raises(UserError, match="line 2 does not follow"):
        audit("verify", file)
    file.write_text("\n".join([lines[0], lines[2]]))
    with pytest.raises(UserError, match="line 2 does not follow"):
        audit("verify", file)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        audit("verify", tmp_path / "audit.log")
