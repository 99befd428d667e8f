"""The pages at a real cluster: two masters on etcd, a worker with Spark, real kills."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="THE PAGES WERE NOT TESTED: playwright is missing")

from playwright.sync_api import Browser, Locator, expect

from tests.cluster.processes import TOKEN, Cluster
from tests.conformance.servers import start_etcd
from tests.ui.browser import Visit, visiting

pytestmark = pytest.mark.ui

INTERVAL_S = 8
SLOW_MS = 180_000
"""Spark may have to start first."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    (etcd,) = start_etcd(1)
    started = Cluster(tmp_path_factory.mktemp("cluster"), f"etcd:{etcd.url}", masters=2)
    # A worker that is stopped for a while is not lost: its checkpoints are blocked.
    started.environ["HOLDFAST_WORKER_LOST_S"] = "120"
    started.master(1)
    assert started.client.cluster().leader == "M1"
    started.master(2)
    started.worker()
    yield started
    started.end()
    etcd.remove()


@pytest.fixture(scope="module")
def visit(browser: Browser, cluster: Cluster) -> Iterator[Visit]:
    """A tab whose page comes from the leader and that is never loaded anew."""
    with visiting(browser, cluster.urls[0]) as opened:
        opened.sign_in(TOKEN)
        opened.page.evaluate("window.kept = true")
        yield opened
        assert opened.page.evaluate("window.kept") is True
        # The browser itself says that requests failed while masters were gone; nothing else may.
        assert [c for c in opened.complaints if "Failed to load resource" not in c] == []


def stream(folder: Path, interval_s: float) -> str:
    return f"""env {{ job.name = "from the page", job.mode = STREAMING
  checkpoint.interval = {interval_s * 1000:.0f} }}
source {{ FakeSource {{ plugin_output = f, row.num = 100000, split.num = 20000
  split.read-interval = 200, schema {{ fields {{ id = bigint }} }} }} }}
sink {{ LocalFile {{ plugin_input = f, path = "{folder}", file_format_type = json }} }}
"""


def rows(shown: Locator) -> int:
    found = re.match(r"[\d,]+", (shown.text_content() or "").strip())
    return int(found[0].replace(",", "")) if found else 0


def submit(visit: Visit, text: str, job_id: str) -> None:
    visit.go("#/submit")
    visit.page.get_by_label("Text of the job file").fill(text)
    visit.page.get_by_label("Job id").fill(job_id)
    visit.page.get_by_role("button", name="Submit", exact=True).click()
    expect(visit.page.get_by_role("heading", name="from the page", level=1)).to_be_visible()


def grows(visit: Visit) -> None:
    """Wait until more rows are committed than now."""
    committed = visit.page.get_by_test_id("committed")
    expect(committed).to_contain_text(re.compile(r"[1-9]"), timeout=SLOW_MS)
    before = rows(committed)
    expect(committed).not_to_contain_text(re.compile(rf"^\s*{before:,}\D"), timeout=SLOW_MS)
    assert rows(committed) > before


def test_a_job_submitted_in_the_page_moves_rows(visit: Visit, tmp_path: Path) -> None:
    submit(visit, stream(tmp_path / "out", 1.0), "page1")
    expect(visit.page.get_by_test_id("rate")).to_contain_text(re.compile(r"[1-9]"), timeout=SLOW_MS)
    expect(visit.page.get_by_test_id("graph")).to_contain_text("on W1")
    grows(visit)


def test_the_page_follows_when_the_leader_it_came_from_is_killed(
    visit: Visit, cluster: Cluster
) -> None:
    expect(visit.page.get_by_test_id("leader")).to_contain_text("M1 leads")
    term = cluster.client.cluster().term
    killed = cluster.processes["M1"]
    killed.send_signal(signal.SIGKILL)
    killed.wait(30)
    expect(visit.page.get_by_test_id("leader")).to_contain_text("M2 leads")
    expect(visit.page.get_by_test_id("elsewhere")).to_contain_text(cluster.urls[1])
    grows(visit)
    visit.go("#/jobs/page1/timeline")
    states = visit.page.get_by_role("region", name="State timeline")
    expect(states).to_contain_text("M2 leads")
    # The new leader tells what came before it, under the term it came in.
    for status, who in (("RUNNING", "job"), ("PLACED", "task p1-t1")):
        line = states.get_by_role("listitem").filter(has_text=who).filter(has_text=f"term {term}")
        expect(line.filter(has_text=re.compile(status, re.IGNORECASE)).first).to_be_visible()
    visit.go("#/jobs/page1")
    checkpoints = visit.page.get_by_role("region", name="Checkpoints of pipeline 1")
    everything = checkpoints.get_by_role("button", name="Show all")
    if everything.count():
        everything.click()
    of_term = checkpoints.locator(f"tbody tr:has(td:nth-child(6):text-is('{term}'))")
    # The last one of that term may have failed: it was on its way when its leader was killed.
    completed = of_term.filter(has_text=re.compile("completed", re.IGNORECASE)).first
    expect(completed).to_contain_text(re.compile(r"\d m?s"))


