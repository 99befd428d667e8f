"""The options of a CREATE TABLE: `'key' = 'value'`, where a value may hold HOCON."""

import json

from holdfast.model.tree import Entry, Node, Scalar
from holdfast.plan.formats.hocon import parse_value
from holdfast.plan.formats.sql_tokens import Statement, Token
from holdfast.plan.syntax import At


def read_option(statement: Statement) -> Entry:
    """Take one option; a value in braces or brackets becomes a block or a list."""
    key = statement.string("an option's name")
    statement.expect("=")
    value = statement.string(f"the value of '{key.text}'")
    return Entry(key.text, _node(value, _at(statement, value)), key.place)


def _node(value: Token, at: At) -> Node:
    inner = value.text.strip()
    if (inner[:1], inner[-1:]) in (("{", "}"), ("[", "]")):
        return parse_value(value.text, at)
    text = _unescaped(value.text)
    return Scalar(text, text, value.place)


def _unescaped(text: str) -> str:
    r"""Return text with `\t`, `\n` and their like made real, as SeaTunnel does.

    Text that is no proper escape, such as a regular expression, stays as it is.
    """
    if "\\" not in text or '"' in text:
        return text
    try:
        made: str = json.loads(f'"{text}"', strict=False)
        made.encode()
    except (json.JSONDecodeError, UnicodeEncodeError):
        return text
    return made


def _at(statement: Statement, value: Token) -> At:
    """Return how to find a place in a string: a doubled quote in the file is one in the text."""
    places = [value.start + 1]
    raw = statement.text[value.start + 1 : value.end - 1]
    offset = 0
    while offset < len(raw):
        offset += 2 if raw.startswith("''", offset) else 1
        places.append(value.start + 1 + offset)
    return lambda i: statement.lines.at(places[min(i, len(places) - 1)])
