"""The log in a file."""

import logging
from pathlib import Path

import pytest

from holdfast.cli.logs import LogFile


def test_a_log_that_cannot_be_written_is_told_once_and_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / "full.log"
    full.symlink_to("/dev/full")  # Linux's device of which no byte can be written
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    handler = LogFile(full)
    log = logging.Logger("test")
    log.addHandler(handler)
    log.warning("one")
    log.warning("two")
    handler.close()
    said = capsys.readouterr().err
    assert said == (
        f"The log {full} cannot be written: No space left on device."
        " What comes now may not be in it.\n"
    )
