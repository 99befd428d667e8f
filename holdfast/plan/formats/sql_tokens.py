"""The words of a SQL job file, each with its place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.errors import SourceLocation
from holdfast.plan.syntax import LineIndex, Unreadable, quote

_TOKEN = re.compile(
    r"(?P<gap>\s+|\ufeff|--[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:[^']|'')*+')"
    r'|(?P<quoted>`[^`]*`|"[^"]*")'
    r"|(?P<word>(?:[^\W\d]|\$\{[^}]*\})(?:\w|\$\{[^}]*\})*)"
    r"|(?P<other>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a string, a quoted name or a mark.  `text` is its meaning, quotes removed."""

    kind: str
    text: str
    start: int
    end: int
    place: SourceLocation


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, content) of every `/* */` comment."""
    for found in _TOKEN.finditer(text):
        if found[0].startswith("/*") and found["gap"]:
            yield found.start() + 2, found[0][2:-2]


def statements(text: str, lines: LineIndex) -> Iterator["Statement"]:
    """Yield the words between semicolons; the last semicolon may be missing."""
    tokens: list[Token] = []
    for token in _tokens(text, lines):
        if token.kind == "other" and token.text == ";":
            if tokens:
                yield Statement(text, lines, tokens)
            tokens = []
        else:
            tokens.append(token)
    if tokens:
        yield Statement(text, lines, tokens)


def _tokens(text: str, lines: LineIndex) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        kind, start, end = found.lastgroup or "", found.start(), found.end()
        if kind == "gap":
            continue
        place, meant = lines.at(start), found[0]
        if kind == "string":
            meant = meant[1:-1].replace("''", "'")
        elif kind == "quoted":
            meant = meant[1:-1]
        elif meant in "'`\"" or text.startswith("/*", start):
            mark = "/*" if meant == "/" else meant
            raise Unreadable(place, f"This {mark} is never closed. Close it.")
        yield Token(kind, meant, start, end, place)


class Statement:
    """A cursor over the words of one statement."""

    def __init__(self, text: str, lines: LineIndex, tokens: list[Token]) -> None:
        self.text, self.lines, self.tokens = text, lines, tokens
        self.pos = 0
        self._select = 0

    @property
    def place(self) -> SourceLocation:
        """The cursor's place; at the end, the last word."""
        return self.tokens[min(self.pos, len(self.tokens) - 1)].place

    @property
    def shown(self) -> str:
        """What is at the cursor, for a message."""
        if self.pos >= len(self.tokens):
            return "the end of the statement"
        token = self.tokens[self.pos]
        if token.kind == "string":
            return "a quoted text"  # it may be a password
        return quote(self.text[token.start : token.end])

    def starts(self, *words: str) -> bool:
        """Step over these words if the statement starts with them, and say whether it did."""
        self.pos = 0
        if len(self.tokens) < len(words):
            return False
        if any(not _is(t, w) for t, w in zip(self.tokens, words, strict=False)):
            return False
        self.pos = len(words)
        return True

    def has(self, word: str) -> bool:
        """Say whether a word occurs outside parentheses, before any SELECT."""
        depth = 0
        for token in self.tokens:
            depth += (token.text == "(") - (token.text == ")") if token.kind == "other" else 0
            if depth == 0 and _is(token, word):
                return True
            if _is(token, "SELECT"):
                return False
        return False

    def peek(self, word: str) -> bool:
        """Say whether this word or mark comes next."""
        return self.pos < len(self.tokens) and _is(self.tokens[self.pos], word)

    def take(self, word: str) -> bool:
        """Step over this word or mark if it comes next, and say whether it did."""
        found = self.peek(word)
        self.pos += found
        return found

    def expect(self, word: str) -> None:
        """Step over this word or mark, which must come next."""
        if not self.take(word):
            raise Unreadable(self.place, f"Found {self.shown} where {word} should stand.")

    def expect_end(self) -> None:
        """Refuse anything more."""
        if self.pos < len(self.tokens):
            raise Unreadable(self.place, f"Found {self.shown}. Put a ; before it, or remove it.")

    def string(self, what: str) -> Token:
        """Take a 'quoted' string."""
        if self.pos >= len(self.tokens) or self.tokens[self.pos].kind != "string":
            raise Unreadable(
                self.place, f"Found {self.shown} where {what} in 'single quotes' should stand."
            )
        self.pos += 1
        return self.tokens[self.pos - 1]

    def name(self) -> Token:
        """Take a table's name; of a dotted one the last part counts."""
        while True:
            if self.pos >= len(self.tokens) or self.tokens[self.pos].kind not in ("word", "quoted"):
                raise Unreadable(self.place, f"Found {self.shown} where a table's name should be.")
            token = self.tokens[self.pos]
            self.pos += 1
            if not self.take("."):
                return token

    def skip_parentheses(self) -> None:
        """Step over a parenthesis and all in it."""
        opened, depth = self.place, 0
        while self.pos < len(self.tokens):
            depth += self.peek("(") - self.peek(")")
            self.pos += 1
            if depth == 0:
                return
        raise Unreadable(opened, "This ( is never closed. Add a ).")

    def read_from(self) -> Token:
        """Take a SELECT to its end and return the table it reads; the cursor stays on SELECT.

        `SELECT t` alone reads all of t.
        """
        if not self.peek("SELECT"):
            raise Unreadable(self.place, f"Found {self.shown} where SELECT should stand.")
        self._select = self.pos
        if not self._seek("FROM"):
            self.pos = self._select + 1
            table = self.name()
            if self.pos < len(self.tokens):
                raise Unreadable(self.place, f"Found {self.shown} where FROM should stand.")
        else:
            table = self.name()
        self.pos = self._select
        return table

    def _seek(self, word: str) -> bool:
        """Step behind a word that is outside parentheses, if there is one."""
        depth = 0
        while self.pos < len(self.tokens):
            depth += self.peek("(") - self.peek(")")
            self.pos += 1
            if depth == 0 and _is(self.tokens[self.pos - 1], word):
                return True
        return False

    @property
    def is_direct(self) -> bool:
        """Whether the SELECT takes a whole table as it is: `SELECT * FROM t` or `SELECT t`."""
        words = self.tokens[self._select + 1 :]
        if not any(_is(t, "FROM") for t in words):
            return True
        star = len(words) > 2 and _is(words[0], "*") and _is(words[1], "FROM")
        rest = words[2:]
        dots = all(t.text == "." for t in rest[1::2])
        return star and len(rest) % 2 == 1 and dots

    @property
    def query(self) -> str:
        """The SELECT as the file has it, its comments left out."""
        text = ""
        end = self.tokens[self._select].start
        for token in self.tokens[self._select :]:
            gap = self.text[end : token.start]
            if "--" in gap or "/*" in gap:
                gap = " "
            text += gap + self.text[token.start : token.end]
            end = token.end
        return text


def _is(token: Token, word: str) -> bool:
    return token.kind in ("word", "other") and token.text.upper() == word
