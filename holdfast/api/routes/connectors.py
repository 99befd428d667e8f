"""Connectors and their options as data, for forms and for SeaTunnel's /option-rules."""

from collections.abc import Iterator
from typing import Any

from holdfast.api.shapes import ConnectorRow, ConnectorView, OptionView
from holdfast.connect.options import OptionInfo, describe
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.errors import UserError
from holdfast.model.job import Role
from holdfast.model.secret import Secret

DEPTH_MAX = 5


def rows(registry: Registry) -> list[ConnectorRow]:
    """Return all connectors, sources first."""
    return [
        ConnectorRow(kind.name, role.value, _summary(kind), kind.refused, _guarantee(kind))
        for role in Role
        for name in registry.names(role)
        if (kind := registry.find(role, name))
    ]


def view(registry: Registry, role: str, name: str) -> ConnectorView:
    """Return a connector with its options."""
    kind = registry.find(Role(role), name) if role in list(Role) else None
    if kind is None:
        raise UserError(f"There is no {role} '{name}'.", code="path.unknown")
    return ConnectorView(
        kind.name, role, _summary(kind), kind.refused, _guarantee(kind), kind.needs_python,
        kind.notes, list(_options(kind.options_class, DEPTH_MAX)),
    )  # fmt: skip


def _options(cls: type[Any], depth: int) -> Iterator[OptionView]:
    for info in describe(cls):
        inner = list(_options(info.inner, depth - 1)) if info.inner and depth else []
        yield OptionView(
            info.key, info.kind, info.required, _plain(info.default), info.doc, list(info.aliases),
            "secret" in info.kind, choices(info), inner,
        )  # fmt: skip


def choices(info: OptionInfo) -> list[str]:
    """Return the only good values of an option, where its type names them."""
    return info.kind.removeprefix("list of ").split(" | ") if " | " in info.kind else []


def _summary(kind: type[Plugin[Any]]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0] if kind.__doc__ else ""


def _guarantee(kind: type[Plugin[Any]]) -> str:
    return kind.guarantee.value if issubclass(kind, Sink) else ""


def _plain(value: object) -> object:
    """Return a default as JSON can hold it."""
    match value:
        case Secret():
            return None
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(v) for v in value]
    return str(value)
