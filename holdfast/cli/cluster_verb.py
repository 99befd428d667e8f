"""What verbs that ask a cluster share: which masters, which token, how answers are printed."""

import inspect
import os
from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any

import msgspec
import typer

from holdfast.cli.flags import Debug, Masters, NodeFile, Patience, Token, parameter, with_parameters
from holdfast.client import PATIENCE_S, Client
from holdfast.config import load_config
from holdfast.security.identity import client_tls
from holdfast.security.token_files import client_token

Wait = Annotated[bool, typer.Option("--wait/--async", help="Wait for the end of the job.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OneJob = Annotated[str, typer.Argument(metavar="JOB_ID", help="The job's id.")]

Connect = Callable[[], Client]
"""Opens the connection: a verb calls it once its own arguments are checked."""

SHARED: dict[str, tuple[Any, object]] = {
    "masters": (Masters, None),
    "node_config": (NodeFile, None),
    "token_file": (Token, None),
    "patience": (Patience, PATIENCE_S),
}


def cluster_verb(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a command: a verb with the flags that say which masters it asks, and --debug.

    The verb's first parameter is what connects it.  In the help the shared flags come after its
    other parameters and before those that only a name can give.
    """
    own = list(inspect.signature(verb).parameters.values())[1:]
    last = [p for p in own if p.kind is Parameter.KEYWORD_ONLY]
    shared = [parameter(name, hint, default) for name, (hint, default) in SHARED.items()]
    everything = [
        *(p for p in own if p not in last),
        *shared,
        *last,
        parameter("debug", Debug, False),
    ]

    def command(
        masters: str | None = None,
        node_config: str | None = None,
        token_file: str | None = None,
        patience: float = PATIENCE_S,
        debug: bool = False,
        **given: object,
    ) -> None:
        verb(lambda: client_for(masters, node_config, token_file, patience), **given)

    return with_parameters(command, everything, verb.__doc__)


def client_for(
    masters: str | None, node_config: str | None, token_file: str | None, patience_s: float
) -> Client:
    """Return a client as flags, environment and file say."""
    flags = {"masters": masters, "token_file": token_file}
    given = {name: value for name, value in flags.items() if value}
    config = load_config(given, os.environ, node_config).config
    token = client_token(config)
    return Client(config.masters, token, patience_s, tls=client_tls(config))


def print_json(found: Any) -> None:
    """Print an answer for programs."""
    typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())


def printable(text: str) -> str:
    """Return a text that moves no cursor and forges no line: jobs are named by their users."""
    return "".join(c if c.isprintable() else " " for c in text)


def print_grid(titles: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print columns, one line a row, however long: people and grep both read it."""
    lines = [titles, *(tuple(printable(str(cell)) for cell in row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(titles))]
    for line in lines:
        typer.echo("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())
