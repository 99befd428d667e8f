"""Read HOCON text into raw fields and values, without merging or substituting anything.

Written for Holdfast because job files follow SeaTunnel's fork of the Typesafe parser, not the
specification: duplicate plug-ins stay, a dot in a key separates nothing (`->` does), and a
mistake must name its line and column.  `hocon` gives the raw fields their meaning.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.errors import SourceLocation
from holdfast.model.tree import Scalar
from holdfast.plan.syntax import DEPTH_MAX, At, Unreadable, plain, quote

_WORD = re.compile(r'(?:(?!//)[^\s\ufeff$"{}\[\]:=,+#`^?!@*&\\])++')
_EXPONENT = re.compile(r"-?[0-9]+(?:\.[0-9]*)?[eE]\+[0-9]+")
_BLANK = re.compile(r"(?:[^\S\n]|\ufeff)*+")
_GAP = re.compile(r"(?:\s|\ufeff|#[^\n]*|//[^\n]*)*+")
_STRING = re.compile(r'"((?:[^"\\\n]|\\[^\n])*+)"')
_TRIPLE = re.compile(r'"""(.*?)"""(?!")', re.DOTALL)
_REFERENCE = re.compile(r"\$\{(\??)([^}\n]*)\}")
_INCLUDE = re.compile(r"include(?=[\s\"])")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NEXT_HINT = " Put a comma or a new line before the next key, or the value in double quotes."
_QUOTE_HINT = " Put text with special characters in double quotes."


@dataclass(frozen=True, slots=True)
class Ref:
    """A `${name}`.  `scope` is the path below which the file that holds it was included."""

    name: str
    optional: bool
    literal: str
    scope: str
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Field:
    """One `key = value`.  `dotted` says that a dot in the key was not quoted."""

    path: tuple[str, ...]
    dotted: bool
    append: bool
    value: "Raw"
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields between braces."""

    fields: tuple[Field, ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Listed:
    """The items between brackets."""

    items: tuple["Raw", ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Joined:
    """Values that stand side by side; a bare string is the blank between two of them."""

    parts: tuple["Raw | str", ...]
    place: SourceLocation


Raw = Scalar | Ref | Fields | Listed | Joined


@dataclass(frozen=True, slots=True)
class Include:
    """An `include`, to be answered with the fields of the file it names."""

    name: str
    kind: str
    required: bool
    place: SourceLocation
    depth: int
    scope: str


def no_include(include: Include) -> tuple[Field, ...]:
    """Refuse an include, where there is no file to include from."""
    raise Unreadable(include.place, "Nothing can be included here. Write the values out instead.")


class Parser:
    """A cursor over HOCON text.  `depth` and `scope` continue those of the including file."""

    def __init__(
        self,
        text: str,
        at: At,
        include: Callable[[Include], tuple[Field, ...]] = no_include,
        depth: int = 0,
        scope: str = "",
    ) -> None:
        self.text, self.at, self.include = text, at, include
        self.depth = depth
        self.scope = scope
        self.path = [scope] if scope else []
        self.pos = 0

    def root(self) -> Fields:
        """Read a whole file; the outer braces may be left out."""
        self._gap()
        place = self.at(self.pos)
        if self._here == "[":
            raise Unreadable(place, "Found a list where the job's blocks env, source and sink go.")
        if self._here != "{":
            return Fields(self._fields(None), place)
        found = self._block()
        self._end("the block that the file opened with")
        return found

    def whole_value(self) -> Raw:
        """Read a text that holds one value and nothing else."""
        self._gap()
        value = self._value()
        self._end("the value")
        return value

    @property
    def _here(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.pos)
        if not found:
            return ""
        self.pos = found.end()
        return found[0]

    def _gap(self) -> str:
        return self._skip(_GAP)

    def _take(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.pos):
            return False
        self.pos += len(mark)
        return True

    def _found(self) -> str:
        """Name what is at the cursor, for a message."""
        if not self._here:
            return "the end of the file"
        if self._here == "\n":
            return "the end of the line"
        word = _WORD.match(self.text, self.pos)
        return quote(word[0] if word else self._here)

    def _wrong(self, message: str) -> Unreadable:
        return Unreadable(self.at(self.pos), message)

    def _end(self, what: str) -> None:
        self._gap()
        if self._here:
            raise self._wrong(f"Found {self._found()} after {what}. Remove it.")

    def _enter(self) -> int:
        """Step into a block or list; return where it opens."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self._wrong(f"Blocks and lists nest deeper than {DEPTH_MAX} here. Nest less.")
        self.pos += 1
        return self.pos - 1

    def _block(self) -> Fields:
        opened = self._enter()
        fields = self._fields(opened)
        self.depth -= 1
        return Fields(fields, self.at(opened))

    def _fields(self, opened: int | None) -> tuple[Field, ...]:
        """Read fields up to the closing brace, or to the end where the braces are left out."""
        found: list[Field] = []
        while True:
            self._gap()
            if not self._here:
                if opened is None:
                    return tuple(found)
                raise Unreadable(self.at(opened), "This '{' is never closed. Add a '}'.")
            if self._here == "}":
                if opened is None:
                    raise self._wrong("This '}' closes nothing. Remove it, or open a block.")
                self.pos += 1
                return tuple(found)
            fields = self._field()
            found += fields
            self._separator("}", next_may_follow=bool(fields) and _ends_in_block(fields[-1].value))

    def _separator(self, closer: str, next_may_follow: bool = False) -> None:
        """Step over what ends a value: a line's end, one comma, or (unread) the closing mark."""
        gap = self._gap()
        if self._take(","):
            self._gap()
            if self._here == ",":
                raise self._wrong("Found a second comma. Remove it.")
            return
        if "\n" in gap or not self._here or self._here == closer or next_may_follow:
            return
        raise self._wrong(f"Found {self._found()} after a value. Add a comma or a '{closer}'.")

    def _field(self) -> tuple[Field, ...]:
        start = self.pos
        included = self._included()
        if included is not None:
            return included
        path, dotted = self._key()
        self._gap()
        append = False
        if self._here != "{":
            append = self._take("+=")
            if not (append or self._take("=") or self._take(":")):
                name = quote((path[0].split() or [""])[0])  # more may be a password without its =
                raise self._wrong(
                    f"Found {self._found()} after the key {name}. Put =, : or a block after a key."
                )
            self._gap()
        self.path.append(".".join(path))
        value = self._value(in_block=True)
        self.path.pop()
        return (Field(path, dotted, append, value, self.at(start)),)

    def _key(self) -> tuple[tuple[str, ...], bool]:
        """Read a key; an unquoted `->` separates the keys of nested blocks."""
        start = self.pos
        path, dotted = [""], False
        whole = [False]  # whether a part of the path was quoted and so may be empty
        while True:
            blank = self._skip(_BLANK)
            joint = blank if self.pos - len(blank) > start else ""
            if self._here == '"':
                path[-1] += joint + self._string()
                whole[-1] = True
                continue
            word = self._skip(_WORD)
            if not word:
                break
            dotted = dotted or "." in word
            head, *rest = word.split("->")
            path[-1] += joint + head
            path += rest
            whole += [False] * len(rest)
        if self.pos == start or not all(p or w for p, w in zip(path, whole, strict=True)):
            raise self._wrong(f"Found {self._found()} where a key should stand.{_QUOTE_HINT}")
        if len(path) > DEPTH_MAX:
            raise self._wrong(f"This key has more than {DEPTH_MAX} parts. Use fewer.")
        return tuple(path), dotted

    def _value(self, in_block: bool = False) -> Raw:
        start = self.pos
        parts: list[Raw | str] = []
        while True:
            blank = self._skip(_BLANK)
            if self._here in "\n,}]" or self._here == "#" or self.text.startswith("//", self.pos):
                break  # the empty string, at the end, is in any string
            last = parts[-1] if parts else None
            simple = self._here not in "{["
            if in_block and simple and isinstance(last, Fields) and self._here != "$":
                break  # `A { } B { }` on one line: B is the next key
            if simple and isinstance(last, Scalar | Ref) and blank:
                parts.append(blank)
            parts.append(self._part())
        if not parts:
            raise self._wrong(f"Found {self._found()} where a value should stand.{_QUOTE_HINT}")
        return _join(parts, self.at(start))

    def _part(self) -> Raw:
        start = self.pos
        match self._here:
            case "{":
                return self._block()
            case "[":
                return self._list()
            case "$":
                return self._reference()
            case '"':
                text = self._string()
                return Scalar(text, text, self.at(start))
        word = self._skip(_EXPONENT) + self._skip(_WORD)
        if not word:
            hint = _NEXT_HINT if self._here == "=" else _QUOTE_HINT
            raise self._wrong(f"Found {self._found()} in a value.{hint}")
        return plain(word, self.at(start))

    def _list(self) -> Listed:
        opened = self._enter()
        items: list[Raw] = []
        while True:
            self._gap()
            if not self._here:
                raise Unreadable(self.at(opened), "This '[' is never closed. Add a ']'.")
            if self._take("]"):
                break
            items.append(self._value())
            self._separator("]")
        self.depth -= 1
        return Listed(tuple(items), self.at(opened))

    def _string(self) -> str:
        start = self.pos
        if self.text.startswith('"""', start):
            if not self._skip(_TRIPLE):
                raise self._wrong('This """ is never closed. Add a second """.')
            return self.text[start + 3 : self.pos - 3]
        found = _STRING.match(self.text, start)
        if not found:
            raise self._wrong(
                'This " is not closed on its line. Add a second ", or use """ for several lines.'
            )
        self.pos = found.end()
        return self._unescaped(found[1], start) if "\\" in found[1] else found[1]

    def _unescaped(self, raw: str, start: int) -> str:
        try:
            text: str = json.loads(f'"{raw}"', strict=False)
        except json.JSONDecodeError as error:
            # Python points at the backslash for some escapes and just behind it for others.
            slash = raw.rfind("\\", 0, error.pos)
            escape = quote(raw[slash : slash + 2])
            raise Unreadable(
                self.at(start + 1 + slash),
                f"{escape} is not an escape. Write \\\\ for a backslash.",
            ) from None
        if _LONE_SURROGATE.search(text):
            raise Unreadable(self.at(start), "This text has half of a \\u pair. Write both halves.")
        return text

    def _reference(self) -> Ref:
        start = self.pos
        found = _REFERENCE.match(self.text, start)
        if not found:
            if self.text.startswith("${", start):
                raise self._wrong("This '${' is not closed on its line. Add a '}'.")
            raise self._wrong(f"Found '$' in a value.{_QUOTE_HINT}")
        self.pos = found.end()
        inner = found[2].strip()
        name = inner.partition(":")[0].replace('"', "").strip()
        if not name:
            raise Unreadable(self.at(start), "This '${}' names nothing. Put a name into it.")
        return Ref(name, bool(found[1]), "${" + inner + "}", self.scope, self.at(start))

    def _included(self) -> tuple[Field, ...] | None:
        """Read an include, or return None if it is a key of that name."""
        start = self.pos
        if not self._skip(_INCLUDE):
            return None
        self._gap()
        if self._here in "=:{+":
            self.pos = start
            return None
        required = self._take("required(")
        self._gap()
        kind = next((k for k in ("file", "url", "classpath") if self._take(k + "(")), "")
        self._gap()
        if self._here != '"':
            raise self._wrong(f"Found {self._found()} after include. Put a quoted file name there.")
        name = self._string()
        for _ in range(required + bool(kind)):
            self._gap()
            if not self._take(")"):
                raise self._wrong(f"Found {self._found()} in an include. Add a ')'.")
        scope = ".".join(self.path)
        return self.include(Include(name, kind, required, self.at(start), self.depth, scope))


def _ends_in_block(value: Raw) -> bool:
    last = value.parts[-1] if isinstance(value, Joined) else value
    return isinstance(last, Fields)


def _join(parts: list[Raw | str], place: SourceLocation) -> Raw:
    """Make one value of the parts; adjacent texts are one text, spaces included."""
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    texts = [p if isinstance(p, str) else p.text for p in parts if isinstance(p, str | Scalar)]
    if len(texts) < len(parts):
        return Joined(tuple(parts), place)
    text = "".join(texts)
    return Scalar(text, text, place)
