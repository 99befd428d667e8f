"""Take the pictures in docs/images: `python -m tests.ui.screenshots FOLDER`."""

import re
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, expect

from holdfast.master.ports import MasterSettings
from tests.ui.browser import Visit, chromium, shot, visiting
from tests.ui.stage import Stage, job_text

SETTINGS = MasterSettings(lease_s=30.0, tombstone_s=600.0, worker_lost_s=60.0, interval_s=1.0)
BROKEN = job_text("orders", 10_000).replace("plugin_input = g", "plugin_inpu = g")
WIDE = """
env { job.name = "shop to lake", job.mode = STREAMING, checkpoint.interval = 2000 }
source {
  FakeSource { plugin_output = orders, parallelism = 2
    schema { table = "shop.orders", fields { id = bigint, customer = bigint, total = double } } }
  FakeSource { plugin_output = customers
    schema { table = "shop.customers", fields { id = bigint, name = string } } }
}
transform {
  Sql { plugin_input = orders, plugin_output = paid
    query = "select id, customer, total from orders where total > 0" }
  Filter { plugin_input = customers, plugin_output = names, include_fields = [id, name] }
}
sink {
  LocalFile { plugin_input = paid, path = "/lake/orders", file_format_type = parquet }
  Console { plugin_input = paid }
  LocalFile { plugin_input = names, path = "/lake/customers", file_format_type = parquet }
}
"""
NO_SPACE = """Sink LocalFile cannot write /lake/clicks: no space left on device.
  at write (files.py:120)
  at stage (sink.py:88)"""


def main(folder: Path) -> None:
    """Play a day in half a minute, and take its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, Stage(Path(scratch), settings=SETTINGS) as stage:
        perform(stage)
        with chromium() as browser:
            for dark in (False, True):
                take(browser, stage, folder, dark)


def perform(stage: Stage) -> None:
    """Have jobs in every state worth seeing."""
    stage.player.failing["clicks"] = NO_SPACE
    stage.submit("clicks", job_text("clicks to lake", 2_000))
    stage.submit("legacy", job_text("legacy export", 2_000))
    stage.submit("shop", WIDE)
    for name in ("customers", "payments", "returns"):
        stage.submit(name, job_text(f"{name} mirror", 1_000))
    stage.submit("stock", job_text("stock levels", 2_000))
    time.sleep(6)
    stage.do(lambda s: s.http.post("/api/jobs/legacy/savepoint"))
    stage.player.blocked |= {"stock", "shop"}
    time.sleep(8)
    stage.player.blocked.discard("shop")
    time.sleep(12)


def take(browser: Browser, stage: Stage, folder: Path, dark: bool) -> None:
    """Take the picture of every page in one set of colours."""
    colours = "dark" if dark else "light"
    with visiting(browser, stage.url, dark=dark) as visit:
        visit.page.set_viewport_size({"width": 1180, "height": 760})
        visit.sign_in(stage.token)
        for name, address in PAGES.items():
            visit.go(address)
            settle(visit, name)
            shot(visit, folder / f"{name}-{colours}.png", HEIGHTS.get(name, 760))
        assert visit.complaints == [], visit.complaints
    with visiting(browser, stage.url, dark=dark, phone=True) as visit:
        visit.sign_in(stage.token)
        visit.go("#/jobs")
        settle(visit, "phone")
        shot(visit, folder / f"phone-{colours}.png", 700)


PAGES = {
    "overview": "#/overview",
    "jobs": "#/jobs?status=all",
    "job": "#/jobs/shop",
    "stalled": "#/jobs/stock",
    "timeline": "#/jobs/clicks/timeline",
    "failures": "#/jobs/clicks/failures",
    "config": "#/jobs/shop/config",
    "workers": "#/workers",
    "submit": "#/submit",
}
HEIGHTS = {"job": 1180, "stalled": 900}


def settle(visit: Visit, name: str) -> None:
    """Wait until a page shows what it is about."""
    page = visit.page
    expect(page.get_by_text("Asking the")).to_have_count(0)
    if name == "submit":
        page.get_by_label("Text of the job file").fill(BROKEN)
        expect(page.get_by_test_id("mistakes")).to_contain_text("unknown option")
    elif name == "job":
        expect(page.get_by_test_id("rate")).to_contain_text(re.compile("[1-9]"))
    page.wait_for_timeout(2_500)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
