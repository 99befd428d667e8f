"""What the verbs say of workers: how they are, and what becomes of their tasks."""

from holdfast.api.views import ClusterView, WorkerView


def state_of(worker: WorkerView) -> str:
    """Return how a worker is in a word."""
    return "TROUBLE" if worker.trouble else "DRAINING" if worker.draining else "ready"


def trouble_lines(found: ClusterView) -> list[str]:
    """Say what is wrong with workers."""
    return [f"{w.worker} is in TROUBLE: {w.trouble}" for w in found.workers if w.trouble]


def leaving_lines(found: ClusterView, name: str = "") -> list[str]:
    """Say of draining workers why they are, and what becomes of their tasks; of one or of all."""
    lines = []
    for w in found.workers:
        if not w.draining or (name and w.worker != name):
            continue
        lines.append(f"{w.worker} is DRAINING: {w.draining}; it holds {_tasks(len(w.tasks))}")
        lines += [f"  job {t.job_id}, task {t.task} {t.moves or 'is leaving'}" for t in w.tasks]
    there = {w.worker for w in found.workers}
    absent = [n for n in found.drained if n not in there and name in ("", n)]
    return [*lines, *(f"{n} is DRAINING and not in contact" for n in absent)]


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count or 'no'} tasks"
