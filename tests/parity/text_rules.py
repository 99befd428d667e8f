"""Rules of SeaTunnel's text functions.  Texts are in units of UTF-16, as in Java.

Each rule's sentence is its docstring.  Regular expressions are Python's here: the table uses only
such as mean the same in Java.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

from tests.parity.java import Fails, J, characters, text, units

Rule = Callable[..., J]
TEXT: dict[str, Rule] = {}


def _rule(kind: str, *names: str, nulls: bool = False) -> Callable[[Any], Any]:
    """Register a rule on plain values; without `nulls` a NULL first argument gives NULL."""

    def register(function: Any) -> Any:
        def call(*args: J) -> J:
            if args and args[0].value is None and not nulls:
                return J(kind, None)
            plain = [units(a.value) if isinstance(a.value, str) else a.value for a in args]
            made = function(*plain)
            if isinstance(made, list):
                made = [characters(part) for part in made]
            return J(kind, characters(made) if isinstance(made, str) else made)

        call.__name__, call.__doc__ = function.__name__, function.__doc__
        TEXT.update(dict.fromkeys(names, call))
        return function

    return register


@_rule("int", "ASCII")
def ascii_(s: str) -> int | None:
    """The code of the first unit; NULL for an empty text."""
    return ord(s[0]) if s else None


@_rule("bigint", "BIT_LENGTH")
def bit_length(s: str) -> int:
    """Eight for each byte of UTF-8."""
    return 8 * octet_length(s)


@_rule("bigint", "OCTET_LENGTH")
def octet_length(s: str) -> int:
    """The bytes of UTF-8."""
    return len(characters(s).encode())


@_rule("bigint", "CHAR_LENGTH", "LENGTH")
def char_length(s: str) -> int:
    """The units of UTF-16."""
    return len(s)


@_rule("string", "CHAR", "CHR")
def chr_(code: int) -> str:
    """The unit with the code's lower 16 bits."""
    return chr(int(code) & 0xFFFF)


def concat(*parts: J) -> J:
    """All that is not NULL, each as Java prints it."""
    return J("string", "".join(text(p) for p in parts if p.value is not None))


def concat_ws(by: J, *parts: J) -> J:
    """All that is not NULL, with the separator between; an array without NULLs is one part."""
    found = []
    for part in parts:
        if isinstance(part.value, list):
            found.append((by.value or "").join(p for p in part.value if p is not None))
        elif part.value is not None:
            found.append(text(part))
    return J("string", (by.value or "").join(found))


@_rule("string", "HEXTORAW")
def hextoraw(s: str) -> str:
    """A unit for each four hexadecimal digits; another count of digits fails."""
    if len(s) % 4:
        raise Fails(s)
    return "".join(chr(int(s[i : i + 4], 16)) for i in range(0, len(s), 4))


def rawtohex(value: J) -> J:
    """Four hexadecimal digits for each unit of the text; two for each byte of bytes."""
    if value.value is None:
        return J("string", None)
    if isinstance(value.value, bytes):
        return J("string", value.value.hex())
    return J("string", "".join(f"{ord(c):04x}" for c in units(text(value))))


@_rule("string", "INSERT", nulls=True)
def insert(s: str | None, start: int, length: int, new: str | None) -> str | None:
    """Replaces from a place; unchanged where the place or the length makes no sense."""
    if s is None or new is None:
        return new if s is None else s
    if start < 1 or length <= 0 or not new or start - 1 > len(s):
        return s
    return s[: start - 1] + new + s[start - 1 + length :]


@_rule("string", "LOWER", "LCASE")
def lower(s: str) -> str:
    """Lower case, without regard to any language."""
    return s.lower()


@_rule("string", "UPPER", "UCASE")
def upper(s: str) -> str:
    """Upper case, without regard to any language."""
    return s.upper()


@_rule("string", "LEFT")
def left(s: str, count: int) -> str:
    """The first units; an empty text for a negative count."""
    return s[: max(count, 0)]


