"""The verb check: every mistake of a job file at once, here or as a worker sees it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.flags import Debug, Masters, NodeFile, Patience, Token
from holdfast.cli.job_file import read_tree
from holdfast.cli.run import (
    AllowPython,
    AllowUnset,
    Config,
    JobFile,
    Lenient,
    Plugins,
    Variables,
    check_here,
    one_file,
    report_for,
)
from holdfast.cli.terminal import screen, show_warnings
from holdfast.errors import JobFileError, JobFileProblem, SourceLocation, Unavailable, UsageError
from holdfast.plan.record import JobSource, encode_spec
from holdfast.plan.variables import parse_assignments

if TYPE_CHECKING:
    from holdfast.api.views import Connected

Connect = Annotated[
    bool,
    typer.Option(
        "--connect",
        help="Also open what the job names: files, tables, logins, rights. Changes nothing."
        " Where masters are named, a worker of theirs does it.",
    ),
]
Within = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=1, max=600,
        help="How long a worker may take to open everything.",
    ),
]  # fmt: skip


def check(
    file: JobFile = None,
    config: Config = None,
    variable: Variables = None,
    connect: Connect = False,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    timeout: Within = 120.0,
    plugin: Plugins = None,
    lenient: Lenient = False,
    allow_unset: AllowUnset = False,
    allow_python: AllowPython = False,
    debug: Debug = False,
) -> None:
    """Check a job file without running it: every mistake at once."""
    named = masters or node_config
    if named and not connect:
        raise UsageError("Only check --connect asks a cluster. Add --connect, or name no masters.")
    path, report = one_file(file, config), report_for(config, lenient, allow_unset)
    tree = read_tree(path, parse_assignments(variable or []), report)
    if not connect or not (named or os.environ.get("HOLDFAST_MASTERS")):
        check_here(path, tree, report, plugin or [], allow_python=allow_python, connect=connect)
        return
    if plugin:
        raise UsageError("check --connect on a cluster takes no --plugin: workers load their own.")
    report.raise_if_any()
    show_warnings(report.warnings)  # of the text, which no worker sees
    spec = encode_spec(JobSource(str(path), tree, None, report.lenient, allow_python))
    # A plain check is to be quick: only one that asks a cluster loads what talks HTTP.
    from holdfast.cli.cluster_verb import client_for

    client = client_for(masters, node_config, token_file, patience)
    try:
        found = client.check_connect(spec, timeout)
    except Unavailable as error:
        if not named:
            error.add_note(
                "HOLDFAST_MASTERS is set, so a worker of that cluster is asked. Without it, this"
                " machine looks."
            )
        raise
    finally:
        client.close()
    _tell(path, found)


def _tell(path: Path, found: "Connected") -> None:
    """Tell what a worker has found; raise it where that is not nothing."""
    where = f"worker {found.worker}" if found.worker else "the master"
    wrong = [
        JobFileProblem(SourceLocation(m.file, m.line, m.column), m.message) for m in found.mistakes
    ]
    warned = [
        JobFileProblem(SourceLocation(m.file, m.line, m.column), m.message) for m in found.warnings
    ]
    if found.problem:
        said = f"{where} could not look at everything: {found.problem}."
        wrong.append(JobFileProblem(SourceLocation(str(path), 1, 1), said))
    if wrong:
        screen.print(f"{path}: as {where} sees it:", markup=False)
        raise JobFileError(wrong, warned)
    show_warnings(warned)
    said = f"{path}: no mistakes found; {where} can open all that it names."
    screen.print(said, markup=False)
