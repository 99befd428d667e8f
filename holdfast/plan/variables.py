"""Variables: what `-i name=value` gives, put in wherever a value says `${name}`.

This happens after parsing, in every format and inside quoted text too.  A `${name:default}` needs
no variable.  Sinks fill `${table_name}`, `${now}` and such for each table or file, so these
stay as they are.  Any other name that nothing answers is unset.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from holdfast.connect.placeholders import RESERVED
from holdfast.errors import SourceLocation, UsageError
from holdfast.model.tree import Block, Items, Node, Scalar
from holdfast.plan.formats.hocon import Given, parse_value
from holdfast.plan.syntax import Unreadable, plain

_PLACEHOLDER = re.compile(r"\$\{\s*([^:{}]+?)\s*(?::([^}]*))?\}")
_SINKS_OWN = re.compile(r"now|uuid|transactionId|[kv]\d+")
_SINGLE_QUOTED = re.compile(r"'([^'\\]*)'")
FILE_NAME, FILE_TIME = "file_name_expression", "yyyy.MM.dd"
_OPENERS = {"[": "]", "{": "}"}
_BEFORE_QUOTE = "=[{,:"


def reserved_names(variables: Mapping[str, str]) -> list[str]:
    """Return the given names that belong to sinks and so may not be given."""
    return [name for name in variables if name in RESERVED]


def given_by(variables: Mapping[str, str]) -> Given:
    """Return a function that answers an unquoted `${name}` of a HOCON file."""

    def given(name: str, place: SourceLocation) -> Node | None:
        return typed(variables[name], place) if name in variables else None

    return given


Unset = dict[str, SourceLocation]
"""Names that nothing answers, and where each occurs first."""


def substitute(
    node: Node, variables: Mapping[str, str], unset: Unset, known: frozenset[str] = frozenset()
) -> Node:
    """Return the tree with variables and defaults put in; note in `unset` what nothing answers.

    `known` are names that are filled later, in addition to those of every sink.
    """
    match node:
        case Scalar(value=str(text)) if "${" in text:
            for found in _PLACEHOLDER.finditer(text):
                name = found[1]
                later = name in RESERVED or name in known or _SINKS_OWN.fullmatch(name)
                if not later and name not in variables and found[2] is None:
                    unset.setdefault(name, node.place)
            return _fill(node, text, variables)
        case Items(items=items):
            made = tuple(substitute(item, variables, unset, known) for item in items)
            return replace(node, items=made)
        case Block(entries=entries):
            filled = []
            for entry in entries:
                # A replacement's ${name} is a group of its pattern.
                here: Unset = {} if entry.key == "replacement" else unset
                own = known | _of_file_names(node) if entry.key == FILE_NAME else known
                filled.append(replace(entry, node=substitute(entry.node, variables, here, own)))
            return replace(node, entries=tuple(filled))
        case _:
            return node


def unset_message(name: str) -> str:
    """Return the sentence about a name that nothing answers."""
    return (
        f"The variable '{name}' is not set. Give it with -i {name}=VALUE, write a default as in"
        f" ${{{name}:VALUE}}, or keep the text ${{{name}}} with --allow-unset."
    )


def _of_file_names(block: Block) -> frozenset[str]:
    """Return the name by which a file's name may ask for its time: the pattern of it."""
    pattern = block.get("filename_time_format")
    return frozenset({pattern.text if isinstance(pattern, Scalar) else FILE_TIME})


def typed(text: str, place: SourceLocation) -> Node:
    """Return the value of a variable that is alone: a list, a block, a number or text."""
    inner = text.strip()
    if inner[:1] in _OPENERS and inner.endswith(_OPENERS[inner[0]]):
        try:
            return parse_value(_double_quoted(inner), lambda offset: place)
        except Unreadable:
            return Scalar(text, text, place)
    scalar = plain(text, place)
    return scalar if scalar.value is not None else Scalar(text, text, place)


def parse_assignments(items: list[str]) -> dict[str, str]:
    """Read `name=value` items; one item may hold several with commas between.

    Commas inside quotes, brackets and braces belong to the value, and quotes around a whole value
    are dropped.  Of a name given twice the later wins.
    """
    found: dict[str, str] = {}
    for item in items:
        for i, part in enumerate(_split(item)):
            name, equals, value = part.partition("=")
            name = name.strip()
            if not equals or not name:
                # A later part may be the rest of a password with a comma: it is not shown.
                what = f"'{part.strip()}' is" if i == 0 else f"Part {i + 1} of '{_named(item)}' is"
                raise UsageError(
                    f"{what} not a variable: give -i name=value."
                    " Put quotes around a value that holds a comma.",
                    code="usage.variable",
                )
            found[name] = _unquoted(value.strip())
    return found


def _named(item: str) -> str:
    """Return an item as messages may show it: without the values."""
    return item.partition("=")[0].strip() + "=..."


def _fill(node: Scalar, text: str, variables: Mapping[str, str]) -> Node:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole:
        answer = _answer(whole, variables)
        return node if answer is None else typed(answer, node.place)

    def put(found: re.Match[str]) -> str:
        answer = _answer(found, variables)
        return found[0] if answer is None else answer

    filled = _PLACEHOLDER.sub(put, text)
    return node if filled == text else Scalar(filled, filled, node.place)


def _answer(found: re.Match[str], variables: Mapping[str, str]) -> str | None:
    """Return the value of a placeholder: the variable, else the default, else None."""
    name, default = found[1], found[2]
    if name in RESERVED:
        return None
    if name in variables:
        return variables[name]
    if default is None or _SINKS_OWN.fullmatch(name):
        return None
    return str(default)


def _double_quoted(text: str) -> str:
    """Return a list or block with its 'single' quotes doubled, as HOCON needs them."""
    if '"' in text:
        return text
    return _SINGLE_QUOTED.sub(lambda m: json.dumps(m[1], ensure_ascii=False), text)


def _unquoted(value: str) -> str:
    if (
        len(value) > 1
        and value[0] == value[-1]
        and value[0] in "\"'"
        and value[0] not in value[1:-1]
    ):
        return value[1:-1]
    return value


def _split(item: str) -> list[str]:
    """Split at the commas that are not inside quotes, brackets or braces."""
    parts, start = [], 0
    closers: list[str] = []
    last = ","  # the last character that is not a blank
    for i, char in enumerate(item):
        inside = closers[-1] if closers else ""
        if char == inside:
            closers.pop()
        elif inside in ('"', "'"):
            pass
        elif char == '"' or (char == "'" and last in _BEFORE_QUOTE):
            closers.append(char)
        elif char in _OPENERS and (closers or last == "="):
            closers.append(_OPENERS[char])
        elif char == "," and not closers:
            parts.append(item[start:i])
            start = i + 1
        if not char.isspace():
            last = char
    if closers:
        raise UsageError(
            f"'{_named(item)}' opens a quote or bracket and has no closing {closers[-1]}."
            " Add it, or put quotes around the value.",
            code="usage.variable",
        )
    return [*parts, item[start:]]