@_rule("string", "RIGHT")
def right(s: str, count: int) -> str:
    """The last units; an empty text for a negative count."""
    return s[len(s) - min(count, len(s)) :] if count > 0 else ""


def _find(s: str, search: str, start: int) -> int:
    if start < 0:
        at = len(s) + start
        return s.rfind(search, 0, at + len(search)) + 1 if at >= 0 else 0
    at = max(start - 1, 0)
    if at >= len(s):
        return 0 if search else len(s) + 1
    return s.find(search, at) + 1


@_rule("int", "LOCATE", "POSITION", nulls=True)
def locate(search: str, s: str | None, start: int = 1) -> int:
    """The place of the first match from a place on, backwards from a negative one; else 0."""
    return 0 if s is None else _find(s, search, start)


@_rule("int", "INSTR", nulls=True)
def instr(s: str | None, search: str, start: int = 1) -> int:
    """As LOCATE, with the text first."""
    return 0 if s is None else _find(s, search, start)


def _pad(s: str, size: int, fill: str | None) -> tuple[str, str]:
    size = max(size, 0)
    return s[:size], (fill or " ")[0] * (size - len(s))


@_rule("string", "LPAD")
def lpad(s: str, size: int, fill: str | None = None) -> str:
    """Cut to a length, or filled on the left with the first unit of the last argument."""
    kept, filled = _pad(s, size, fill)
    return filled + kept


@_rule("string", "RPAD")
def rpad(s: str, size: int, fill: str | None = None) -> str:
    """Cut to a length, or filled on the right with the first unit of the last argument."""
    kept, filled = _pad(s, size, fill)
    return kept + filled


@_rule("string", "LTRIM")
def ltrim(s: str, what: str | None = None) -> str:
    """Without one unit, or space, at the beginning."""
    return s.lstrip((what or " ")[0])


@_rule("string", "RTRIM")
def rtrim(s: str, what: str | None = None) -> str:
    """Without one unit, or space, at the end."""
    return s.rstrip((what or " ")[0])


@_rule("string", "TRIM")
def trim(s: str, what: str | None = None) -> str:
    """Without one unit, or space, at both ends."""
    return s.strip((what or " ")[0])


CLASSES = {r"\w": "[a-zA-Z_0-9]", r"\d": "[0-9]", r"\s": r"[ \t\n\x0b\f\r]"}


def _pattern(pattern: str, mode: str | None = None) -> re.Pattern[str]:
    """Return an expression with Java's classes, which know no letters but a to z."""
    for name, meant in CLASSES.items():
        pattern = pattern.replace(name, meant)
    return re.compile(pattern, _flags(mode))


def _flags(mode: str | None) -> int:
    flags = 0
    for letter in mode or "":
        match letter:
            case "i":
                flags |= re.IGNORECASE
            case "c":
                flags &= ~re.IGNORECASE
            case "n":
                flags |= re.DOTALL
            case "m":
                flags |= re.MULTILINE
            case _:
                raise Fails(mode)
    return flags


@_rule("string", "REGEXP_REPLACE")
def regexp_replace(s: str, pattern: str, new: str, mode: str | None = None) -> str:
    """Every match replaced; $1 stands for a group."""
    return _pattern(pattern, mode).sub(re.sub(r"\$(\d)", r"\\g<\1>", new), s)


@_rule("boolean", "REGEXP_LIKE")
def regexp_like(s: str, pattern: str, mode: str | None = None) -> bool:
    """Whether the expression matches anywhere."""
    return _pattern(pattern, mode).search(s) is not None


@_rule("string", "REGEXP_SUBSTR")
def regexp_substr(s: str, pattern: str, *more: Any) -> str | None:
    """A match or a group of it, from a place on; NULL where none is, and with 3 to 5 arguments."""
    if more and len(more) < 4:
        return None
    start, number, mode, group = more or (None, None, None, None)
    if (start or 1) > len(s) + 1:
        raise Fails(start)
    found = list(_pattern(pattern, mode).finditer(s, (start or 1) - 1))
    wanted = number or 1
    return found[wanted - 1].group(group or 0) if len(found) >= wanted else None


