"""A real Chromium: the machine's own, or Debian's, installed where that is possible."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_S = 900
WAIT_MS = 120_000
"""How long a page may take to show something, on a machine that is busy."""

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 812}


class NoChromium(Exception):
    """There is no Chromium here and none could be installed; the message says why."""


def find_chromium() -> str:
    """Return the path of a Chromium; HOLDFAST_CHROMIUM names one."""
    named = os.environ.get("HOLDFAST_CHROMIUM")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or _installed()


def _installed() -> str:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoChromium(
            "There is no Chromium. Install one (Debian: apt-get install chromium) or name it with"
            " HOLDFAST_CHROMIUM; as root on Debian the tests install it themselves."
        )
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"],
    ):
        asked = " ".join(command)
        try:
            done = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=INSTALL_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoChromium(f"There is no Chromium, and {asked} failed: {error}") from error
        if done.returncode:
            raise NoChromium(f"There is no Chromium, and {asked} failed: {done.stderr.strip()}")
    found = shutil.which("chromium")
    if not found:
        raise NoChromium("apt-get installed chromium, and it is not there.")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a Chromium."""
    path = find_chromium()
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        # Inside a container there is no sandbox to be had for root; the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """One person's tab, and all that its console has complained about."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def sign_in(self, token: str) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Overview")).to_be_visible()

    def go(self, address: str) -> None:
        """Go to a page without loading anything anew."""
        self.page.evaluate("address => { location.hash = address }", address)

    def scrolls_sideways(self) -> bool:
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return wide


@contextmanager
def visiting(
    browser: Browser, url: str, *, phone: bool = False, dark: bool = False
) -> Iterator[Visit]:
    """Open a tab of its own."""
    size = PHONE if phone else DESK
    context = browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme="dark" if dark else "light",
        has_touch=phone,
    )
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    visit = Visit(page, url)
    page.on("console", visit.hear)
    page.on("pageerror", lambda error: visit.complaints.append(f"exception: {error}"))
    try:
        yield visit
    finally:
        context.close()


def shot(visit: Visit, file: Path, height: int = 0) -> None:
    """Keep a picture of the page as it stands, down to `height` (0: all of it)."""
    if height:
        size = visit.page.viewport_size
        assert size
        visit.page.set_viewport_size({"width": size["width"], "height": height})
    visit.page.screenshot(path=file, full_page=not height, animations="disabled")
