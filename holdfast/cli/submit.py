"""The verbs that start a job on a cluster: from its file, or from a saved state."""

import secrets
import time
from pathlib import Path
from typing import Annotated

import typer

from holdfast.api.requests import Submit
from holdfast.api.views import SavedView
from holdfast.cli.cluster_verb import (
    Connect,
    Json,
    OneJob,
    Wait,
    cluster_verb,
    print_grid,
    print_json,
)
from holdfast.cli.follow import Follower
from holdfast.cli.job_file import read_tree
from holdfast.cli.run import (
    AllowPython,
    AllowUnset,
    JobFile,
    JobId,
    Lenient,
    Name,
    Quiet,
    Variables,
    one_file,
    report_for,
)
from holdfast.cli.run import Config as FileFlag
from holdfast.cli.terminal import screen, show_warnings
from holdfast.client import Client, date_text
from holdfast.connect.checks import CheckReport
from holdfast.errors import UsageError, UserError
from holdfast.plan.record import JobSource, encode_spec
from holdfast.plan.variables import parse_assignments

Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS",
        help="Stop waiting then; the job continues, and the exit code is 124. 0: no limit.",
    ),
]  # fmt: skip
CloseJob = Annotated[
    bool, typer.Option("-cj", "--close-job", help="Cancel the job if this command is ended.")
]
Maps = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="OLD=NEW",
        help="The saved source or sink OLD (its id or uid) continues as NEW; none: it is dropped.",
    ),
]  # fmt: skip
AllowDropped = Annotated[
    bool,
    typer.Option("--allow-dropped", help="Forget saved sources and sinks that the file lacks."),
]

From = Annotated[
    int,
    typer.Option(
        "--from", metavar="N", min=0, help="The saved state to continue from; 0: the latest."
    ),
]
WriteAgain = Annotated[
    bool,
    typer.Option(
        "--write-again", help="Continue there even if rows that are visible are written again."
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB_ID | rm JOB_ID N]", help="Of one job; or what to remove."),
]


@cluster_verb
def restore(
    connect: Connect,
    job_id: OneJob,
    file: JobFile = None,
    config: FileFlag = None,
    variable: Variables = None,
    name: Name = None,
    set_job_id: JobId = None,
    number: From = 0,
    maps: Maps = None,
    allow_dropped: AllowDropped = False,
    write_again: WriteAgain = False,
    wait: Wait = True,
    lenient: Lenient = False,
    allow_unset: AllowUnset = False,
    allow_python: AllowPython = False,
    quiet: Quiet = False,
    *,
    timeout: Timeout = 0.0,
) -> None:
    """Run a job again from what it has left, with the same file or another one.

    A job leaves something when it is stopped with a savepoint, and when it fails or is cancelled
    after its first checkpoint.  Without a file, the one that it ran with is used again.
    """
    text = ""
    if file or config:
        path = one_file(file, config)
        report = report_for(config, lenient, allow_unset)
        text = _spec_text(path, variable, name, report, python=allow_python)
    elif variable or name or lenient or allow_unset or allow_python:
        raise UsageError("Variables, a name, and what a file is allowed need a job file.")
    given = Submit(
        text, secrets.token_hex(16), set_job_id or job_id, restore=True, maps=_map_of(maps),
        allow_dropped=allow_dropped, source=job_id, number=number, write_again=write_again,
    )  # fmt: skip
    client = connect()
    _send(client, given, wait=wait, close_job=False, quiet=quiet, timeout_s=timeout)


restart = restore


@cluster_verb
def savepoints(
    connect: Connect,
    words: Words = None,
    *,
    as_json: Json = False,
) -> None:
    """List the saved states of jobs, or remove one: savepoints rm JOB_ID N."""
    client = connect()
    match words or []:
        case ["rm", job_id, number] if number.isdigit():
            client.remove_saved(job_id, int(number))
            screen.print(f"Saved state {number} of job {job_id} is removed.", markup=False)
        case [] | [_]:
            found = client.saved(*(words or []))
            if as_json:
                print_json(found)
                return
            titles = ("job id", "state", "of", "ended", "rows", "to finish", "kept for", "note")
            print_grid(titles, [_row(one) for one in found])
        case _:
            raise UsageError("Write it as: savepoints [JOB_ID], or savepoints rm JOB_ID N.")


