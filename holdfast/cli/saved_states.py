"""The verbs about what jobs have left: list it, remove it, go on from it."""

import secrets
from typing import Annotated

import typer

from holdfast.api.requests import Submit
from holdfast.api.views import SavedView
from holdfast.cli.cluster import (
    AllowDropped,
    Json,
    Maps,
    OneJob,
    Timeout,
    Wait,
    map_of,
    print_grid,
    print_json,
    send,
    spec_text,
)
from holdfast.cli.flags import Masters, NodeFile, Patience, Token
from holdfast.cli.masters import client_for
from holdfast.cli.run import (
    AllowPython,
    AllowUnset,
    Debug,
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
from holdfast.cli.terminal import screen
from holdfast.client import date_text
from holdfast.errors import UsageError

From = Annotated[
    int,
    typer.Option(
        "--from", metavar="N", min=0, help="The saved state to go on from; 0: the latest."
    ),
]
WriteAgain = Annotated[
    bool,
    typer.Option("--write-again", help="Go on there even if rows that show are written again."),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB_ID | rm JOB_ID N]", help="Of one job; or what to remove."),
]


def restore(
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
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    timeout: Timeout = 0.0,
    debug: Debug = False,
) -> None:
    """Run a job again from what it has left, with the same file or another one.

    A job leaves something when it is stopped with a savepoint, and when it fails or is cancelled
    after its first checkpoint.  Without a file, the one that it ran with is used again.
    """
    text = ""
    if file or config:
        path = one_file(file, config)
        report = report_for(config, lenient, allow_unset)
        text = spec_text(path, variable, name, report, python=allow_python)
    elif variable or name or lenient or allow_unset or allow_python:
        raise UsageError("Variables, a name, and what a file is allowed need a job file.")
    given = Submit(
        text, secrets.token_hex(16), set_job_id or job_id, restore=True, maps=map_of(maps),
        allow_dropped=allow_dropped, source=job_id, number=number, write_again=write_again,
    )  # fmt: skip
    client = client_for(masters, node_config, token_file, patience)
    send(client, given, wait=wait, close_job=False, quiet=quiet, timeout_s=timeout)


restart = restore


def savepoints(
    words: Words = None,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List what jobs have left to go on from, or remove it: savepoints rm JOB_ID N."""
    client = client_for(masters, node_config, token_file, patience)
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
