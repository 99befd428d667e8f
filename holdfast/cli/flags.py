"""Flags that several verbs take, and how a command gets its flags from a list."""

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

Masters = Annotated[
    str | None,
    typer.Option(
        "--masters", metavar="URL,URL", help="The masters to ask; HOLDFAST_MASTERS by default."
    ),
]
NodeFile = Annotated[
    str | None,
    typer.Option(
        "--node-config", metavar="FILE", help="A node's YAML file, for masters and token."
    ),
]
Token = Annotated[
    str | None, typer.Option("--token-file", metavar="FILE", help="The file with the token.")
]
Patience = Annotated[
    float, typer.Option("--patience", metavar="SECONDS", help="How long to look for a leader.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
PluginFiles = Annotated[
    list[str], typer.Option("--plugin", metavar="FILE", help="Load connectors from a file.")
]


def parameter(name: str, hint: Any, default: object) -> Parameter:
    """Return one flag, for `with_parameters`."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def with_parameters(
    command: Callable[..., None], parameters: Iterable[Parameter], doc: str | None
) -> Callable[..., None]:
    """Return a command with the parameters that its help is to show."""
    named = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters]
    command.__signature__ = Signature(named)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in named}
    command.__doc__ = doc
    return command
