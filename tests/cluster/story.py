"""What is done to a cluster whose jobs hang, told with the seconds since the trouble began."""

import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from holdfast.api.views import JobDetail
from tests.cluster.processes import TOKEN, Cluster
from tests.ui.browser import Visit

INTERVAL_S = 10.0
WITHIN = 2
"""In so many intervals trouble must be seen."""

START_S = 5.0
"""A command that waits for nothing may take so much longer than twice the one before it."""


class Hook(ThreadingHTTPServer):
    """A web server that hears of partitions, and answers with `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.status = status
        self.heard: list[int] = []


class _Hook(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append(self.server.status)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def hooked(status: int) -> Iterator[Hook]:
    """Run a hook."""
    hook = Hook(status)
    thread = threading.Thread(target=hook.serve_forever)
    thread.start()
    try:
        yield hook
    finally:
        hook.shutdown()
        thread.join()
        hook.server_close()


class Story:
    """What is done to a cluster, told with the seconds since the trouble began."""

    def __init__(self, cluster: Cluster, title: str) -> None:
        self.cluster = cluster
        self.begun_s = time.monotonic()
        self.flaws: list[str] = []
        self.took_s = 0.0
        print(f"# {title}", flush=True)

    def ready(self) -> None:
        """Wait until a master leads."""
        pages = [f"{url}/metrics" for url in self.cluster.urls]
        self.until("a master leads", lambda: any("holdfast_leads 1" in got(p) for p in pages))

    @property
    def at_s(self) -> float:
        return time.monotonic() - self.begun_s

    def begin(self, what: str) -> None:
        """Begin to count."""
        self.begun_s = time.monotonic()
        self.say(what)

    def say(self, what: str) -> None:
        at = f"[{self.at_s:6.1f} s] "
        lines = self._hidden(what).splitlines()
        print(at + f"\n{' ' * len(at)}".join(lines), flush=True)

    def claim(self, fact: object, what: str) -> None:
        if not fact:
            self.flaws.append(what)
            self.say(f"NOT SO: {what}")

    def types(self, *arguments: str, code: int = 0, lines: int = 12) -> str:
        """Type a command; return what it printed.  `took_s` is how long that took."""
        self.say(f"$ holdfast {' '.join(arguments)}")
        typed_s = time.monotonic()
        done = self.cluster.ask(*arguments)
        self.took_s = time.monotonic() - typed_s
        said = (done.stderr + done.stdout).strip()
        print("\n".join("           " + x for x in self._hidden(said).splitlines()[:lines]))
        self.claim(done.returncode == code, f"exit code {code}, and not {done.returncode}")
        return said

    def metrics(self, job: str) -> dict[str, float]:
        """Print what /metrics says of a job; return it."""
        found = {}
        for url in self.cluster.urls:
            text = got(f"{url}/metrics")
            for name in ("health", "commit_age_seconds", "checkpoint_age_seconds"):
                line = re.search(rf'^holdfast_job_{name}{{job="{job}".*', text, re.M)
                if line:
                    found[name] = float(line[0].split()[-1])
                    self.say(f"/metrics {line[0]}")
        return found

    def explains(self, job: str, words: str) -> None:
        """Have `holdfast explain` say what is wrong."""
        said = " ".join(self.types("explain", job).split())
        self.claim(words in said, f"explain says: {words}")

    def on_page(self, visit: Visit, job: str, words: str) -> None:
        """Have a job's page say what is wrong."""
        page = shown(visit, job)
        self.say(page)
        self.claim(words in page, f"the job's page says: {words}")

    def series(self, name: str) -> float:
        """Print the series of a metric, with or without labels; return the last one's value."""
        (url, *_) = self.cluster.urls
        lines = re.findall(rf"^{re.escape(name)}[ {{].*", got(f"{url}/metrics"), re.M)
        for line in lines:
            self.say(f"/metrics {line}")
        return float(lines[-1].split()[-1]) if lines else 0.0

    def until(self, what: str, true: Callable[[], Any], limit_s: float = 900.0) -> Any:
        """Wait for something; return it."""
        return self.cluster.until(what, true, limit_s)

    def sees(self, job: str, wanted: Callable[[JobDetail], bool]) -> JobDetail:
        """Wait until the REST interface tells something of a job; print its health."""
        ask = self.cluster.client.job
        found: JobDetail = self.until("it is told", lambda: now if wanted(now := ask(job)) else 0)
        self.say(
            f"GET /api/jobs/{job}: status {found.status}, health {found.health!r},"
            f" checkpoint_age_s {found.checkpoint_age_s}, commit_age_s {found.commit_age_s}\n"
            f"health_reason {found.health_reason!r}"
        )
        return found

    def _hidden(self, text: str) -> str:
        return text.replace(str(self.cluster.folder), "DIR")


def shown(visit: Visit, job: str) -> str:
    """Return what the head of a job's page says."""
    visit.go(f"#/jobs/{job}")
    visit.page.get_by_test_id("job").wait_for()
    marks = visit.page.locator(".marks .mark").all_inner_texts()
    alarm = visit.page.get_by_test_id("alarm")
    told = alarm.inner_text() if alarm.count() else "no alarm"
    return f"page of {job}: {' / '.join(marks)} | {told}"


def got(url: str) -> str:
    """Return what a master answers, "" if it is not there."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


@contextmanager
def ended(cluster: Cluster) -> Iterator[None]:
    """Have a cluster end."""
    try:
        yield
    finally:
        cluster.end()
