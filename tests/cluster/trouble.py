"""Provoke what hangs on real processes, and look who says so, and how soon.

A hook that answers 503 for two minutes; a database that holds a lock, and a cancel behind it;
masters whose clocks are an hour apart; a Spark that stands still; no slot that is free.  Each scene
prints what was typed and what was answered.

python -m tests.cluster.trouble [hook|lock|clocks|spark|room]
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.cluster.processes import TOKEN, Cluster
from tests.cluster.story import INTERVAL_S, START_S, WITHIN, Hook, Story, ended, got, hooked
from tests.cluster.trouble_room import room_scene
from tests.cluster.trouble_spark import spark_scene
from tests.conformance.servers import Postgres, start_etcd
from tests.ui.browser import chromium, visiting

DEAF_S = 120.0
HOUR_S = 3600
STALLED = 2
"""What the metric of a job's health is where the job is STALLED."""

CLOCK = """import time
_time, _time_ns, _off = time.time, time.time_ns, {off}
time.time = lambda: _time() + _off
time.time_ns = lambda: _time_ns() + _off * 10**9
"""
"""A process that finds this as its sitecustomize has another date than the machine."""


def hook_scene(folder: Path, deaf_s: float = DEAF_S, interval_s: float = INTERVAL_S) -> list[str]:
    """A batch is committed, and its hook answers 503 for two minutes."""
    cluster = Cluster(folder)
    cluster.environ["HOLDFAST_REPORT_HOSTS"] = "127.0.0.1"
    with hooked(503) as hook, ended(cluster), chromium() as browser:
        cluster.master()
        cluster.worker()
        story = Story(cluster, f"A hook answers 503 for {deaf_s:g} s; interval {interval_s:g} s")
        story.ready()
        (folder / "job.conf").write_text(f"""
env {{ job.name = marks, job.mode = BATCH, checkpoint.interval = {interval_s * 1000:.0f} }}
source {{ FakeSource {{ row.num = 60, string.fake.mode = template, string.template = [lima, lagos]
  schema {{ fields {{ id = bigint, city = string }} }} }} }}
sink {{ LocalFile {{ path = "{folder}/out", file_format_type = json, partition_by = [city]
  partition.mark-done-action = "http-report", partition.end-input-to-done = true
  partition.mark-done-action.http.url = "http://127.0.0.1:{hook.server_port}/" }} }}
""")
        with visiting(browser, cluster.urls[0]) as visit:
            visit.sign_in(TOKEN)
            story.types("submit", "job.conf", "--async", "--set-job-id", "marks")
            story.until("the hook is asked", lambda: hook.heard)
            story.begin("the hook is asked for the first time and answers 503")
            story.sees("marks", lambda j: j.health != "OK")
            story.claim(story.at_s <= WITHIN * interval_s, "said within two intervals")
            story.on_page(visit, "marks", "its listeners have not run for")
            story.claim(story.metrics("marks")["health"] >= 1, "the metric says so")
            story.explains("marks", "Its rows are visible; what fails is")
            story.sees("marks", lambda j: j.health == "STALLED")
            story.explains("marks", "503")
            story.on_page(visit, "marks", "STALLED")
            story.claim(story.metrics("marks")["health"] == STALLED, "the metric says STALLED")
            time.sleep(max(0.0, deaf_s - story.at_s))
            hook.status = 200
            story.say(f"the hook answers 200 again; it was asked {len(hook.heard)} times")
            story.sees("marks", lambda j: j.status == "FINISHED")
            story.claim(200 in hook.heard, "the hook heard of it in the end")
    return story.flaws


def lock_scene(folder: Path, interval_s: float = INTERVAL_S, *, pages: bool = True) -> list[str]:
    """A table is locked: a commit hangs, a cancel behind it, and a cancel by force does not."""
    database = Postgres()
    database.start()
    cluster = Cluster(folder)
    try:
        with ended(cluster):
            cluster.master()
            cluster.worker()
            story = Story(cluster, f"A database holds a lock; interval {interval_s:g} s")
            story.ready()
            (folder / "job.conf").write_text(_into(database, interval_s))
            story.types("submit", "job.conf", "--async", "--set-job-id", "orders")
            story.until("rows are visible", lambda: cluster.committed("orders", 1))
            _locked(story, database, interval_s, pages=pages)
    finally:
        database.remove()
    return story.flaws