def test_a_blocked_job_is_stalled_one_interval_after_the_checkpoint_it_missed(
    visit: Visit, cluster: Cluster, tmp_path: Path
) -> None:
    submit(visit, stream(tmp_path / "blocked", INTERVAL_S), "page2")
    grows(visit)
    # The page itself notes what it is answered, so that a slow machine changes nothing.
    visit.page.evaluate(
        """() => {
          const ask = window.fetch
          window.answers = []
          window.fetch = async (...about) => {
            const answer = await ask(...about)
            if (new URL(answer.url).pathname === '/api/jobs/page2')
              answer.clone().json().then((j) => window.answers.push([j.health, j.checkpoint_age_s]))
            return answer
          }
        }"""
    )
    worker = cluster.processes["W1"]
    worker.send_signal(signal.SIGSTOP)
    try:
        alarm = visit.page.get_by_test_id("alarm")
        expect(alarm).to_contain_text("STALLED", timeout=SLOW_MS)
        expect(alarm).to_contain_text(
            re.compile(r"Checkpoint \d+ waits for .*p1-t1|no answer from p1-t1")
        )
        answers: list[tuple[str, float]] = visit.page.evaluate("window.answers")
        shown = re.search(r"(\d+) s", visit.page.get_by_test_id("age").text_content() or "")
    finally:
        worker.send_signal(signal.SIGCONT)
    # The one that was missed was due one interval after the last; from then on it takes one more.
    healths = [health for health, _ in answers]
    first = healths.index("STALLED")
    assert first, answers
    assert max(age_s for _, age_s in answers[:first]) <= 2 * INTERVAL_S < answers[first][1]
    assert shown and int(shown[1]) >= 2 * INTERVAL_S
    expect(alarm).to_have_count(0, timeout=SLOW_MS)
    grows(visit)


def test_a_savepoint_and_a_cancel_from_the_page(visit: Visit, cluster: Cluster) -> None:
    page = visit.page
    visit.go("#/jobs/page2")
    page.get_by_role("button", name="Savepoint and stop").click()
    page.get_by_role("button", name="Take a savepoint and stop").click()
    expect(page.get_by_text("savepoint taken").first).to_be_visible(timeout=SLOW_MS)
    assert cluster.client.job("page2").status == "SAVEPOINT_DONE"
    visit.go("#/jobs/page1")
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the job").click()
    job = page.get_by_test_id("job")
    expect(job.get_by_text("cancelled", exact=True).first).to_be_visible(timeout=SLOW_MS)
    assert cluster.client.job("page1").status == "CANCELED"
    before = cluster.client.job("page1")
    page.get_by_role("button", name="Restore", exact=True).click()
    page.get_by_role("button", name="Restore it").click()
    expect(job.get_by_text("running", exact=True).first).to_be_visible(timeout=SLOW_MS)
    now = cluster.client.job("page1")
    assert now.incarnation != before.incarnation and now.from_savepoint
    assert cluster.ask("cancel", "page1").returncode == 0


def test_a_master_that_comes_back_is_found_again(visit: Visit, cluster: Cluster) -> None:
    killed = cluster.processes["M2"]
    killed.send_signal(signal.SIGKILL)
    killed.wait(30)
    expect(visit.page.get_by_test_id("lost")).to_contain_text("No master answers since")
    cluster.master(1)
    expect(visit.page.get_by_test_id("leader")).to_contain_text("M1 leads", timeout=SLOW_MS)
    expect(visit.page.get_by_test_id("lost")).to_have_count(0)
