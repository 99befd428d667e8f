"""There is no room: who says so, how a quiet command ends, and how a worker is emptied."""

import re
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.cluster.processes import TOKEN, Cluster
from tests.cluster.story import INTERVAL_S, WITHIN, Story, ended, shown
from tests.ui.browser import Visit, chromium, visiting

ENDS = Shape(((From(6, 5, 200),),), interval_ms=500)
HOLDS = Shape(((From(ENDLESS, 5, 200),),), interval_ms=500, streaming=True)
WAITED_S = 25
"""A quiet command gives up after so long; by then it has said twice what its job waits for."""

NO_ROOM = "needs 1 slots, 0 are free"


def room_scene(folder: Path, interval_s: float = INTERVAL_S, *, pages: bool = True) -> list[str]:
    """A job waits for the only slot; then there is another worker, and the first is drained."""
    cluster = Cluster(folder)
    with ExitStack() as stack:
        browser = stack.enter_context(chromium()) if pages else None
        stack.enter_context(ended(cluster))
        cluster.master()
        story = Story(cluster, f"No slot is free; interval {interval_s:g} s")
        story.ready()
        visit = None
        if browser:
            visit = stack.enter_context(visiting(browser, cluster.urls[0]))
            visit.sign_in(TOKEN)
        cluster.worker(slots=1)
        for job, shape in (("holds", HOLDS), ("next", ENDS)):
            (folder / f"{job}.conf").write_text(shape.text(job, folder / job))
        story.types("submit", "holds.conf", "--async", "--set-job-id", "holds")
        story.until("it has the slot", lambda: cluster.committed("holds", 1))
        _waits(story, visit, interval_s)
        _room_comes(story)
        _is_drained(story)
        _ends_of_a_command(story)
    return story.flaws


def _waits(story: Story, visit: Visit | None, interval_s: float) -> None:
    """A quiet command says why it waits, on standard error, and ends when its time is over."""
    story.begin(f"W1 has one slot, and job holds has it; a quiet command waits {WAITED_S} s")
    quiet = ("submit", "next.conf", "-q", "--set-job-id", "next", "--timeout", str(WAITED_S))
    said = story.types(*quiet, code=124)
    told = said.splitlines()
    story.claim(story.took_s < 2 * WAITED_S, "it ends when its time is over")
    first = [line for line in told if line.startswith("PENDING") and NO_ROOM in line]
    story.claim(len(first) > 1, "it has said again and again what it waits for")
    story.claim("continues" in told[-1] and NO_ROOM in told[-1], "and how it left the job")
    story.claim(WITHIN * interval_s < WAITED_S, "two intervals are over")
    found = story.sees("next", lambda j: j.status == "PENDING")
    story.claim(NO_ROOM in found.pipelines[0].tasks[0].waits, "the REST interface says so")
    story.claim(NO_ROOM in story.types("explain", "next"), "explain says so")
    story.claim(story.series('holdfast_jobs{status="PENDING"}') == 1, "a metric says so")
    if visit:
        story.say(shown(visit, "next"))
        panel = visit.page.get_by_test_id("explain")
        panel.get_by_text(NO_ROOM).first.wait_for()
        story.say("its page: " + " ".join(panel.inner_text().split()))


def _room_comes(story: Story) -> None:
    """Another worker comes: the job runs there, and a command that follows it ends with 0."""
    cluster = story.cluster
    story.begin("W2 comes, with one slot")
    cluster.worker("W2", slots=1)
    ended_as = story.until("it is over", lambda: _over(story, "next"))
    story.claim(ended_as == "FINISHED", "the job that was left waiting has run to its end")
    flaws = ENDS.flaws(cluster.folder / "next", finished=True)
    story.claim(flaws == [], "every row is there, once")


def _is_drained(story: Story) -> None:
    """A worker is drained: its task goes on elsewhere, and nothing counts as a failure."""
    cluster = story.cluster
    story.begin("W1 is drained")
    said = story.types("drain", "W1", "--timeout", "300")
    story.claim("W1 is free of tasks and gets none" in said, "it is free")
    found = story.sees("holds", lambda j: j.pipelines[0].tasks[0].status == "running")
    (part,) = found.pipelines
    (task,) = part.tasks
    counted = f"restarts {found.restarts}, retries {part.retries}, failures {part.failures}"
    story.say(f"its task runs on {task.worker} as attempt {task.attempt}; {counted}")
    story.claim(task.worker == "W2", "its task goes on elsewhere")
    story.claim((found.restarts, part.retries, part.failures) == (0, 0, []), "nothing was counted")
    story.claim("W1 is DRAINING" in story.types("cluster"), "the cluster says so")
    story.claim(story.series("holdfast_workers_draining") == 1, "a metric says so")
    story.claim(HOLDS.flaws(cluster.folder / "holds", finished=False) == [], "every row once")


def _ends_of_a_command(story: Story) -> None:
    """The exit code of a command that follows a job says how it ended."""
    cluster = story.cluster
    story.begin("a quiet command follows a job that is cancelled")
    following = cluster.begin("submit", "next.conf", "-q", "--set-job-id", "gone")
    story.until("it waits", lambda: cluster.knows("gone"))
    story.types("cancel", "gone")
    _, said = following.communicate(timeout=120)
    story.say(f"exit code {following.returncode}: {said.strip()}")
    story.claim(following.returncode == 130, "a job that was cancelled: exit code 130")
    story.types("undrain", "W1")
    story.types("submit", "next.conf", "-q", "--set-job-id", "whole")
    story.types("savepoint", "holds")
    bad = re.sub(r"(?m)^( *row\.num = )\d+", r"\g<1>-1", ENDS.text("bad", cluster.folder / "bad"))
    (cluster.folder / "bad.conf").write_text(bad)
    story.types("submit", "bad.conf", "-q", code=1)
    story.types("submit", "next.conf", "--no-such-flag", code=2)


def _over(story: Story, job: str) -> str:
    found = story.cluster.client.job(job)
    return found.status if found.ended_s else ""
