"""Spark's Java process stands still (SIGSTOP): as it starts, while a job runs, and for good."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

from holdfast.api.views import WorkerView
from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.cluster.processes import TOKEN, Cluster
from tests.cluster.story import INTERVAL_S, WITHIN, Story, ended, shown
from tests.ui.browser import Visit, chromium, visiting

ENDS = Shape(((From(12, 5, 100),),), interval_ms=None)
SILENT_S = 90.0
"""So long a silent Spark is borne here, so that there is time to show who says so."""

LEAVES_S = 120.0


def spark_scene(
    folder: Path,
    interval_s: float = INTERVAL_S,
    *,
    silent_s: float = SILENT_S,
    pages: bool = True,
) -> list[str]:
    """A job comes to a Spark that is stopped as it starts; then one runs as Spark is stopped."""
    cluster = Cluster(folder)
    cluster.environ["HOLDFAST_SPARK_SILENT_S"] = str(silent_s)
    with ExitStack() as stack:
        browser = stack.enter_context(chromium()) if pages else None
        stack.enter_context(ended(cluster))
        cluster.master()
        title = f"Spark's Java process stands still; borne for {silent_s:g} s"
        story = Story(cluster, f"{title}; interval {interval_s:g} s")
        story.ready()
        visit = None
        if browser:
            visit = stack.enter_context(visiting(browser, cluster.urls[0]))
            visit.sign_in(TOKEN)
        cluster.worker()
        _as_it_starts(story, visit, interval_s)
        _as_a_job_runs(story, visit, interval_s)
        _for_good(story)
    return story.flaws


def _as_it_starts(story: Story, visit: Visit | None, interval_s: float) -> None:
    folder = story.cluster.folder
    java = _stopped(story)
    (folder / "ends.conf").write_text(ENDS.text("ends", folder / "ends"))
    story.types("submit", "ends.conf", "--async", "--set-job-id", "ends")
    story.begin(f"Java process {java} is stopped as it starts; a batch has come")
    before = _is_told(story, visit, "ends", interval_s)
    story.sees("ends", lambda j: j.status == "FINISHED")
    story.claim(ENDS.flaws(folder / "ends", finished=True) == [], "every row is there, once")
    _is_another(story, before)


def _as_a_job_runs(story: Story, visit: Visit | None, interval_s: float) -> None:
    cluster, folder = story.cluster, story.cluster.folder
    shape = Shape(((From(ENDLESS, 5, 200),),), interval_ms=int(interval_s * 1000), streaming=True)
    (folder / "runs.conf").write_text(shape.text("runs", folder / "runs"))
    story.types("submit", "runs.conf", "--async", "--set-job-id", "runs")
    story.until("it commits", lambda: cluster.committed("runs", 1))
    java = _stopped(story)
    story.begin(f"a stream runs; Java process {java} is stopped")
    before = _is_told(story, visit, "runs", interval_s)
    reached = cluster.client.job("runs").pipelines[0].committed
    story.until("it commits again", lambda: cluster.committed("runs", reached + 2))
    _is_another(story, before)
    (part,) = cluster.client.job("runs").pipelines
    story.say(f"committed through {part.committed}, {part.retries} retries used;"
              f" the failure that is remembered: {part.failures[-1].reason!r}")  # fmt: skip
    story.claim(part.retries == 0, "it has cost no retry")
    story.claim("Spark's Java process has not answered" in part.failures[-1].reason, "the reason")
    story.types("cancel", "runs")
    story.claim(shape.flaws(folder / "runs", finished=False) == [], "no row is lost or doubled")


def _for_good(story: Story) -> None:
    """A worker that is told to end does not wait for a Spark that stands still."""
    process = story.cluster.processes["W1"]
    java = _stopped(story)
    story.begin(f"Java process {java} is stopped, and W1 is told to end (SIGTERM)")
    process.send_signal(signal.SIGTERM)
    code = process.wait(LEAVES_S)
    gone = not Path(f"/proc/{java}").exists()
    story.say(f"W1 has ended with exit code {code}; Java is {'gone' if gone else 'there'}")
    story.claim(code == 0 and gone, "it has ended, and Spark with it")


def _is_told(story: Story, visit: Visit | None, job: str, interval_s: float) -> WorkerView:
    """Have everybody say what is wrong, and soon; return the worker as it is shown."""
    told = story.sees(job, lambda j: "Java process" in j.health_reason)
    story.claim(story.at_s <= WITHIN * interval_s, "said within two intervals")
    (worker,) = story.cluster.client.cluster().workers
    story.say(f"GET /api/cluster: {worker.worker} silent_s {worker.silent_s}: {worker.trouble}")
    story.claim("it is stopped, by a signal or a debugger" in worker.trouble, "it says how")
    story.claim(told.status in ("PENDING", "RUNNING") and told.health != "OK", "it is not OK")
    said = story.cluster.client.explain(job).summary
    story.claim("Spark's Java process has not answered" in said, "explain says so")
    silent = story.series("holdfast_worker_spark_silent_seconds")
    story.claim(silent >= worker.silent_s > 0, "the metric says so")
    story.claim(story.metrics(job)["health"] >= 1, "and so does the job's")
    if visit:
        page = shown(visit, job)
        story.say(page)
        story.claim("Java process" in page, "the job's page says so")
        visit.go("#/workers")
        panel = visit.page.get_by_role("region", name="Worker W1")
        panel.get_by_text("Java process").wait_for()
        story.say("page of workers: " + panel.inner_text().replace("\n", " | "))
        story.types("explain", job)
        story.types("cluster")
    return worker


def _is_another(story: Story, before: WorkerView) -> None:
    (anew,) = story.until("a worker is there", lambda: story.cluster.client.cluster().workers)
    story.say(f"GET /api/cluster: {anew.worker} as {anew.incarnation}, before {before.incarnation};"
              f" trouble {anew.trouble!r}")  # fmt: skip
    story.claim(anew.incarnation != before.incarnation, "the worker has started anew")
    story.claim(not anew.trouble, "and is well")


def _stopped(story: Story) -> int:
    """Stop the Java process of the worker; return its number."""
    worker = story.cluster.processes["W1"].pid
    java: int = story.until("it has a Java process", lambda: java_of(worker))
    os.kill(java, signal.SIGSTOP)
    return java


def java_of(worker: int) -> int:
    """Return the process of a worker's Spark, 0 if it has none now."""
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    found = [int(c) for c in children if Path(f"/proc/{c}/comm").read_text().strip() == "java"]
    return found[0] if found else 0
