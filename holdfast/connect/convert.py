"""Turn what a job file says into the Python type that an option declares.

Each failure is reported with its place and what to give instead; `MISSING` then replaces the
value, and checking continues, so that one run shows every mistake.
"""

import re
import types
from collections.abc import Callable
from dataclasses import MISSING
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin

from holdfast.connect.checks import CheckReport
from holdfast.model.secret import MASK, Secret
from holdfast.model.tree import Block, Items, Node, Plain, Scalar, to_plain

TRUE, FALSE = {"true", "yes", "on"}, {"false", "no", "off"}

SHORT_NAME = 4
"""Names this short differ much by one letter; a suggestion for them may be less alike."""

_VARIABLE = re.compile(r"\$\{([^:{}]+)[:}]")

ReadOptions = Callable[[Any, Block, str, CheckReport], Any]


def convert(node: Node, hint: Any, where: str, report: CheckReport, nested: ReadOptions) -> Any:
    """Return the value of `node` as `hint` asks, or report why not and return MISSING."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is Plain:
        return to_plain(node)
    if hint in (Block, Node, Items, Scalar):
        return node if hint is Node or isinstance(node, hint) else _wrong(node, hint, where, report)
    if origin in (Union, types.UnionType):
        return _optional(node, args, where, report, nested)
    if origin is Literal:
        return _choice(node, {str(a): a for a in args}, where, report)
    if origin in (list, tuple):
        return _list(node, args[0], where, report, nested, origin)
    if origin is dict:
        return _dict(node, args[1], where, report, nested)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice(node, {str(m.value): m for m in hint}, where, report)
    if hasattr(hint, "from_node"):
        return _custom(node, hint, where, report)
    if getattr(hint, "__holdfast_options__", False):
        if not isinstance(node, Block):
            return _wrong(node, Block, where, report)
        made = nested(hint, node, where, report)
        return MISSING if made is None else made
    return _scalar(node, hint, where, report)


def type_text(hint: Any) -> str:
    """Return how help and docs name a type."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is Plain or hint is Node:
        return "any"
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(a) for a in args if a is not type(None))
    if origin is Literal:
        return " | ".join(str(a) for a in args)
    if origin in (list, tuple):
        return f"list of {type_text(args[0])}"
    if origin is dict:
        return f"block of {type_text(args[1])}"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return " | ".join(str(m.value) for m in hint)
    if getattr(hint, "__holdfast_options__", False):
        return "block"
    names = {str: "string", int: "int", float: "number", bool: "boolean", Secret: "secret"}
    named = names.get(hint) or getattr(hint, "type_text", None)
    return str(named or getattr(hint, "__name__", hint)).lower()


def shown(node: Node) -> str:
    """Return a value as an error may show it."""
    match node:
        case Scalar(text=text):
            return "null" if node.value is None else _quoted(text)
        case Items():
            return "a list"
        case Block():
            return "a block"


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"


def _optional(node: Node, args: Any, where: str, report: CheckReport, nested: ReadOptions) -> Any:
    """Try each member of a union; the last one's mistake is the one reported."""
    if isinstance(node, Scalar) and node.value is None and type(None) in args:
        return None
    kinds = [a for a in args if a is not type(None)]
    for kind in kinds[:-1]:
        trial = CheckReport(lenient=report.lenient, settled=report.settled)
        value = convert(node, kind, where, trial, nested)
        if value is not MISSING and not trial.mistakes:
            report.warnings += trial.warnings
            return value
    return convert(node, kinds[-1], where, report, nested)


def _choice(node: Node, choices: dict[str, Any], where: str, report: CheckReport) -> Any:
    if isinstance(node, Scalar):
        for text, value in choices.items():
            if node.text.lower() == text.lower():
                return value
    known = list(choices)
    hint = unfilled(node) or (nearest(node.text, known) if isinstance(node, Scalar) else "")
    report.error(node.place, f"{where} must be {_either(known)}, not {shown(node)}.{hint}")
    return MISSING


