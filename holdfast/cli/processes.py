"""The verbs that are processes: master and worker; and the one that shows their configuration.

Every option of a node is a flag of these verbs, read from its one declaration.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.flags import Debug, parameter, with_parameters
from holdfast.cli.logs import JsonLines, log, log_to
from holdfast.cli.terminal import show_error
from holdfast.config import Config, EffectiveConfig, flag, load_config
from holdfast.connect.options import describe
from holdfast.errors import HoldfastError, UsageError
from holdfast.plan.masking import masked_text
from holdfast.process.master_process import run_master
from holdfast.process.worker_process import run_worker

ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE", envvar="HOLDFAST_CONFIG", help="The node's YAML file."
    ),
]
LogFormat = Annotated[
    str, typer.Option("--log-format", help="What the terminal gets: text or json.")
]

Body = Callable[[EffectiveConfig, str], None]


def with_node_flags(body: Body) -> Callable[..., None]:
    """Return a command that takes every option of a node as a flag."""

    def command(config: str | None, log_format: str, debug: bool, **given: str | None) -> None:
        flags = {name: value for name, value in given.items() if value is not None}
        body(load_config(flags, os.environ, config), log_format)

    parameters = [
        parameter("config", ConfigFile, None),
        parameter("log_format", LogFormat, "text"),
        parameter("debug", Debug, False),
    ]
    for info in describe(Config):
        metavar = {"boolean": "true|false"}.get(info.kind, info.kind.upper().replace(" ", "-"))
        shown = f"{info.doc} [HOLDFAST_{info.name.upper()}]"
        hint = Annotated[str | None, typer.Option(flag(info), metavar=metavar, help=shown)]
        parameters.append(parameter(info.name, hint, None))
    return with_parameters(command, parameters, body.__doc__)


@with_node_flags
def master(effective: EffectiveConfig, log_format: str) -> None:
    """Be a master: one of them leads, the others stand by."""
    config = effective.config
    logged = _log(config, "master", log_format)
    _leave(lambda: run_master(config, logged))


@with_node_flags
def worker(effective: EffectiveConfig, log_format: str) -> None:
    """Be a worker: run tasks on Spark for the master that leads."""
    config = effective.config
    logged = _log(config, "worker", log_format)
    _leave(lambda: run_worker(config, logged.with_suffix(".spark.log")))


@with_node_flags
def config(effective: EffectiveConfig, log_format: str) -> None:
    """Print the effective configuration as YAML, with where each value came from."""
    typer.echo(effective.shown())


def _log(config: Config, role: str, form: str) -> Path:
    """Send the log to a file and to the terminal."""
    if form not in ("text", "json"):
        raise UsageError(f"--log-format must be text or json, not '{form}'.")
    file = Path(config.logs) / f"{role}-{config.name}.log"
    log_to(file, terminal_json=False)
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setFormatter(JsonLines() if form == "json" else _Sentences())
    log.addHandler(terminal)
    # What the libraries below have to say is kept where it matters.
    logging.getLogger().handlers[:] = log.handlers
    logging.getLogger().setLevel(logging.WARNING)
    return file


class _Sentences(logging.Formatter):
    """A sentence a line, with the facts behind it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for one record."""
        about: Mapping[str, object] = getattr(record, "about", {})
        facts = " ".join(f"{key}={value}" for key, value in about.items())
        line, newline, trace = super().format(record).partition("\nTraceback")
        # A job's name may hold anything; in the log it is one line, and moves no cursor.
        shown = "".join(c if c.isprintable() else " " for c in f"{line}  {facts}".rstrip())
        return masked_text(shown + newline + trace)


def _leave(run: Callable[[], int]) -> None:
    """Run a process and end it at once: a thread that hangs in a sink must not keep it."""
    try:
        code = run()
    except HoldfastError as error:
        log.error("%s", error)
        show_error(error, debug="--debug" in sys.argv)
        code = 2 if isinstance(error, UsageError) else 1
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
