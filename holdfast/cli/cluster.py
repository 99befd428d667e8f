"""The verbs that talk to a cluster: submit, list, status, explain, cancel and their like."""

import json
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from holdfast.api.requests import Submit
from holdfast.api.views import ENDED
from holdfast.cli.crew import leaving_lines, state_of, trouble_lines
from holdfast.cli.flags import Masters, NodeFile, Patience, Token
from holdfast.cli.follow import Follower
from holdfast.cli.job_file import read_tree
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
from holdfast.client import Client, date_text, explained_text
from holdfast.connect.checks import CheckReport
from holdfast.errors import UserError
from holdfast.plan.record import JobSource, encode_spec
from holdfast.plan.variables import parse_assignments

Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS",
        help="Wait no longer for the end; the job goes on, and the exit code is 124. 0: for ever.",
    ),
]  # fmt: skip
Wait = Annotated[bool, typer.Option("--wait/--async", help="Wait for the end of the job.")]
CloseJob = Annotated[
    bool, typer.Option("-cj", "--close-job", help="Cancel the job if this command is ended.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Maps = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="OLD=NEW",
        help="The saved source or sink OLD (its id or uid) goes on as NEW; none: it ends here.",
    ),
]  # fmt: skip
AllowDropped = Annotated[
    bool,
    typer.Option("--allow-dropped", help="Forget saved sources and sinks that the file lacks."),
]
OneJob = Annotated[str, typer.Argument(metavar="JOB_ID", help="The job's id.")]
Jobs = Annotated[list[str], typer.Argument(metavar="JOB_ID...", help="The jobs' ids.")]


def submit(
    file: JobFile = None,
    config: FileFlag = None,
    variable: Variables = None,
    name: Name = None,
    job_id: JobId = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Go on from what --set-job-id has left.")
    ] = False,
    maps: Maps = None,
    allow_dropped: AllowDropped = False,
    wait: Wait = True,
    close_job: CloseJob = False,
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
    """Submit a job file to a cluster, and by default follow it to its end."""
    if restore and not job_id:
        raise UserError("--restore needs the id of the job that was stopped: --set-job-id ID.")
    path = one_file(file, config)
    report = report_for(config, lenient, allow_unset)
    text = spec_text(path, variable, name, report, python=allow_python)
    client = client_for(masters, node_config, token_file, patience)
    number = job_id or str(time.time_ns())[:18]
    given = Submit(text, secrets.token_hex(16), number, restore, map_of(maps), allow_dropped)
    box = config is not None  # SeaTunnel's flag, and so its statistics
    send(client, given, wait=wait, close_job=close_job, quiet=quiet, timeout_s=timeout, box=box)


def send(
    client: Client,
    given: Submit,
    *,
    wait: bool,
    close_job: bool,
    quiet: bool,
    timeout_s: float,
    box: bool = False,
) -> None:
    """Submit a job, say what becomes of it, and follow it to its end if asked."""
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