def nearest(name: str, known: list[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest good name, or nothing."""
    lowered = {k.lower(): k for k in known}
    cutoff = 0.6 if len(name) <= SHORT_NAME else 0.7
    close = get_close_matches(name.lower(), list(lowered), n=1, cutoff=cutoff)
    return f" Did you mean '{lowered[close[0]]}'?" if close else ""


def unfilled(node: Node) -> str:
    """Return how to fill the variable that a value still holds, or nothing."""
    found = _VARIABLE.search(node.text) if isinstance(node, Scalar) else None
    return f" Give the variable's value: -i {found[1]}=VALUE." if found else ""


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _list(
    node: Node, hint: Any, where: str, report: CheckReport, nested: ReadOptions, build: Any
) -> Any:
    """Read a list; a single value counts as a list of one, as SeaTunnel reads it."""
    if isinstance(node, Items):
        nodes = node.items
    elif isinstance(node, Scalar) and isinstance(node.value, str) and _looks_like_list(node.value):
        inner = node.value.strip()[1:-1]
        parts = [p.strip().strip("'\"") for p in inner.split(",") if p.strip()]
        nodes = tuple(Scalar(p, p, node.place) for p in parts)
    else:
        nodes = (node,)
    values = [convert(n, hint, f"{where}[{i}]", report, nested) for i, n in enumerate(nodes)]
    return MISSING if any(v is MISSING for v in values) else build(values)


def _looks_like_list(text: str) -> bool:
    text = text.strip()
    return text.startswith("[") and text.endswith("]")


def _dict(node: Node, hint: Any, where: str, report: CheckReport, nested: ReadOptions) -> Any:
    """Read a block whose keys the user chooses; dotted keys stay dotted where values are plain."""
    if not isinstance(node, Block):
        return _wrong(node, Block, where, report)
    plain = hint in (str, int, float, bool, Secret)
    pairs = node.leaves() if plain else ((e.key, e) for e in node.entries)
    values = {k: convert(e.node, hint, f"{where}.{k}", report, nested) for k, e in pairs}
    return MISSING if any(v is MISSING for v in values.values()) else values


def _custom(node: Node, hint: Any, where: str, report: CheckReport) -> Any:
    """Let the class read itself; what it raises as ValueError becomes the mistake."""
    before = len(report.mistakes)
    try:
        value = hint.from_node(node, where, report)
    except ValueError as error:
        report.error(node.place, f"{where}: {error}.")
        return MISSING
    return MISSING if len(report.mistakes) > before else value


def _scalar(node: Node, hint: Any, where: str, report: CheckReport) -> Any:
    if not isinstance(node, Scalar):
        return _wrong(node, hint, where, report)
    if hint is str:
        return node.text if node.value is not None else _wrong(node, hint, where, report)
    if hint is Secret:
        return Secret(node.text)
    if hint is bool:
        text = node.text.strip().lower()
        if text in TRUE | FALSE:
            return text in TRUE
    if hint in (int, float) and not isinstance(node.value, bool):
        number = _number(node.text.strip(), hint)
        if number is not None:
            return number
    return _wrong(node, hint, where, report)


def _number(text: str, hint: type) -> int | float | None:
    try:
        if hint is float:
            return float(text)
        return int(text, 0) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        pass
    try:
        whole = float(text)
    except ValueError:
        return None
    return int(whole) if whole.is_integer() else None


def _wrong(node: Node, hint: Any, where: str, report: CheckReport) -> Any:
    wanted = {
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        Secret: "text",
        Block: "a block { ... }",
        Items: "a list [ ... ]",
        Scalar: "a single value",
    }.get(hint, type_text(hint))
    # A secret is never shown, not even a wrong one.
    found = MASK if hint is Secret and isinstance(node, Scalar) else shown(node)
    report.error(node.place, f"{where} must be {wanted}, not {found}.{unfilled(node)}")
    return MISSING
