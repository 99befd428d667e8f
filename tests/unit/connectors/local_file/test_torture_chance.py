"""Csv of random pieces, in random encodings, cut and chunked anywhere, beside a reader by letters.

That reader is the rule of docs/values.md, one character after the other; Python's csv is a third.
"""

import csv
import gzip
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.connectors.files import splits, text_part
from holdfast.errors import UserError
from tests.unit.connectors.local_file.test_torture import read

Make = Callable[..., Any]
PIECES = [
    '"',
    ",",
    "\n",
    "\r\n",
    "\r",
    "a",
    '""',
    '"a"',
    '"a\nb"',
    '"\r\n"',
    " ",
    '5" x',
    "b,",
    "é",
]
WAYS: list[dict[str, Any]] = [
    {}, {"strict_mode": False}, {"null_padding": True}, {"escape_char": "\\"},
    {"encoding": "utf-16"}, {"encoding": "cp1250"}, {"encoding": "gb18030"},
]  # fmt: skip
FILES = 60
WIDTH = 2


@dataclass
class Read:
    """A row as it is read letter by letter."""

    line: int
    fields: list[str]
    early: bool = False
    unclosed: bool = False
    lines: int = 1
    surplus: bool = False

    def fits(self, strict: bool, padding: bool) -> bool:
        """Say whether the table has a row like this."""
        wide = len(self.fields) > WIDTH + self.surplus
        return not (
            self.unclosed
            or (strict and (self.early or wide))
            or (len(self.fields) < WIDTH and not padding)
        )


def by_letters(text: str, escape: str | None = None) -> list[Read]:
    """Return the rows of a text."""
    found: list[Read] = []
    at, line = 0, 1
    while at < len(text):
        row, begin, at = one_row(text, at, line, escape)
        whole = text[begin:at]
        ends = whole.count("\n") + whole.count("\r") - whole.count("\r\n")
        row.lines = ends + (whole[-1] not in "\r\n")
        line += ends
        bare = whole.rstrip("\r\n")
        row.surplus = bare.endswith(",") and row.fields[-1] == ""
        if bare:
            found.append(row)
    return found


def one_row(text: str, at: int, line: int, escape: str | None) -> tuple[Read, int, int]:
    """Return a row, where it begins, and where the next one does."""
    row, begin, state = Read(line, [""]), at, "begin"
    while at < len(text):
        letter, after = text[at], text[at + 1 : at + 2]
        at += 1
        if letter == escape:
            row.unclosed = not after
            row.fields[-1] += after
            row.early |= state == "closed"
            state, at = state if state == "quoted" else "field", at + 1
        elif state == "quoted":
            if letter != '"':
                row.fields[-1] += letter
            elif after == '"':
                row.fields[-1] += letter
                at += 1
            else:
                state = "closed"
        elif letter in "\r\n":
            return row, begin, at + (letter + after == "\r\n")
        elif letter == ",":
            row.fields.append("")
            state = "begin"
        elif letter == '"' and state == "begin":
            state = "quoted"
        else:
            row.early |= state == "closed"
            row.fields[-1] += letter
            state = "field"
    row.unclosed |= state == "quoted"
    return row, begin, at


def python_reads(text: str, escape: str | None) -> list[list[str]]:
    """Return the rows that Python's csv reads, blank lines left out."""
    return [row for row in csv.reader(io.StringIO(text, newline=""), escapechar=escape) if row]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_random_files_are_read_as_by_letters(
    source: Make, tmp_path: Path, way: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(f"{way} {seed}")
    strict, padding = way.get("strict_mode", True), way.get("null_padding", False)
    escape = way.get("escape_char")
    path = tmp_path / ("a.csv.gz" if seed else "a.csv")
    pieces = [*PIECES, *(["\\", '\\"'] if escape else []), *(["中"] if "gb" in str(way) else [])]
    asked = {"path": str(path), "file_format_type": "csv", **way}
    schema = {"fields": {"v": "string", "w": "string"}}
    skipping, failing = (
        source(**asked, schema=schema, row_error_handle_way=end).options for end in ("SKIP", "FAIL")
    )
    for _ in range(FILES):
        text = "".join(dice.choice(pieces) for _ in range(dice.randint(1, 30)))
        data = text.encode(way.get("encoding", "utf-8"))
        path.write_bytes(gzip.compress(data) if seed else data)
        chunk = dice.choice([1, 2, 3, 7, 1 << 20])
        monkeypatch.setattr(text_part, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(splits, "CHUNK_BYTES", chunk)
        cuts = dice.choice([[], [dice.randint(0, len(data))], range(len(data))])
        rows = by_letters(text, escape)
        fitting = [row for row in rows if row.fits(strict, padding)]
        bad = [row for row in rows if not row.fits(strict, padding)]
        wanted = [tuple(f or None for f in (row.fields + [""] * WIDTH)[:WIDTH]) for row in fitting]
        rejected = sum(row.lines if row.unclosed else 1 for row in bad)
        if escape and any(row.unclosed for row in bad):
            found, _ = read(skipping, path, cuts)  # an escaped line end is no line
            assert found == wanted, (text, chunk, cuts)
        else:
            assert read(skipping, path, cuts) == (wanted, rejected), (text, chunk, cuts)
        if bad:
            with pytest.raises(UserError, match=rf", line {bad[0].line}: "):
                read(failing, path, cuts)
        else:
            told = [row.fields for row in rows]
            assert told == python_reads(text, escape), text