def list_jobs(
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the jobs of a cluster, the newest first."""
    found = client_for(masters, node_config, token_file, patience).jobs()
    if as_json:
        print_json(found)
        return
    rows = [
        (j.job_id, j.name, j.status, j.health, date_text(j.since_s), date_text(j.ended_s),
         f"{j.read:,}", f"{j.written:,}", f"{j.rejected:,}", j.reason or j.health_reason)
        for j in found.jobs
    ]  # fmt: skip
    heads = ("job id", "name", "status", "health", "submitted", "ended", "read", "written")
    print_grid((*heads, "rejected", "reason"), rows)


def status(
    job_id: OneJob,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show how a job stands: health, checkpoints, counters, tasks and failures."""
    found = client_for(masters, node_config, token_file, patience).job(job_id)
    if as_json:
        print_json(found)
        return
    source = "the leader" if found.live else f"the store (revision {found.revision})"
    health = f", {found.health}" if found.health else ""
    typer.echo(f"Job {found.job_id} ({found.name}) is {found.status}{health}.")
    if found.reason:
        typer.echo(found.reason)
    typer.echo(f"read {found.read:,} rows, rejected {found.rejected:,},"
               f" committed {found.written:,}, {found.bytes:,} bytes;"
               f" submitted {date_text(found.since_s)}; says {source}")  # fmt: skip
    for part in found.pipelines:
        age = "" if part.checkpoint_age_s is None else f", {part.checkpoint_age_s:.1f} s ago"
        health = f", {part.health}" if part.health else ""
        typer.echo(
            f"pipeline {part.pipeline}: {part.status}{health}, checkpoint"
            f" {part.checkpoint}{age}, committed {part.committed} {part.reason}".rstrip()
        )
        tasks = [
            (t.task, t.status, t.attempt, t.worker, f"{t.read:,}", f"{t.written:,}", t.waits)
            for t in part.tasks
        ]
        print_grid(("task", "status", "attempt", "worker", "read", "written", "waits"), tasks)
        for failure in part.failures:
            attempt = f"{failure.task} attempt {failure.attempt}: " if failure.task else ""
            typer.echo(f"  failed: {attempt}{failure.reason}")


def explain(
    job_id: OneJob,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what a job waits for, from whom, since when, and what happens next."""
    found = client_for(masters, node_config, token_file, patience).explain(job_id)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    typer.echo(explained_text(found))


def cancel(
    job_ids: Jobs,
    wait: Wait = True,
    force: Annotated[
        bool,
        typer.Option("--force", help="End them at once, whatever they have still to commit."),
    ] = False,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Stop jobs.  What is complete is committed, the rest is dropped.

    With --force what is complete and not visible stays so: it is listed, and the next life of the
    job finishes it first (holdfast restart).
    """
    client = client_for(masters, node_config, token_file, patience)
    for job_id in job_ids:
        client.cancel(job_id, force=force)
    for job_id in job_ids:
        # What holds up a cancel, such as a commit that does not get through, is said.
        look = Follower(client, job_id, quiet=True).show
        ended = client.wait(job_id, look) if wait else client.job(job_id)
        if force and wait:
            typer.echo(explained_text(client.explain(job_id)))
        else:
            screen.print(f"Job {job_id} is {ended.status}.", markup=False)


def savepoint(
    job_id: OneJob,
    wait: Wait = True,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Stop a job with a savepoint, from which `restore` goes on.  It stays until it is removed."""
    client = client_for(masters, node_config, token_file, patience)
    client.savepoint(job_id)
    until = ENDED | {"RUNNING"}  # RUNNING again: the savepoint failed and the job goes on
    ended = client.wait(job_id, lambda _: None, until) if wait else client.job(job_id)
    screen.print(f"Job {job_id} is {ended.status}. {ended.reason}".rstrip(), markup=False)
    if wait and ended.status not in ("SAVEPOINT_DONE", "FINISHED"):
        raise typer.Exit(1)


def logs(
    job_id: OneJob,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what the masters have logged about a job; its workers' logs are on their machines."""
    client = client_for(masters, node_config, token_file, patience)
    lines = client.logs(job_id)
    if not lines:
        found = client.job(job_id)  # says so if there is no such job
        screen.print(f"No master has logged anything about job {job_id}, which is {found.status}.")
    for line in lines:
        if as_json:
            typer.echo(json.dumps(line))
            continue
        hidden = ("time", "level", "message", "job_id", "trace")
        facts = " ".join(f"{k}={v}" for k, v in line.items() if k not in hidden)
        typer.echo(f"{line['time']} {line['level']} {line['message']}  {facts}")


def cluster(
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show who leads and who works."""
    client = client_for(masters, node_config, token_file, patience)
    found = client.cluster()
    if as_json:
        print_json(found)
        return
    typer.echo(f"{found.leader} leads at {found.url} in term {found.term}.")
    rows = [
        (w.worker, state_of(w), w.incarnation,
         f"{w.held} of {w.slots}", f"{w.heard_s_ago:.1f} s ago",
         ", ".join(f"{k}={v}" for k, v in w.tags.items()))
        for w in found.workers
    ]  # fmt: skip
    print_grid(("master", "state"), list(client.masters().items()))
    print_grid(("worker", "state", "incarnation", "slots held", "heard", "tags"), rows)
    for line in (*trouble_lines(found), *leaving_lines(found)):
        typer.echo(line)
    for job_id, reason in found.set_aside.items():
        typer.echo(f"set aside: job {job_id}: {reason}")


def spec_text(
    path: Path, variable: list[str] | None, name: str | None, report: CheckReport, *, python: bool
) -> str:
    """Read a job file here, where its includes and variables are; the master checks it."""
    tree = read_tree(path, parse_assignments(variable or []), report)
    return encode_spec(JobSource(str(path), tree, name, report.lenient, python))


def map_of(maps: list[str] | None) -> dict[str, str]:
    """Return what --map says: old ids or uids and new ones."""
    given = maps or []
    wrong = [one for one in given if not all(one.partition("="))]
    if wrong:
        raise UserError(f"--map {wrong[0]}: write it as OLD=NEW, with ids or uids, or OLD=none.")
    found = dict(one.split("=", 1) for one in given)
    if len(found) < len(given):
        raise UserError("--map names the same source or sink twice. Name each once.")
    return found


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
