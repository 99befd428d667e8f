"""The verb that writes a first job: a source and a sink, all their other options as comments."""

import json
from pathlib import Path
from textwrap import indent, wrap
from typing import Annotated, Any

import typer

from holdfast.cli.flags import Debug, PluginFiles
from holdfast.cli.terminal import screen
from holdfast.connect.options import OptionInfo, describe, nearest
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.errors import UserError
from holdfast.model.job import Role
from holdfast.plan.check import stand_in

WIDTH = 100
HEAD = """\
# A first job. Check it with: holdfast check FILE   Run it with: holdfast run FILE

env {
  job.name = "first"
  job.mode = BATCH
}
"""
NO_USE = ("Ignored", "Refused", "Not supported", "Belongs to", "Makes no difference")
"""How the sentences of options begin that are there only for files of SeaTunnel's."""


def init(
    file: Annotated[Path, typer.Argument(metavar="JOB_FILE", help="The file to write.")] = Path(
        "job.conf"
    ),
    source: Annotated[str, typer.Option("--source", help="Where rows come from.")] = "FakeSource",
    sink: Annotated[str, typer.Option("--sink", help="Where rows go.")] = "LocalFile",
    plugin: PluginFiles = [],  # noqa: B006
    debug: Debug = False,
) -> None:
    """Write a first job file from a source and a sink."""
    registry = Registry.load(plugin)
    text = first_job(_kind(registry, Role.SOURCE, source), _kind(registry, Role.SINK, sink))
    try:
        with file.open("x") as new:
            new.write(text)
    except FileExistsError:
        raise UserError(f"{file} is there already. Give another name, or move it away.") from None
    except FileNotFoundError:
        raise UserError(f"The folder {file.parent} does not exist. Make it first.") from None
    screen.print(
        f"{file} is written. Change what it names, then: holdfast check {file}, and"
        f" holdfast run {file}.",
        markup=False,
    )


def first_job(source: type[Plugin[Any]], sink: type[Plugin[Any]]) -> str:
    """Return the text of a job from one source to one sink."""
    blocks = [
        f"{kind.role} {{\n{_block(kind, wire)}}}\n"
        for kind, wire in ((source, "plugin_output"), (sink, "plugin_input"))
    ]
    return "\n".join([HEAD, *blocks])


def _block(kind: type[Plugin[Any]], wire: str) -> str:
    infos = describe(kind.options_class)
    given = kind.example.strip() or "\n".join(
        f'{info.key} = "..."  # required: {info.kind}' for info in infos if info.required
    )
    shown = {line.split("=")[0].split("{")[0].strip() for line in given.splitlines()}
    useful = [i for i in infos if i.key not in shown and not i.doc.startswith(NO_USE)]
    others = [line for info in useful for line in _comment(info)]
    lines = [
        f'{wire} = "rows"',
        *given.splitlines(),
        *(["", "# Other options:", *others] if others else []),
    ]
    body = indent("\n".join(lines), "    ")
    return f"  {kind.name} {{\n{body}\n  }}\n"


def _comment(info: OptionInfo) -> list[str]:
    """Return an option as comments: what it does, and its name with its default."""
    return [*(f"# {line}" for line in wrap(info.doc, WIDTH - 6)), f"# {info.key} = {_value(info)}"]


def _value(info: OptionInfo) -> str:
    value = info.default
    if info.required or value in (None, "") or info.kind.startswith(("block", "list")):
        return f"<{info.kind}>"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(str(value)) if isinstance(value, str) else str(value)


def _kind(registry: Registry, role: Role, name: str) -> type[Plugin[Any]]:
    kind = registry.find(role, name)
    if kind is None or kind.refused:
        known = registry.names(role)
        hint = nearest(name, known) + stand_in(role, name, registry)
        why = kind.refused if kind else f"There is no {role} '{name}'.{hint}"
        raise UserError(f"{why} Known are: {', '.join(known)}.")
    return kind
