"""One value of any record or message, with something in every field, and layouts that are kept."""

import dataclasses
import itertools
import json
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")


def full(kind: type[T]) -> T:
    """Return a value of a record or message whose every field differs from its default."""
    made: T = _value(kind, "", itertools.count(1))
    return made


def _value(hint: Any, name: str, numbers: Iterator[int]) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return {name: [next(numbers), "text", None]}
    if origin in (Union, types.UnionType):
        return _value(next(a for a in args if a is not type(None)), name, numbers)
    if origin is Literal:
        return args[-1]
    if origin is tuple:
        kinds = args[:1] if args[-1] is Ellipsis else args
        return tuple(_value(a, name, numbers) for a in kinds)
    if origin is dict:
        return {_value(args[0], name, numbers): _value(args[1], name, numbers)}
    if hint is bool:
        return True
    if hint is int:
        return next(numbers)
    if hint is float:
        return next(numbers) + 0.5
    if hint is str:
        return f"{name} {next(numbers)}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[-1]
    hints = get_type_hints(hint)
    return hint(**{f: _value(hints[f], f, numbers) for f in fields_of(hint)})


def fields_of(kind: type) -> list[str]:
    """Return the fields of a record or message."""
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    assert dataclasses.is_dataclass(kind)
    return [f.name for f in dataclasses.fields(kind)]


CHANGED = (
    "The layout of {name} is another than the one that is kept in {file}. Stores and processes of"
    " released versions have the kept one. Give the new layout a new version, keep a reader for the"
    " old one with its fixture, and write a fixture of the new one: python -m {module} > {file}"
)


def same_layouts(found: Mapping[str, str], file: Path, module: str) -> None:
    """Fail unless every layout is exactly the one that is kept."""
    kept = json.loads(file.read_text())
    for name in sorted({*found, *kept}):
        assert found.get(name) == kept.get(name), CHANGED.format(
            name=name, file=f"{module.rpartition('.')[0].replace('.', '/')}/{file.name}",
            module=module,
        )  # fmt: skip
