"""Write a page of documentation for each connector, from the option declarations."""

import inspect
from pathlib import Path
from textwrap import indent
from typing import Any

from holdfast.connect.options import OptionInfo, describe
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.model.job import Role

HEAD = "<!-- Written by `make docs` from the option declarations; do not edit. -->\n\n"


def pages(registry: Registry) -> dict[str, str]:
    """Return every page by file name, the index among them."""
    names = sorted({n for role in Role for n in registry.names(role)}, key=str.lower)
    made = {f"{name}.md": _page(name, registry) for name in names}
    made["README.md"] = _index(registry)
    return made


def write_pages(registry: Registry, folder: Path) -> None:
    """Write all pages and remove those of connectors that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(registry)
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text)


def _index(registry: Registry) -> str:
    lines = [HEAD + "# Connectors\n"]
    for role in Role:
        lines.append(f"## {role.value.capitalize()}s\n")
        for name in registry.names(role):
            plugin = registry.find(role, name)
            assert plugin is not None
            lines.append(f"- [{name}]({name}.md): {_summary(plugin)}")
        lines.append("")
    return "\n".join(lines)


def _page(name: str, registry: Registry) -> str:
    parts = [HEAD + f"# {name}"]
    for plugin in registry.named(name):
        parts.append(f"## {plugin.role.value.capitalize()}")
        parts.append(inspect.cleandoc(plugin.__doc__ or ""))
        if plugin.refused:
            parts.append(plugin.refused)
            continue
        if issubclass(plugin, Sink) and isinstance(plugin.guarantee, str):
            parts.append(f"Guarantee: **{plugin.guarantee}**.")
        parts += _example(plugin)
        parts.append(_options(describe(plugin.options_class)))
        parts += _identity(plugin)
        if plugin.notes:
            parts.append(plugin.notes)
    return "\n\n".join(parts) + "\n"


def _example(plugin: type[Plugin[Any]]) -> list[str]:
    if not plugin.example:
        return []
    block = indent(plugin.example.strip(), "    ")
    return [f"```hocon\n{plugin.role} {{\n  {plugin.name} {{\n{block}\n  }}\n}}\n```"]


def _summary(plugin: type[Plugin[Any]]) -> str:
    return inspect.cleandoc(plugin.__doc__ or "").splitlines()[0]


def _identity(plugin: type[Plugin[Any]]) -> list[str]:
    """Say by which options a stage is found again in a changed job file."""
    known = [f"`{info.key}`" for info in describe(plugin.options_class) if info.identity]
    if not known or plugin.role is Role.TRANSFORM:
        return []
    return [f"A restored job knows it again by its `uid`; without one, by {', '.join(known)}."]


def _options(infos: tuple[OptionInfo, ...]) -> str:
    rows = ["| option | type | default | what it does |", "| --- | --- | --- | --- |"]
    rows += _rows(infos, "")
    return "\n".join(rows)


def _rows(infos: tuple[OptionInfo, ...], prefix: str) -> list[str]:
    rows: list[str] = []
    for info in infos:
        key = f"{prefix}{info.key}"
        default = "*required*" if info.required else _default(info)
        also = f" Also named: {', '.join(f'`{a}`' for a in info.aliases)}." if info.aliases else ""
        cells = (f"`{key}`", _cell(info.kind), default, _cell(info.doc) + also)
        rows.append("| " + " | ".join(cells) + " |")
        if info.inner and prefix.count(".") < 4:
            rows += _rows(describe(info.inner), key + ".")
    return rows


def _default(info: OptionInfo) -> str:
    value = info.default
    if value in (None, "", [], {}) or info.kind.startswith("block"):
        return ""
    text = value if isinstance(value, str) else str(value)
    return f"`{_cell(text.encode('unicode_escape').decode())}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