@_rule("string", "REPEAT")
def repeat(s: str, count: int) -> str:
    """The text so many times; empty for none."""
    return s * max(count, 0)


@_rule("string", "REPLACE")
def replace(s: str, old: str, new: str | None = None) -> str:
    """Every place of a text replaced; NULL and nothing remove it; an empty text changes nothing."""
    return s.replace(old, new or "") if old else s


SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "71237128722455712623718272", strict=True))


@_rule("string", "SOUNDEX")
def soundex(s: str) -> str:
    """The first letter and three digits of sounds; 7 parts sounds that are alike, 8 does not."""
    made, last = "", "0"
    for letter in s:
        sound = SOUNDS.get(letter.upper()) if letter.isascii() else None
        if sound is None or len(made) == 4:
            continue
        if not made:
            made, last = letter.upper(), sound
        elif sound <= "6" and sound != last:
            made, last = made + sound, sound
        elif sound == "7":
            last = sound
    return made.ljust(4, "0")


@_rule("string", "SPACE")
def space(count: int) -> str:
    """So many spaces."""
    return " " * max(count, 0)


def substring(value: J, start: J, length: J | None = None) -> J:
    """From a place, or so many before the end; NULL where nothing is left."""
    if value.value is None:
        return J("string", None)
    s, at = units(value.value), start.value or 1
    if at < 0:
        at = len(s) + at + 1
    missing = length is None or length.value is None
    end = max(len(s) + 1, at) if missing or length is None else at + length.value
    at, end = max(at, 1), min(end, len(s) + 1)
    return J("string", None if at > len(s) or end <= at else characters(s[at - 1 : end - 1]))


@_rule("string", "TRANSLATE")
def translate(s: str, find: str, new: str | None) -> str:
    """Each unit by the one at its place; one without a counterpart stays."""
    counterparts = dict(reversed(list(zip(find, new or "", strict=False))))
    first = {c: i for i, c in reversed(list(enumerate(find)))}
    kept = {c for c, i in first.items() if i >= len(new or "")}
    return "".join(c if c in kept else counterparts.get(c, c) for c in s)


@_rule("array", "SPLIT", nulls=True)
def split(s: str | None, by: str = "") -> list[str] | None:
    """Parts between matches, none empty at the end; no part before an empty match at the start."""
    if not s:
        return None
    parts, at = [], 0
    for match in _pattern(by).finditer(s):
        if match.end() == 0 or (match.start() == match.end() == len(s)):
            continue
        parts.append(s[at : match.start()])
        at = match.end()
    parts.append(s[at:])
    while parts and not parts[-1]:
        parts.pop()
    return parts


def to_base64(value: J) -> J:
    """Base64 of UTF-8 or of bytes, in one line."""
    if value.value is None:
        return J("string", None)
    raw = value.value if isinstance(value.value, bytes) else text(value).encode()
    return J("string", base64.b64encode(raw).decode())


@_rule("string", "FROM_BASE64")
def from_base64(s: str) -> str:
    """The text; what is no base64 fails, and padding may be missing."""
    body = s.rstrip("=")
    padding = len(s) - len(body)
    whole = re.fullmatch("[A-Za-z0-9+/]*", body) and len(body) % 4 != 1
    if not whole or (padding and (len(body) + padding) % 4) or padding > 2:
        raise Fails(s)
    return units(base64.b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "replace"))


TEXT |= {
    "CONCAT": concat,
    "CONCAT_WS": concat_ws,
    "RAWTOHEX": rawtohex,
    "SUBSTRING": substring,
    "SUBSTR": substring,
    "TO_BASE64": to_base64,
}