def _row(one: SavedView) -> tuple[object, ...]:
    kept = "ever" if one.expires_in_s is None else f"{one.expires_in_s / 3600:,.1f} h"
    note = f"passed: {'; '.join(one.past)}" if one.past else ""
    return (
        one.job_id, one.state, one.kind, date_text(one.ended_s), f"{one.rows:,}", one.unfinished,
        kept, note,
    )  # fmt: skip


@cluster_verb
def submit(
    connect: Connect,
    file: JobFile = None,
    config: FileFlag = None,
    variable: Variables = None,
    name: Name = None,
    job_id: JobId = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Continue from the saved state of --set-job-id.")
    ] = False,
    maps: Maps = None,
    allow_dropped: AllowDropped = False,
    wait: Wait = True,
    close_job: CloseJob = False,
    lenient: Lenient = False,
    allow_unset: AllowUnset = False,
    allow_python: AllowPython = False,
    quiet: Quiet = False,
    *,
    timeout: Timeout = 0.0,
) -> None:
    """Submit a job file to a cluster, and by default follow it to its end."""
    if restore and not job_id:
        raise UserError("--restore needs the id of the job that was stopped: --set-job-id ID.")
    path = one_file(file, config)
    report = report_for(config, lenient, allow_unset)
    text = _spec_text(path, variable, name, report, python=allow_python)
    client = connect()
    number = job_id or str(time.time_ns())[:18]
    given = Submit(text, secrets.token_hex(16), number, restore, _map_of(maps), allow_dropped)
    box = config is not None  # SeaTunnel's flag, and so its statistics
    _send(client, given, wait=wait, close_job=close_job, quiet=quiet, timeout_s=timeout, box=box)


def _send(
    client: Client,
    given: Submit,
    *,
    wait: bool,
    close_job: bool,
    quiet: bool,
    timeout_s: float,
    box: bool = False,
) -> None:
    """Submit a job, print how it was accepted, and follow it to its end if asked."""
    accepted, number = client.send(given), given.job_id
    for warning in accepted.warnings:
        screen.print(f"warning: {warning}", markup=False)
    for line in accepted.restored:
        screen.print(line, markup=False)
    if not wait:
        screen.print(f"Job {number} ({accepted.name}) was accepted.", markup=False)
        typer.echo(number)
        return
    leave = "cancels it" if close_job else "leaves it running"
    screen.print(
        f"Job {number} ({accepted.name}) was accepted; following it (Ctrl-C {leave}).", markup=False
    )
    follower = Follower(
        client, number, quiet=quiet, cancel_on_leave=close_job, timeout_s=timeout_s, box=box
    )
    code = follower.follow()
    if code:
        raise typer.Exit(code)


def _spec_text(
    path: Path, variable: list[str] | None, name: str | None, report: CheckReport, *, python: bool
) -> str:
    """Read a job file here, where its includes and variables are; the master checks it."""
    tree = read_tree(path, parse_assignments(variable or []), report)
    show_warnings(report.warnings)  # of the text, which no master sees
    return encode_spec(JobSource(str(path), tree, name, report.lenient, python))


def _map_of(maps: list[str] | None) -> dict[str, str]:
    """Return what --map says: old ids or uids and new ones."""
    given = maps or []
    wrong = [one for one in given if not all(one.partition("="))]
    if wrong:
        raise UserError(f"--map {wrong[0]}: write it as OLD=NEW, with ids or uids, or OLD=none.")
    found = dict(one.split("=", 1) for one in given)
    if len(found) < len(given):
        raise UserError("--map names the same source or sink twice. Name each once.")
    return found
