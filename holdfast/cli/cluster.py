"""The verbs that talk to a cluster: list, status, explain, cancel, savepoint, logs."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from holdfast.api.views import ENDED
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
from holdfast.cli.terminal import screen
from holdfast.cli.workers import leaving_lines, state_of, trouble_lines
from holdfast.client import date_text, explained_text

Jobs = Annotated[list[str], typer.Argument(metavar="JOB_ID...", help="The jobs' ids.")]


@cluster_verb
def list_jobs(
    connect: Connect,
    *,
    as_json: Json = False,
) -> None:
    """List the jobs of a cluster, the newest first."""
    found = connect().jobs()
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


@cluster_verb
def status(
    connect: Connect,
    job_id: OneJob,
    *,
    as_json: Json = False,
) -> None:
    """Show the state of a job: health, checkpoints, counters, tasks and failures."""
    found = connect().job(job_id)
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


@cluster_verb
def explain(
    connect: Connect,
    job_id: OneJob,
    *,
    as_json: Json = False,
) -> None:
    """Say what a job waits for, from whom, since when, and what happens next."""
    found = connect().explain(job_id)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    typer.echo(explained_text(found))


@cluster_verb
def cancel(
    connect: Connect,
    job_ids: Jobs,
    wait: Wait = True,
    force: Annotated[
        bool,
        typer.Option("--force", help="End them at once, whatever they have still to commit."),
    ] = False,
) -> None:
    """Stop jobs.  What is complete is committed, the rest is dropped.

    With --force what is complete and not visible stays so: it is listed, and the next incarnation
    of the job finishes it first (holdfast restart).
    """
    client = connect()
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


@cluster_verb
def savepoint(
    connect: Connect,
    job_id: OneJob,
    wait: Wait = True,
) -> None:
    """Stop a job with a savepoint, from which `restore` continues.  It is kept until removed."""
    client = connect()
    client.savepoint(job_id)
    until = ENDED | {"RUNNING"}  # RUNNING again: the savepoint failed and the job continues
    ended = client.wait(job_id, lambda _: None, until) if wait else client.job(job_id)
    screen.print(f"Job {job_id} is {ended.status}. {ended.reason}".rstrip(), markup=False)
    if wait and ended.status not in ("SAVEPOINT_DONE", "FINISHED"):
        raise typer.Exit(1)


@cluster_verb
def logs(
    connect: Connect,
    job_id: OneJob,
    *,
    as_json: Json = False,
) -> None:
    """Show what the masters have logged about a job; its workers' logs are on their machines."""
    client = connect()
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


@cluster_verb
def cluster(
    connect: Connect,
    *,
    as_json: Json = False,
) -> None:
    """Show who leads and who works."""
    client = connect()
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
        typer.echo(f"unreadable: job {job_id}: {reason}")
