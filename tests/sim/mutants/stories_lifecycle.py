"""The good story, broken in one place for each invariant: leadership, lifecycle, tasks, cleanup."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from holdfast.core.job import JobStatus
from holdfast.core.pipeline import PipelineStatus
from holdfast.core.task import TaskStatus, WorkerId
from tests.oracle import leadership, lifecycle, substrate, tasks, tombstones
from tests.oracle.events import (
    End,
    Fault,
    Lease,
    Left,
    Order,
    Proof,
    Publish,
    Setting,
    Snapshot,
    Start,
    Took,
    Write,
)
from tests.oracle.story import Story
from tests.sim.stories import (
    A1,
    JOB,
    PIPE,
    TERM,
    USER,
    Events,
    W,
    added,
    changed,
    place,
    record,
    rewritten,
    without,
    wrote,
)

Check = Callable[[Story], Iterator[str]]
Break = Callable[[Events], Events]

BREAKS: list[tuple[str, Check, Break]] = []


def breaks(number: str, check: Check) -> Callable[[Break], Break]:
    """Note that a story breaks an invariant, and the check that must say so."""

    def note(one: Break) -> Break:
        BREAKS.append((number, check, one))
        return one

    return note


def deploy(events: Events) -> Any:
    return events[place(events, Order, order="DeployTask")]


def second(job: Any) -> Any:
    return replace(job, incarnation="i2")


@breaks("I1", leadership.terms)
def term_used_twice(e: Events) -> Events:
    gone = Write(key="leader", revision=9, deleted=True)
    return added(e, 4, gone, Write(key="leader", revision=1, record="M2#1"))


@breaks("I1", leadership.terms)
def two_leaders(e: Events) -> Events:
    return added(e, 5, Write(key="leader", revision=2, record="M2#1", process="M2#1"))


@breaks("I2", leadership.terms)
def write_of_a_former_term(e: Events) -> Events:
    return changed(e, wrote(e, PIPE, 3), term=TERM - 1)


@breaks("I2", leadership.terms)
def write_of_another_master(e: Events) -> Events:
    return changed(e, wrote(e, PIPE, 3), process="M2#1")


@breaks("I3", leadership.obedience)
def order_of_a_former_term(e: Events) -> Events:
    return added(e, place(e, Took), Took(order="StopTask", term=TERM - 1, process=W))


@breaks("I4", leadership.answers)
def unproven_confirmation(e: Events) -> Events:
    heard = place(e, Order, order="SourceEndAck")
    return [x for i, x in enumerate(e) if type(x) is not Proof or i > heard]


@breaks("I4", leadership.answers)
def unproven_answer(e: Events) -> Events:
    return without(e, place(e, Proof, 1))


@breaks("I5", leadership.freshness)
def order_without_a_lease(e: Events) -> Events:
    return [x for x in e if type(x) is not Lease]


@breaks("I7", leadership.mirrors)
def blind_write(e: Events) -> Events:
    return changed(e, wrote(e, PIPE, 4), guards={"leader": TERM})


@breaks("I9", lifecycle.submits)
def accepted_and_lost(e: Events) -> Events:
    return [x for x in e if not (isinstance(x, Write) and x.key == JOB)]


@breaks("I9", lifecycle.submits)
def one_token_two_lives(e: Events) -> Events:
    return added(e, -1, Write(key=JOB, revision=99, record=second(record(e, JOB, 0))))


@breaks("I9", lifecycle.submits)
def begun_again(e: Events) -> Events:
    return added(e, -1, Write(key=JOB, revision=99, record=record(e, JOB, 0)))


@breaks("I10", lifecycle.edges)
def job_jumps(e: Events) -> Events:
    return rewritten(e, JOB, 1, lambda j: replace(j, status=JobStatus.CANCELED))


@breaks("I10", lifecycle.edges)
def job_begins_running(e: Events) -> Events:
    return rewritten(e, JOB, 0, lambda j: replace(j, status=JobStatus.RUNNING))


@breaks("I10", lifecycle.edges)
def pipeline_comes_back(e: Events) -> Events:
    return rewritten(e, PIPE, 4, lambda p: replace(p, status=PipelineStatus.STOPPED))


@breaks("I10", lifecycle.edges)
def task_comes_back(e: Events) -> Events:
    return rewritten(e, PIPE, 2, lambda p: with_task(p, status=TaskStatus.DONE))


def with_task(pipeline: Any, **facts: Any) -> Any:
    (task,) = pipeline.tasks
    return replace(pipeline, tasks=(replace(task, **facts),))


@breaks("I11", lifecycle.ends)
def record_changes_after_the_end(e: Events) -> Events:
    end = wrote(e, JOB, 2)
    return added(e, end, Write(key=PIPE, revision=98, record=record(e, PIPE, 2)))


@breaks("I11", lifecycle.ends)
def order_after_the_end(e: Events) -> Events:
    return added(e, wrote(e, JOB, 2), deploy(e))


@breaks("I11", lifecycle.ends)
def commit_after_the_end(e: Events) -> Events:
    return added(e, wrote(e, JOB, 2), Publish(table="t", user=USER, number=2, version=2))


@breaks("I12", lifecycle.ends)
def restored_after_the_end(e: Events) -> Events:
    return added(e, wrote(e, JOB, 2), replace(deploy(e), term=TERM + 1))


@breaks("I13", lifecycle.visible)
def finished_without_a_commit(e: Events) -> Events:
    return without(e, place(e, Snapshot, 1))


@breaks("I13", lifecycle.visible)
def finished_without_a_final_checkpoint(e: Events) -> Events:
    return rewritten(e, PIPE, 2, lambda p: replace(p, final=None), onwards=True)


@breaks("I13", lifecycle.visible)
def shows_what_is_not_complete(e: Events) -> Events:
    return changed(e, place(e, Snapshot, 0), number=2)


@breaks("I14", lifecycle.one_end)
def two_ends(e: Events) -> Events:
    other = replace(record(e, JOB, 2), status=JobStatus.CANCELED)
    return changed(e, place(e, Write, key="history/j/i1"), record=other)


@breaks("I14", lifecycle.one_end)
def runs_after_its_end(e: Events) -> Events:
    return added(e, wrote(e, JOB, 2), Write(key=JOB, revision=98, record=record(e, JOB, 1)))


@breaks("I15", lifecycle.cancels)
def checkpoint_after_cancel(e: Events) -> Events:
    return rewritten(e, JOB, 1, lambda j: replace(j, status=JobStatus.CANCELING))


@breaks("I16", lifecycle.restores)
def starts_from_scratch(e: Events) -> Events:
    again = replace(e[place(e, Start)], at=0.0)
    return added(e, wrote(e, PIPE, 6), again)


@breaks("I17", lifecycle.queue)
def overtakes(e: Events) -> Events:
    first = replace(record(e, JOB, 0), id="older", token="other")
    submit = Write(key="job/older", revision=2, record=first, at=-9.0)
    return added(e, 4, submit, Proof(guards={"job/older": 0}, at=-9.0))


@breaks("I17", lifecycle.queue)
def placed_twice(e: Events) -> Events:
    placed = wrote(e, PIPE, 1)
    waits = Write(key=PIPE, revision=98, record=record(e, PIPE, 0))
    return added(e, placed, waits, e[placed])


@breaks("I18", tasks.attempts)
def attempt_goes_back(e: Events) -> Events:
    return rewritten(e, PIPE, 2, lambda p: with_task(p, attempt=2))


@breaks("I18", tasks.attempts)
def attempt_runs_twice(e: Events) -> Events:
    start = place(e, Start)
    return added(e, start, e[start])


@breaks("I18", tasks.attempts)
def older_attempt_starts(e: Events) -> Events:
    start = place(e, Start)
    first = e[start]
    assert isinstance(first, Start)
    return added(e, start - 1, replace(first, attempt=2))


@breaks("I19", tasks.contributions)
def end_by_another_worker(e: Events) -> Events:
    return rewritten(e, PIPE, 7, lambda p: with_task(p, place=WorkerId("W2", "W2#1")))


@breaks("I20", tasks.survival)
def restart_by_takeover(e: Events) -> Events:
    broken = rewritten(e, PIPE, 3, lambda p: with_task(p, attempt=2), onwards=True)
    return added(broken, 5, Fault(fault="kill", of="M1"))


@breaks("I21", tasks.orphans)
def runs_on_without_a_leader(e: Events) -> Events:
    return changed(e, place(e, Took, 1), at=40.0)


@breaks("I22", tasks.slots)
def slots_given_twice(e: Events) -> Events:
    (task,) = record(e, PIPE, 1).tasks
    other = replace(record(e, PIPE, 1), number=2, tasks=(replace(task, id="t2"),))
    return added(e, wrote(e, PIPE, 1), Write(key="pipeline/j/0002", revision=98, record=other))


@breaks("I23", tasks.reports)
def failure_unheard(e: Events) -> Events:
    cut = wrote(e, PIPE, 3)
    return [*e[:cut], End(**A1, worker=W, why="failed")]


@breaks("I64", tombstones.burials)
def gone_without_a_trace(e: Events) -> Events:
    return without(e, place(e, Write, key="history/j/i1"))


@breaks("I65", tombstones.burials)
def removed_alive(e: Events) -> Events:
    return added(e, wrote(e, JOB, 1), Write(key=JOB, revision=98, deleted=True))


@breaks("I66", tombstones.burials)
def removed_one_by_one(e: Events) -> Events:
    return changed(e, place(e, Write, key=PIPE, deleted=True), revision=99)


@breaks("I67", tombstones.leftovers)
def something_is_left(e: Events) -> Events:
    return added(e, -1, Left(thing="blob b1"))


@breaks("I68", tombstones.reuse)
def id_taken_early(e: Events) -> Events:
    new = second(record(e, JOB, 0))
    return added(e, wrote(e, JOB, 2), Write(key=JOB, revision=98, record=new))


@breaks("I70", tombstones.delay)
def tombstone_falls_early(e: Events) -> Events:
    return changed(e, place(e, Setting), tombstone_s=60.0)


@breaks("I75", substrate.revisions)
def store_goes_back(e: Events) -> Events:
    return changed(e, wrote(e, PIPE, 5), revision=2)