def _into(database: Postgres, interval_s: float) -> str:
    return f"""
env {{ job.name = orders, job.mode = STREAMING, checkpoint.interval = {interval_s * 1000:.0f} }}
source {{ FakeSource {{ row.num = 100000, split.num = 20000, split.read-interval = 200
  auto.increment.enabled = true
  schema {{ columns = [{{ name = id, type = bigint }}]
    primaryKey {{ name = pk, columnNames = [id] }} }} }} }}
sink {{ Jdbc {{ url = "jdbc:postgresql://127.0.0.1:{database.port}/postgres", user = postgres
  password = none, table = orders, generate_sink_sql = true, database = postgres }} }}
"""


def _locked(story: Story, database: Postgres, interval_s: float, *, pages: bool) -> None:
    """Hold a lock on the table until the job has been cancelled by force."""
    cluster = story.cluster
    with psycopg.connect(database.url) as holder:
        holder.execute("LOCK TABLE orders IN EXCLUSIVE MODE")
        story.begin("another session has locked table orders")
        before = cluster.client.job("orders").pipelines[0].committed
        story.sees("orders", lambda j: j.commit_age_s is not None)
        story.begin("a checkpoint is complete; its commit waits for the lock")
        late = story.sees("orders", lambda j: j.health != "OK" and "not visible" in j.health_reason)
        within_s = (late.commit_age_s or 0) <= WITHIN * interval_s + 5
        story.claim(within_s, "said within two intervals")
        story.claim(story.metrics("orders")["commit_age_seconds"] > 0, "the metric says so")
        if pages:
            with chromium() as browser, visiting(browser, cluster.urls[0]) as visit:
                visit.sign_in(TOKEN)
                story.on_page(visit, "orders", "not visible")
        story.explains("orders", "is complete and is being committed")
        story.sees("orders", lambda j: j.health == "STALLED")
        story.types("cancel", "orders", "--async")
        said = story.types("explain", "orders")
        story.claim("is being committed" in said, "a cancel says what it waits for")
        time.sleep(interval_s)
        story.sees("orders", lambda j: j.status == "CANCELING")
        asked_s = story.took_s
        said = story.types("cancel", "orders", "--force", lines=30)
        story.claim(story.took_s < 2 * asked_s + START_S, "it ends at once")
        story.claim("Not finished:" in said and "holdfast restart orders" in said, "it is listed")
        shown_now = cluster.client.job("orders")
        story.claim(shown_now.status == "CANCELED", "it is over")
        story.say(f"GET /api/jobs/orders: {shown_now.status}: {shown_now.reason}")
        holder.rollback()
    story.say("the lock is gone")
    story.types("restart", "orders", "--async")
    story.until("it goes on", lambda: cluster.committed("orders", 2))
    story.say(f"before the lock {before} was committed; the next life has committed its second")
    story.types("cancel", "orders")
    with psycopg.connect(database.url) as reader:
        (found,) = reader.execute("SELECT count(*), count(DISTINCT id), max(id) FROM orders")
    story.say(f"SELECT count(*), count(DISTINCT id), max(id) FROM orders: {found}")
    story.claim(found[0] == found[1] == found[2], "every row once, and none is missing")


def clocks_scene(folder: Path, interval_s: float = INTERVAL_S) -> list[str]:
    """The next leader's clock is an hour ahead, and the next one's an hour behind."""
    (etcd,) = start_etcd(1)
    cluster = Cluster(folder, store=f"etcd:{etcd.url}", masters=3)
    cluster.environ["HOLDFAST_REPORT_HOSTS"] = "127.0.0.1"
    try:
        with hooked(503) as hook, ended(cluster):
            cluster.master(1)
            story = Story(cluster, "M2's clock is an hour ahead, M3's an hour behind")
            story.ready()
            dated_master(cluster, 2, HOUR_S)
            cluster.worker(slots=8)
            (folder / "well.conf").write_text(_stream(folder, interval_s))
            (folder / "hangs.conf").write_text(_marked(folder, hook, interval_s))
            for job in ("well", "hangs"):
                story.types("submit", f"{job}.conf", "--async", "--set-job-id", job)
            story.until("it commits", lambda: cluster.committed("well", 1))
            story.begin("both jobs run; the hook of the second one answers 503")
            story.sees("hangs", lambda j: j.health == "STALLED" and bool(j.commit_age_s))
            story.types("list")
            for dead, off in ((1, 1), (2, -1)):
                if dead == 2:
                    dated_master(cluster, 3, -HOUR_S)
                    story.until("M3 stands by", lambda: _stands_by(cluster, 3))
                _takeover(story, dead, dead + 1, f"{off:+d} h", interval_s)
    finally:
        etcd.stop()
        etcd.remove()
    return story.flaws


