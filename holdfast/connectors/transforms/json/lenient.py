"""Read JSON as people write it: keys and values without quotes, single quotes, spare commas.

SeaTunnel's JsonPath reads such text, so jobs rely on it.  The rules are those of json-smart's
permissive mode: a bare key ends at `:`, a bare value at `,` or at the bracket that closes it, and
what follows the first value is ignored.
"""

import re

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

WORDS: dict[str, Json] = {"null": None, "true": True, "false": False, "NaN": float("nan")}
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_WHOLE = re.compile(r"-?\d+")
_BROKEN = re.compile(r"-?\d*\.\d+(?:[eE][+-]?\d+)?|-?\d+[eE][+-]?\d+")
_SPACE = re.compile(r"\s*")
_SPACE_OR_COMMA = re.compile(r"[\s,]*")
_UNICODE = re.compile(r"[0-9a-fA-F]{4}")


class Float(float):
    """A number with a fraction that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> "Float":
        """Read the number."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def parse(text: str) -> Json:
    """Return what the text says.  Raises ValueError with a sentence if it makes no sense."""
    return _Reader(text).value("")


class _Reader:
    """A cursor over the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self, what: re.Pattern[str] = _SPACE) -> str:
        """Pass over what does not matter and return the character there; empty at the end."""
        found = what.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def wrong(self, wanted: str) -> ValueError:
        here = self.text[self.at : self.at + 20] or "the end"
        return ValueError(f"{wanted} should stand at character {self.at + 1}, before '{here}'")

    def value(self, ends: str) -> Json:
        match self.skip():
            case "{":
                return self._object()
            case "[":
                return self._array()
            case '"' | "'":
                return self._quoted()
        return _meaning(self._bare(ends))

    def _object(self) -> dict[str, Json]:
        self.at += 1
        made: dict[str, Json] = {}
        while (here := self.skip(_SPACE_OR_COMMA)) != "}":
            key = self._quoted() if here and here in "\"'" else self._bare(":")
            if self.skip() != ":":
                raise self.wrong("':'")
            self.at += 1
            made[key] = self.value(",}")
            if self.skip() not in (",", "}"):
                raise self.wrong("',' or '}'")
        self.at += 1
        return made

    def _array(self) -> list[Json]:
        self.at += 1
        made: list[Json] = []
        while self.skip(_SPACE_OR_COMMA) != "]":
            made.append(self.value(",]"))
            if self.skip() not in (",", "]"):
                raise self.wrong("',' or ']'")
        self.at += 1
        return made

    def _quoted(self) -> str:
        mark = self.text[self.at]
        self.at += 1
        parts: list[str] = []
        while (here := self.text[self.at : self.at + 1]) != mark:
            if not here:
                raise self.wrong(f"a closing {mark}")
            self.at += 1
            parts.append(self._escaped() if here == "\\" else here)
        self.at += 1
        return "".join(parts)

    def _escaped(self) -> str:
        mark = self.text[self.at : self.at + 1]
        self.at += 1
        if mark != "u":
            return ESCAPES.get(mark, mark)
        code = _UNICODE.match(self.text, self.at)
        if not code:
            raise self.wrong("four hexadecimal digits")
        self.at = code.end()
        return chr(int(code[0], 16))

    def _bare(self, ends: str) -> str:
        """Return what is here without quotes, up to one of `ends`."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            self.at += 1
        word = self.text[start : self.at].strip()
        if not word or (ends and self.at == len(self.text)):
            raise self.wrong("a value")
        return word


def _meaning(word: str) -> Json:
    if word in WORDS:
        return WORDS[word]
    if _WHOLE.fullmatch(word):
        return int(word)
    return Float(word) if _BROKEN.fullmatch(word) else word
