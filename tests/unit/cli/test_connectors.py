"""`holdfast connectors NAME`."""

import pytest

from holdfast.cli import connectors as verb


@pytest.mark.parametrize("width", [60, 80, 200])
def test_an_option_is_readable_in_a_terminal_of_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    verb.connectors("Jdbc", plugin=[], write=None)
    said = capsys.readouterr().out.splitlines()
    at = said.index("table  (string)")
    assert said[at + 1].startswith("    The table to write, for PostgreSQL perhaps as")
    assert "url  (string, required)" in said