def _takeover(story: Story, dead: int, heir: int, off: str, interval_s: float) -> None:
    """Kill the leader; the next one, whose clock is another, knows all ages as before."""
    cluster = story.cluster
    process = cluster.processes[f"M{dead}"]
    before = story.sees("hangs", lambda j: True)
    at_s = story.at_s
    process.send_signal(signal.SIGKILL)
    process.wait()
    story.say(f"M{dead} was killed with -9; M{heir} has a clock of {off}")
    leads = cluster.urls[heir - 1]
    hangs = story.sees("hangs", lambda j: j.live and j.leader == leads)
    well = story.sees("well", lambda j: j.live and j.leader == leads)
    gone_s = story.at_s - at_s
    story.claim(hangs.health == "STALLED", "what hangs is STALLED under the next leader")
    ages = (before.commit_age_s or 0.0, hangs.commit_age_s or 0.0)
    story.claim(ages[0] <= ages[1] <= ages[0] + gone_s + 1, f"its age goes on: {ages}")
    story.explains("hangs", "the listeners of commit")
    with chromium() as browser, visiting(browser, leads) as visit:
        visit.sign_in(TOKEN)
        story.on_page(visit, "hangs", "STALLED")
    story.claim(story.metrics("hangs")["health"] == STALLED, "the metric says STALLED")
    story.claim(well.health != "STALLED", "what is well is not STALLED")
    story.claim((well.checkpoint_age_s or 0) < 2 * interval_s + gone_s, "and not an hour old")
    story.sees("well", lambda j: j.health == "OK" and (j.checkpoint_age_s or 99) < interval_s)


def _stands_by(cluster: Cluster, number: int) -> bool:
    return bool(got(f"{cluster.urls[number - 1]}/healthz"))


def _stream(folder: Path, interval_s: float) -> str:
    return f"""
env {{ job.name = well, job.mode = STREAMING, checkpoint.interval = {interval_s * 1000:.0f} }}
source {{ FakeSource {{ row.num = 3, split.num = 100, split.read-interval = 200
  schema {{ fields {{ id = bigint }} }} }} }}
sink {{ LocalFile {{ path = "{folder}/well", file_format_type = json }} }}
"""


def _marked(folder: Path, hook: Hook, interval_s: float) -> str:
    return f"""
env {{ job.name = hangs, job.mode = BATCH, checkpoint.interval = {interval_s * 1000:.0f} }}
source {{ FakeSource {{ row.num = 60, string.fake.mode = template, string.template = [lima, lagos]
  schema {{ fields {{ id = bigint, city = string }} }} }} }}
sink {{ LocalFile {{ path = "{folder}/hangs", file_format_type = json, partition_by = [city]
  partition.mark-done-action = "http-report", partition.end-input-to-done = true
  partition.mark-done-action.http.url = "http://127.0.0.1:{hook.server_port}/" }} }}
"""


def dated_master(cluster: Cluster, number: int, off_s: int) -> None:
    """Start a master whose date is off by so many seconds."""
    folder = cluster.folder / f"clock-{number}"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CLOCK.format(off=off_s))
    listen = f"127.0.0.1:{cluster.ports[number - 1]}"
    cluster.start(f"M{number}", "master", HOLDFAST_LISTEN=listen, PYTHONPATH=str(folder))


SCENES: dict[str, Callable[[Path], list[str]]] = {
    "hook": hook_scene,
    "lock": lock_scene,
    "clocks": clocks_scene,
    "spark": spark_scene,
    "room": room_scene,
}


def main() -> int:
    """Play scenes; exit with 1 if something was not said, or not in time."""
    parser = argparse.ArgumentParser(description="Provoke what hangs; look who says so.")
    parser.add_argument("scenes", nargs="*", help=", ".join(SCENES) + "; all if left out")
    given = ",".join(parser.parse_args().scenes) or ",".join(SCENES)
    names = given.split(",")
    flaws = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="holdfast-trouble-") as folder:
            found = SCENES[name](Path(folder))
        flaws += found
        print(f"{name}: {'; '.join(found) or 'as promised'}\n", flush=True)
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main())
