"""The verb that shows connectors and their options, from the declarations alone."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from holdfast.cli.docs import write_pages
from holdfast.connect.options import OptionInfo, describe, nearest
from holdfast.connect.registry import Registry
from holdfast.errors import UserError
from holdfast.model.job import Role

page = Console(highlight=False)


def connectors(
    name: Annotated[str | None, typer.Argument(help="Show this connector's options.")] = None,
    plugin: Annotated[
        list[str], typer.Option("--plugin", metavar="FILE", help="Load connectors from a file.")
    ] = [],  # noqa: B006
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
        page.print(_grid(describe(kind.options_class)))
        if kind.notes:
            page.print(f"\n{kind.notes}", markup=False)


def _grid(infos: tuple[OptionInfo, ...], indent: str = "") -> Grid:
    grid = Grid(box=None, pad_edge=False, show_edge=False)
    for title in ("option", "type", "default", "what it does"):
        grid.add_column(title, overflow="fold")
    _fill(grid, infos, indent)
    return grid


def _fill(grid: Grid, infos: tuple[OptionInfo, ...], indent: str) -> None:
    for info in infos:
        default = "required" if info.required else _shown(info.default)
        also = f" (also: {', '.join(info.aliases)})" if info.aliases else ""
        cells = (indent + info.key, info.kind, default, info.doc + also)
        grid.add_row(*(cell.replace("[", "\\[") for cell in cells))
        if info.inner and len(indent) < 6:
            _fill(grid, describe(info.inner), indent + "  ")


def _shown(value: object) -> str:
    if value is None or value in ([], {}, ""):
        return ""
    return repr(value) if isinstance(value, str) and not value.isprintable() else str(value)
