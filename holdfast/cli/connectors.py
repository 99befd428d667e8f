"""The verb that shows connectors and their options, from the declarations alone."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent, wrap
from typing import Annotated, Any

import typer
from rich.console import Console

from holdfast.cli.flags import PluginFiles
from holdfast.connect.options import OptionInfo, describe, nearest
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.errors import UserError
from holdfast.model.job import Role

HEAD = "<!-- Written by `make docs` from the option declarations; do not edit. -->\n\n"

page = Console(highlight=False)
WIDTH = 100


def connectors(
    name: Annotated[str | None, typer.Argument(help="Show this connector's options.")] = None,
    plugin: PluginFiles = [],  # noqa: B006
    write: Annotated[
        Path | None, typer.Option("--write", metavar="DIR", help="Write a page for each into DIR.")
    ] = None,
) -> None:
    """List the connectors, or show one's options."""
    registry = Registry.load(plugin)
    if write:
        write_pages(registry, write)
        return
    if name is None:
        for role in Role:
            typer.echo(f"{role.value}s:  " + "  ".join(registry.names(role)))
        typer.echo("Show one with: holdfast connectors NAME")
        return
    found = registry.named(name)
    if not found:
        known = [n for role in Role for n in registry.names(role)]
        raise UserError(f"There is no connector '{name}'.{nearest(name, known)}")
    for kind in found:
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        page.print(f"\n[bold]{kind.name}[/] ({kind.role}): {summary}")
        if kind.refused:
            page.print(kind.refused, markup=False)
            continue
        for line in _lines(describe(kind.options_class)):
            page.print(line, markup=False, soft_wrap=True)
        if kind.notes:
            page.print(f"\n{kind.notes}", markup=False)


def _lines(infos: tuple[OptionInfo, ...], before: str = "") -> Iterator[str]:
    """Yield each option with its type and default, and below it what it does.

    No table: at the width of a usual terminal its columns would be a word wide.
    """
    for info in infos:
        default = "required" if info.required else _shown(info.default)
        yield f"{before}{info.key}  ({', '.join(filter(None, (info.kind, default)))})"
        also = f" (also: {', '.join(info.aliases)})" if info.aliases else ""
        margin = before + "    "
        yield from wrap(info.doc + also, WIDTH, initial_indent=margin, subsequent_indent=margin)
        if info.inner and len(before) < 6:
            yield from _lines(describe(info.inner), before + "  ")


def _shown(value: object) -> str:
    if value is None or value in ([], {}, ""):
        return ""
    return repr(value) if isinstance(value, str) and not value.isprintable() else str(value)


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
