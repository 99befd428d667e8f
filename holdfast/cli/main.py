"""The entry point: all verbs, and what each kind of error means for the exit code.

0 the job ended as it should; 1 it did not, or its file is wrong; 2 the command line is wrong;
130 it was cancelled with Ctrl-C, 143 by SIGTERM.

Only the file of the verb that is asked for is loaded: a run needs no web server, and a second of
start-up is a second of every run.
"""

import errno
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from holdfast.cli.seatunnel import translated
from holdfast.cli.terminal import show_error
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import state_dir
from holdfast.worker.root_causes import cause_of

VERBS = {
    "run": "run",
    "init": "first_job",
    "check": "check",
    "convert": "convert",
    "plan": "run",
    "submit": "submit",
    "list": "cluster",
    "status": "cluster",
    "explain": "cluster",
    "logs": "cluster",
    "cancel": "cluster",
    "savepoint": "cluster",
    "restore": "submit",
    "restart": "submit",
    "savepoints": "submit",
    "cluster": "cluster",
    "drain": "workers",
    "undrain": "workers",
    "token": "tokens",
    "tokens": "tokens",
    "revoke": "tokens",
    "master": "processes",
    "worker": "processes",
    "config": "processes",
    "audit": "audit",
    "connectors": "connectors",
    "warmup": "machine",
}
"""Each verb and the file it is in; its function has its name."""

FUNCTIONS = {"list": "list_jobs"}
"""Where a verb is a word that Python has taken."""

PANELS = {
    "run": "Jobs, on this machine",
    "submit": "Jobs, on a cluster",
    "cluster": "The cluster",
    "connectors": "This machine",
}
"""The headings of the help, each above the verb that it begins with."""

SAME = {"restart": "The same as `restore`, for a job that failed or was cancelled."}
"""What the help says of a verb that is another word for one."""


FULL = (errno.ENOSPC, errno.EDQUOT)


def build(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with the verb that is asked for, or with all of them."""
    app = typer.Typer(
        name="holdfast",
        help="Run SeaTunnel job files on Spark. Start with: holdfast run JOB_FILE",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(top)
    asked = [word for word in arguments[:1] if word in VERBS]
    panel = None
    for verb in asked or VERBS:
        panel = PANELS.get(verb, panel)
        module = importlib.import_module(f"holdfast.cli.{VERBS[verb]}")
        function = getattr(module, FUNCTIONS.get(verb, verb))
        # The verb itself says all; the list of verbs need not say the same twice.
        app.command(verb, help=None if asked else SAME.get(verb), rich_help_panel=panel)(function)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"holdfast {version('holdfast')}")
        raise typer.Exit


def top(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run SeaTunnel job files on Spark.  Start with: holdfast run JOB_FILE"""


def main() -> None:
    """Run the command line and leave with its exit code."""
    debug = "--debug" in sys.argv
    try:
        arguments = translated(sys.argv[1:])
        build(arguments)(arguments)
    except HoldfastError as error:
        show_error(error, debug=debug)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:  # of the system below us: a full disk, a missing right
        show_error(refused(error), debug=debug)
        sys.exit(1)


def refused(error: OSError) -> HoldfastError:
    """Return what to say of something that the system refused to this command itself."""
    if error.errno in FULL and not error.filename:  # a write names no file: nearly all are there
        error.filename = str(state_dir.root())
    cause = cause_of(error)
    where = f"{error.filename}: " if error.filename else ""
    return HoldfastError(cause.said if cause else f"{where}{error.strerror or error}.")
