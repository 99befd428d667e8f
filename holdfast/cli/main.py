"""The entry point: all verbs, and what each kind of error means for the exit code.

0 the job ended as it should; 1 it did not, or its file is wrong; 2 the command line is wrong;
130 it was cancelled with Ctrl-C, 143 by SIGTERM.
"""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from holdfast.cli import connector, job, machine
from holdfast.cli.terminal import show_error
from holdfast.errors import HoldfastError, UsageError

app = typer.Typer(
    name="holdfast",
    help="Run SeaTunnel job files on Spark. Start with: holdfast run JOB_FILE",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run")(job.run)
app.command("check")(job.check)
app.command("plan")(job.plan)
app.command("connectors")(connector.connectors)
app.command("warmup")(machine.warmup)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback()
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
        app()
    except HoldfastError as error:
        show_error(error, debug=debug)
        sys.exit(2 if isinstance(error, UsageError) else 1)
