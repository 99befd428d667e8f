"""What the pages show and do, in a real Chromium, at a real master whose workers are played."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright", reason="THE PAGES WERE NOT TESTED: playwright is missing")

from playwright.sync_api import Browser, expect

from holdfast.api.route import AccessRole
from holdfast.master.ports import MasterSettings
from tests.ui.browser import Visit, visiting
from tests.ui.stage import Stage, job_text

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-4f1d9e-never-shown"
EVIL = "<img src=x onerror=document.title='owned'>"
JDBC = f"""Jdbc {{ plugin_input = g, url = "jdbc:postgresql://nowhere:1/db", user = me
  password = "{CANARY}", database = db, table = t, generate_sink_sql = true }}"""
WAITS = re.compile(r"Checkpoint \d+ waits for .*p1-t1|no answer from p1-t1")
"""It is one or the other: a checkpoint is given up after a while, and the next one begins."""

PATIENCE = MasterSettings(lease_s=30.0, tombstone_s=0.5, worker_lost_s=60.0, interval_s=1.0)
PAGES = {
    "#/overview": "Overview",
    "#/jobs": "Jobs",
    "#/workers": "Workers",
    "#/submit": "Submit a job",
    "#/access": "Access",
    "#/jobs/orders": "orders to lake",
    "#/jobs/orders/timeline": "orders to lake",
    "#/jobs/orders/failures": "orders to lake",
    "#/jobs/orders/config": "orders to lake",
    "#/jobs/orders/logs": "orders to lake",
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("stage")
    with Stage(folder, settings=PATIENCE) as started:
        started.submit("orders", job_text("orders to lake", 1_000))
        yield started


@pytest.fixture
def visit(browser: Browser, stage: Stage) -> Iterator[Visit]:
    with visiting(browser, stage.url) as opened:
        opened.sign_in(stage.token)
        yield opened
        assert opened.complaints == []


def number(text: str | None) -> float:
    found = re.search(r"[\d,.]+", text or "")
    return float(found[0].replace(",", "")) if found else 0.0


def test_only_the_built_files_are_served_to_anybody(stage: Stage) -> None:
    nobody = {"Authorization": ""}

    def status(path: str) -> int:
        return stage.do(lambda s: s.http.get(path, headers=nobody)).status_code

    page = stage.do(lambda s: s.http.get("/", headers=nobody))
    policy = page.headers["content-security-policy"]
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    for name in re.findall(r'(?:src|href)="\./([^"]+)"', page.text):
        assert status(f"/{name}") == 200
    for path in ("/assets/..%2findex.html", "/assets/", "/SOURCES", "/index.html", "/assets/x.js"):
        assert status(path) == 401, path


def test_a_wrong_token_opens_nothing(browser: Browser, stage: Stage) -> None:
    with visiting(browser, stage.url) as visit:
        visit.page.goto(stage.url)
        visit.page.get_by_label("Token").fill("wrong")
        visit.page.get_by_role("button", name="Sign in").click()
        expect(visit.page.get_by_role("alert")).to_contain_text("not valid, or no longer valid")
        assert visit.page.evaluate("Object.keys(sessionStorage).length + localStorage.length") == 0


def test_the_token_is_kept_in_the_tab_alone(visit: Visit, stage: Stage) -> None:
    kept: dict[str, Any] = visit.page.evaluate(
        "({ session: Object.values(sessionStorage), local: localStorage.length,"
        " cookie: document.cookie, url: location.href })"
    )
    assert kept["session"] == [stage.token]
    assert kept["local"] == 0
    assert kept["cookie"] == ""
    assert stage.token not in kept["url"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_every_page_fits_and_nothing_complains(
    browser: Browser, stage: Stage, phone: bool, dark: bool
) -> None:
    with visiting(browser, stage.url, phone=phone, dark=dark) as visit:
        visit.sign_in(stage.token)
        for address, heading in PAGES.items():
            visit.go(address)
            expect(visit.page.get_by_role("heading", name=heading, level=1)).to_be_visible()
            expect(visit.page.get_by_text("Asking the")).to_have_count(0)
            assert not visit.scrolls_sideways(), f"{address} scrolls sideways"
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == dark
        assert visit.complaints == []


def test_rows_move_and_checkpoints_age_without_a_reload(visit: Visit) -> None:
    visit.go("#/jobs/orders")
    page = visit.page
    page.evaluate("window.kept = true")
    expect(page.get_by_test_id("graph")).to_contain_text("rows/s written")
    expect(page.get_by_test_id("rate")).to_contain_text(re.compile(r"[1-9]"))
    committed = page.get_by_test_id("committed")
    expect(committed).to_contain_text(re.compile(r"[1-9]"))
    before = number(committed.text_content())
    expect(committed).not_to_contain_text(f"{before:,.0f}")
    assert number(committed.text_content()) > before
    expect(page.get_by_test_id("checkpoint-chart")).to_be_visible()
    expect(page.get_by_test_id("explain")).to_contain_text("It runs.")
    places = page.get_by_test_id("places").get_by_role("row", name="shop.orders")
    expect(places).to_contain_text("LocalFile")
    expect(places).to_contain_text("/tmp/nowhere")
    assert page.evaluate("window.kept") is True


def test_a_job_without_checkpoints_is_stalled_and_says_why(visit: Visit, stage: Stage) -> None:
    stage.player.blocked.add("stuck")
    stage.submit("stuck", job_text("stuck one", 1_000))
    visit.go("#/jobs?health=STALLED")
    row = visit.page.get_by_test_id("jobs").get_by_role("row", name="stuck one")
    expect(row).to_contain_text("STALLED")
    expect(row).to_contain_text(WAITS)
    row.get_by_role("link", name="stuck one").click()
    expect(visit.page.get_by_test_id("alarm")).to_contain_text("STALLED:")
    expect(visit.page.get_by_test_id("alarm")).to_contain_text(WAITS)
    visit.go("#/overview")
    expect(visit.page.get_by_text(WAITS).first).to_be_visible()
    stage.player.blocked.discard("stuck")
    expect(visit.page.get_by_text("All is well.")).to_be_visible()


def test_a_worker_shows_what_it_uses_of_its_machine(visit: Visit) -> None:
    visit.go("#/workers")
    load = visit.page.get_by_role("region", name="Worker W1").get_by_test_id("load")
    expect(load).to_contain_text("1.3 of 4 cores")
    expect(load).to_contain_text("3.0 GB of 16.0 GB")


def test_a_spark_that_is_silent_is_told_by_its_worker_and_its_jobs(
    visit: Visit, stage: Stage
) -> None:
    stage.submit("silent", job_text("silent one", 1_000))
    visit.go("#/jobs/silent")
    expect(visit.page.get_by_test_id("graph")).to_contain_text("on W")
    stage.player.silent = {"W1": 12.0, "W2": 12.0}
    alarm = visit.page.get_by_test_id("alarm")
    expect(alarm).to_contain_text("STALLED: Task")
    expect(alarm).to_contain_text("Spark has not answered for 12 s.")
    visit.go("#/workers")
    worker = visit.page.get_by_role("region", name="Worker W1")
    expect(worker).to_contain_text("Spark has not answered for 12 s.")
    expect(worker.locator(".mark")).to_have_text("trouble")
    stage.player.silent = {}
    expect(worker.get_by_text("trouble")).to_have_count(0)


def test_a_savepoint_and_a_restore_from_the_page(visit: Visit, stage: Stage) -> None:
    stage.submit("saved", job_text("saved one", 1_000))
    visit.go("#/jobs/saved")
    page = visit.page
    expect(page.get_by_test_id("committed")).to_contain_text(re.compile(r"[1-9]"))
    page.get_by_role("button", name="Savepoint and stop").click()
    page.get_by_role("button", name="Take a savepoint and stop").click()
    expect(page.get_by_text("savepoint taken").first).to_be_visible()
    stage.until_buried("saved")
    page.get_by_role("button", name="Restore", exact=True).click()
    page.get_by_role("button", name="Restore it").click()
    expect(page.get_by_text("from a savepoint").first).to_be_visible()


def test_why_a_job_failed_stays_when_it_is_buried(visit: Visit, stage: Stage) -> None:
    stage.player.failing["broken"] = "no space left on device\n  at write (files.py:120)"
    once = job_text("broken one", 1_000).replace("env {", "env { job.retry.times = 0,")
    stage.submit("broken", once)
    visit.go("#/jobs/broken/failures")
    page, failures = visit.page, visit.page.get_by_role("region", name="Failures")
    expect(page.get_by_test_id("job").get_by_text("failed", exact=True).first).to_be_visible()
    while stage.do(lambda s: s.get("/api/jobs/broken"))["live"]:
        page.wait_for_timeout(200)
    visit.go("#/jobs/broken")
    expect(page.get_by_test_id("graph")).to_be_visible()
    visit.go("#/jobs/broken/failures")
    expect(failures).to_contain_text("no space left on device")
    stack = failures.get_by_text("files.py:120")
    expect(stack).to_be_hidden()
    failures.get_by_text("Stack", exact=True).click()
    expect(stack).to_be_visible()


def test_a_cancel_asks_first(visit: Visit, stage: Stage) -> None:
    stage.submit("doomed", job_text("doomed one", 1_000))
    visit.go("#/jobs/doomed")
    page = visit.page
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel job doomed one (doomed)?")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert stage.do(lambda s: s.get("/api/jobs/doomed"))["status"] in ("PENDING", "RUNNING")
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_test_id("job").get_by_text("cancelled").first).to_be_visible()


def test_mistakes_are_told_while_typing_as_the_command_line_tells_them(
    visit: Visit, stage: Stage
) -> None:
    good = job_text("typed one", 1_000)
    bad = good.replace("plugin_input = g", "plugin_inpu = g").replace("interval", "intervl")
    told = stage.do(lambda s: s.http.post("/api/check", json={"text": bad})).json()["mistakes"]
    visit.go("#/submit")
    page, box = visit.page, visit.page.get_by_label("Text of the job file")
    box.fill(bad)
    mistakes = page.get_by_test_id("mistakes").get_by_role("listitem")
    expect(mistakes).to_have_count(len(told))
    for shown, one in zip(mistakes.all(), told, strict=True):
        expect(shown).to_contain_text(f"job.conf:{one['line']}:{one['column']}")
        expect(shown).to_contain_text(one["message"])
    submit = page.get_by_role("button", name="Submit", exact=True)
    expect(submit).to_be_disabled()
    box.fill(good)
    expect(page.get_by_test_id("verdict")).to_have_text("no mistakes")
    expect(page.get_by_role("region", name="Plan")).to_contain_text("exactly-once")
    submit.click()
    expect(page.get_by_role("heading", name="typed one", level=1)).to_be_visible()
    expect(page.get_by_test_id("job").get_by_text("running").first).to_be_visible()


def test_a_job_is_put_together_from_forms(visit: Visit) -> None:
    visit.go("#/submit")
    page, form = visit.page, visit.page.get_by_role("region", name="Add a stage")
    form.get_by_label("Connector").select_option("FakeSource")
    form.get_by_label("plugin_output").fill("f")
    form.get_by_text("more options").click()
    form.get_by_label("row.num", exact=False).first.fill("7")
    form.get_by_label("schema", exact=False).first.fill("{ fields { id = bigint } }")
    form.get_by_role("button", name="Put into the job file").click()
    form.get_by_label("Role").select_option("sink")
    form.get_by_label("Connector").select_option("Console")
    form.get_by_label("plugin_input").fill("f")
    form.get_by_role("button", name="Put into the job file").click()
    expect(page.get_by_label("Text of the job file")).to_have_value(re.compile("row.num = 7"))
    expect(page.get_by_test_id("verdict")).to_have_text("no mistakes")


def test_a_viewer_looks_and_cannot_act(browser: Browser, stage: Stage) -> None:
    with visiting(browser, stage.url) as visit:
        visit.sign_in(stage.token_of(AccessRole.VIEWER))
        visit.go("#/jobs/orders")
        for name in ("Savepoint and stop", "Cancel"):
            expect(visit.page.get_by_role("button", name=name, exact=True)).to_be_disabled()
        visit.go("#/submit")
        visit.page.get_by_label("Text of the job file").fill(job_text("a viewer's"))
        expect(visit.page.get_by_test_id("verdict")).to_have_text("no mistakes")
        expect(visit.page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
        expect(visit.page.get_by_role("link", name="Access")).to_have_count(0)
        assert visit.complaints == []


def test_names_are_text_and_secrets_are_nowhere(visit: Visit, stage: Stage) -> None:
    stage.submit("evil", job_text(EVIL, 60_000, JDBC))
    for address in ("#/jobs", "#/overview", "#/jobs/evil", "#/workers", "#/access"):
        visit.go(address)
        expect(visit.page.get_by_text("Asking the")).to_have_count(0)
        assert CANARY not in visit.page.content()
    for tab in ("timeline", "failures", "config", "logs"):
        visit.go(f"#/jobs/evil/{tab}")
        expect(visit.page.get_by_role("heading", name=EVIL, level=1)).to_be_visible()
        assert CANARY not in visit.page.content()
    visit.go("#/jobs/evil/config")
    expect(
        visit.page.get_by_role("region", name="Job file").get_by_text("******", exact=True)
    ).to_be_visible()
    assert visit.page.title() != "owned"
    assert visit.page.locator("img").count() == 0


def test_the_page_says_that_the_master_is_gone_and_comes_back(visit: Visit) -> None:
    visit.go("#/jobs/orders")
    expect(visit.page.get_by_test_id("age")).to_be_visible()
    visit.page.evaluate("window.kept = true")
    visit.page.context.set_offline(True)
    expect(visit.page.get_by_test_id("lost")).to_contain_text("No master answers since")
    expect(visit.page.get_by_role("heading", name="orders to lake")).to_be_visible()
    visit.page.context.set_offline(False)
    expect(visit.page.get_by_test_id("lost")).to_have_count(0)
    expect(visit.page.get_by_test_id("leader")).to_contain_text("M1 leads")
    assert visit.page.evaluate("window.kept") is True
    # The browser itself says that requests failed while there was no network; nothing else may.
    visit.complaints = [c for c in visit.complaints if "ERR_INTERNET_DISCONNECTED" not in c]


def test_the_search_and_the_keyboard(visit: Visit) -> None:
    visit.go("#/jobs?status=all")
    page = visit.page
    expect(page.get_by_test_id("jobs")).to_contain_text("orders to lake")
    page.keyboard.press("/")
    page.keyboard.type("lake")
    expect(page.get_by_test_id("jobs").get_by_role("row")).to_have_count(2)
    page.keyboard.press("Control+A")
    page.keyboard.type("nothing of this name")
    expect(page.get_by_text("No job's name or id has")).to_be_visible()
    page.get_by_role("button", name="Show all jobs").click()
    page.get_by_role("link", name="orders to lake").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="orders to lake", level=1)).to_be_visible()
