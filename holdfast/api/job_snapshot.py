"""What the leader knows of one job at one moment, gathered for an answer."""

from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.admission import too_large
from holdfast.master.explain import JobSnapshot, Queue
from holdfast.master.journal import Journal
from holdfast.master.leader import Leader
from holdfast.master.ports import Ports
from holdfast.wire.messages import TaskReport


def scene_of(
    leader: Leader,
    ports: Ports,
    journal: Journal,
    job: JobRecord,
    pipelines: tuple[PipelineRecord, ...],
) -> JobSnapshot:
    """Return what `explain` needs."""
    keeper = leader.jobs.get(job.id)
    parts = keeper.pipelines.items() if keeper else ()
    crew = leader.crew
    holding = {
        seen.hello.worker
        for seen in crew.seen.values()
        for h in seen.hello.held
        if (h.key.job, h.key.incarnation) == (job.id, job.incarnation)
    }
    return JobSnapshot(
        job,
        pipelines,
        ports.settings,
        ports.clock.date(),
        reports={r.pipeline: r for r in leader.health(job.id)},
        waits=waits_of(leader, job),
        missing={n: p.gathering.waiting for n, p in parts if p.gathering},
        connected=frozenset(crew.seen),
        holding=tuple(sorted(holding)),
        since=journal.since(job.id),
        buried=keeper is None,
        queue=queue_of(leader, job),
        troubles={n: p.trouble for n, p in parts if p.trouble},
        moves=moves_of(leader, job),
    )


def moves_of(leader: Leader, job: JobRecord) -> dict[tuple[int, str], str]:
    """Return where a job's tasks on draining workers move."""
    here = (i for i in leader.drains.incarnations(leader))
    mine = [(k, t) for i in here for k, t in leader.roster.on(i).items() if k.job == job.id]
    return {(k.pipeline, t.id): leader.drains.moves(k, t) for k, t in mine}


def queue_of(leader: Leader, job: JobRecord) -> Queue:
    """Return the place of a job among those that wait to start, and which jobs hold the slots."""
    living = [k for k in leader.jobs.values() if not k.terminal]
    starting = sorted((k.order, k.state.id) for k in living if k.state.status is JobStatus.PENDING)
    waiting = [name for _, name in starting]
    held = {
        k.state.id: sum(t.slots for p in k.pipelines.values() for t in p.state.tasks if t.live)
        for k in sorted(living, key=lambda k: k.order)
    }
    place = waiting.index(job.id) + 1 if job.id in waiting else 0
    holders = tuple((name, n) for name, n in held.items() if n)
    mine = leader.jobs.get(job.id)
    parts = [p.state for p in mine.pipelines.values()] if mine and place else []
    return Queue(place, len(waiting), holders, too_large(job, parts, leader.crew))


def held_of(leader: Leader, job: JobRecord) -> dict[tuple[int, str], TaskReport]:
    """Return what workers say they hold of a job; of several attempts the latest."""
    everything = (h for seen in leader.crew.seen.values() for h in seen.hello.held)
    mine = [h for h in everything if (h.key.job, h.key.incarnation) == (job.id, job.incarnation)]
    return {(h.key.pipeline, h.key.task): h for h in sorted(mine, key=lambda h: h.attempt)}


def waits_of(leader: Leader, job: JobRecord) -> dict[tuple[int, str], str]:
    """Return why tasks of a job have no place."""
    mine = {k: why for k, why in leader.waits.items() if k.job == job.id}
    return {(k.pipeline, k.task): w for k, w in mine.items() if k.incarnation == job.incarnation}
