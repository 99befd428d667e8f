"""Count words that sound translated, in whatever people read.

    python -m tools.words             each word: how often, its ceiling, what it was at first
    python -m tools.words --lower     lower the ceilings to today's counts; none is ever raised
    python -m tools.words --where nobody   where a word stands

Read are comments, docstrings and sentences (texts with a blank) of production, the pages, the
Makefile and the texts of the UI.  `tests/plain_english.txt` has a line for each word: the word, its
ceiling, the first count, and what to say instead.
"""

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "plain_english.txt"
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Makefile")
HEAD = """\
# Words that sound translated: word | ceiling | first count | say instead.
# `python -m tools.words --lower` lowers ceilings.  The goal is a tenth of the first count.
"""


@dataclass(frozen=True)
class Word:
    """A word, how often it may stand, and what to say instead."""

    text: str
    ceiling: int
    first: int
    instead: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds it: whole words in any case, over line breaks."""
        text = r"[\s#]+".join(re.escape(part) for part in self.text.split())
        return re.compile(rf"\b{text}\b", re.IGNORECASE)

    def line(self) -> str:
        """Return its line."""
        return f"{self.text} | {self.ceiling} | {self.first} | {self.instead}\n"


def words() -> list[Word]:
    """Read the list."""
    found = []
    for line in FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            text, ceiling, first, instead = (part.strip() for part in line.split("|"))
            found.append(Word(text, int(ceiling), int(first), instead))
    return found


def texts() -> Iterator[tuple[str, str]]:
    """Yield what people read: where it is, and the text."""
    for path in sorted((ROOT / "holdfast").rglob("*.py")):
        if "testing" not in path.relative_to(ROOT).parts:
            yield str(path.relative_to(ROOT)), "\n".join(sentences(path.read_text()))
    pages = [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").glob("*.md"))]
    pages += [p for kind in ("svelte", "js") for p in sorted((ROOT / "ui/src").rglob(f"*.{kind}"))]
    for path in pages:
        yield str(path.relative_to(ROOT)), path.read_text()


def sentences(code: str) -> Iterator[str]:
    """Yield the comments of a file, and its strings that have a blank."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        text = token.string
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in text):
            yield text


def count(listed: Sequence[Word]) -> dict[str, int]:
    """Return how often each word stands."""
    every = [text for _, text in texts()]
    return {w.text: sum(len(w.pattern.findall(text)) for text in every) for w in listed}


def where(word: Word) -> Iterator[str]:
    """Yield each place of a word: its file and the words around it."""
    for name, text in texts():
        for match in word.pattern.finditer(text):
            near = text[max(0, match.start() - 40) : match.end() + 40]
            yield f"{name}: ...{' '.join(near.split())}..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Show, lower or find."""
    parser = argparse.ArgumentParser(prog="python -m tools.words")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings")
    parser.add_argument("--where", metavar="WORD", help="show where a word stands")
    given = parser.parse_args(arguments)
    listed = words()
    if given.where:
        asked = [w for w in listed if w.text == given.where]
        print("\n".join(line for word in asked for line in where(word)))
        return 0 if asked else 1
    counts = count(listed)
    if given.lower:
        new = [replace(w, ceiling=min(w.ceiling, counts[w.text])) for w in listed]
        FILE.write_text(HEAD + "".join(w.line() for w in new))
        return 0
    for word in listed:
        print(f"{word.text:<14}{counts[word.text]:>6} of {word.ceiling:>5}, first {word.first}")
    above = [w.text for w in listed if counts[w.text] > w.ceiling]
    print(f"Above the ceiling: {', '.join(above) or 'none'}.")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
