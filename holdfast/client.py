"""Talk to a cluster: to any master, following the leader, through failovers.

Everything here is safe to repeat: a submit carries a token and its job's id, so that one that was
taken and not answered is not taken twice.
"""

import re
import secrets
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx2
import msgspec

from holdfast.api.access import NewToken, TokenView
from holdfast.api.problems import Problem
from holdfast.api.requests import (
    CheckText,
    ConnectAsked,
    NewTokenAsked,
    RestartAsked,
    RetryAsked,
    Submit,
    SubmitText,
)
from holdfast.api.views import (
    ENDED,
    Accepted,
    CheckpointsView,
    CheckResult,
    ClusterView,
    ConfigView,
    Connected,
    Done,
    Failures,
    Graph,
    JobDetail,
    JobList,
    LogLines,
    Me,
    Overview,
    SavedView,
    Timeline,
)
from holdfast.errors import (
    HoldfastError,
    JobFileError,
    JobFileProblem,
    SourceLocation,
    Unavailable,
    UserError,
)
from holdfast.master.explain import Explanation, as_text
from holdfast.master_urls import untrusted
from holdfast.model.secret import Secret

T = TypeVar("T")

PATIENCE_S = 30.0
ANSWER_S = 10.0
RETRY_S = (0.1, 1.0)
POLL_S = 0.5
ERRNO = re.compile(r"\[Errno -?\d+\] ")
CONNECT_WAIT_S = 5.0
"""How long one request waits for a worker; it is less than ANSWER_S."""

FOLLOWS = "holdfast-follows"
"""This client finds the leader by itself; a standby answers where that is."""


class Client:
    """A cluster, seen from outside: `Client("http://m1:5801", "the token").jobs()`.

    `patience_s` bounds how long a call looks for a leader.  Raises `UserError` for what is wrong,
    `Unavailable` if no master answers in time.
    """

    def __init__(
        self,
        masters: str | Sequence[str],
        token: str | Secret,
        patience_s: float = PATIENCE_S,
        transport: httpx2.BaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        urls = masters.split(",") if isinstance(masters, str) else masters
        token = token if isinstance(token, Secret) else Secret(token)
        self._masters = [url.strip().rstrip("/") for url in urls]
        self._preferred = self._masters[0]
        self._patience_s = patience_s
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {token.reveal()}", FOLLOWS: "1"},
            timeout=httpx2.Timeout(ANSWER_S, connect=2.0),
            trust_env=False,
            transport=transport,
            verify=tls or True,
        )

    @property
    def master(self) -> str:
        """The address of the master that answered last, or is asked first."""
        return self._preferred

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def submit(
        self,
        spec: str,
        token: str,
        job_id: str,
        *,
        restore: bool = False,
        maps: Mapping[str, str] | None = None,
        allow_dropped: bool = False,
    ) -> Accepted:
        """Submit a job.  The same token and id again is the same submit."""
        return self.send(Submit(spec, token, job_id, restore, dict(maps or {}), allow_dropped))

    def send(self, given: Submit) -> Accepted:
        """Submit a job with all options."""
        return self._ask("POST", "/jobs", Accepted, given)

    def submit_text(
        self,
        text: str,
        *,
        job_id: str = "",
        token: str = "",
        format: str = "",
        name: str = "",
        variables: Mapping[str, str] | None = None,
        restore: bool = False,
        maps: Mapping[str, str] | None = None,
        allow_dropped: bool = False,
    ) -> Accepted:
        """Submit a job as the text of its file, which the master reads."""
        body = SubmitText(
            text=text, format=format, name=name, variables=dict(variables or {}),
            job_id=job_id or str(time.time_ns())[:18], token=token or secrets.token_hex(16),
            restore=restore, maps=dict(maps or {}), allow_dropped=allow_dropped,
        )  # fmt: skip
        return self._ask("POST", "/submit", Accepted, body)

    def check(self, text: str, format: str = "", file: str = "job.conf") -> CheckResult:
        """Return every mistake in the text of a job, with its place."""
        return self._ask("POST", "/check", CheckResult, CheckText(text, format, file))

    def check_connect(self, spec: str, within_s: float = 120.0) -> Connected:
        """Have a worker open what a job names, and return what is wrong; nothing is changed."""
        asked = ConnectAsked(
            spec=spec, token=secrets.token_hex(16), within_s=within_s, wait_s=CONNECT_WAIT_S
        )
        while True:
            found = self._ask("POST", "/check/connect", Connected, asked)
            if found.done:
                return found

    def jobs(
        self, search: str = "", status: str = "", health: str = "", offset: int = 0, limit: int = 0
    ) -> JobList:
        """Return jobs, the newest first: all that are known, or those that are asked for."""
        asked = {"search": search, "status": status, "health": health}
        numbers = {"offset": offset, "limit": limit}
        query = urlencode({k: v for k, v in (asked | numbers).items() if v})
        return self._ask("GET", f"/jobs?{query}" if query else "/jobs", JobList)

    def job(self, job_id: str) -> JobDetail:
        """Return all about a job, from the leader where it can be reached."""
        found = self._ask("GET", f"/jobs/{job_id}", JobDetail)
        if not found.live and found.leader:
            self._preferred = found.leader
        return found

    def explain(self, job_id: str) -> Explanation:
        """Return what a job waits for."""
        return self._ask("GET", f"/jobs/{job_id}/explain", Explanation)

    def graph(self, job_id: str) -> Graph:
        """Return a job's stages, pipelines and tasks."""
        return self._ask("GET", f"/jobs/{job_id}/graph", Graph)

    def checkpoints(self, job_id: str) -> CheckpointsView:
        """Return a job's checkpoints."""
        return self._ask("GET", f"/jobs/{job_id}/checkpoints", CheckpointsView)

    def timeline(self, job_id: str) -> Timeline:
        """Return what happened to a job."""
        return self._ask("GET", f"/jobs/{job_id}/timeline", Timeline)

    def failures(self, job_id: str) -> Failures:
        """Return why attempts of a job ended."""
        return self._ask("GET", f"/jobs/{job_id}/failures", Failures)

    def config(self, job_id: str) -> ConfigView:
        """Return what a job's file says, without secrets."""
        return self._ask("GET", f"/jobs/{job_id}/config", ConfigView)

    def retry(self, job_id: str, *, restore: bool = False) -> Accepted:
        """Run a job that is over again, with the same file; from its savepoint if asked."""
        body = RetryAsked(restore, secrets.token_hex(16))
        return self._ask("POST", f"/jobs/{job_id}/retry", Accepted, body)

    def cancel(self, job_id: str, *, force: bool = False) -> Accepted:
        """Cancel a job; `force`: at once, without waiting for commits that are not finished."""
        return self._ask("POST", f"/jobs/{job_id}/cancel{'?force=true' * force}", Accepted)

    def savepoint(self, job_id: str) -> Accepted:
        """Stop a job with a savepoint."""
        return self._ask("POST", f"/jobs/{job_id}/savepoint", Accepted)

    def saved(self, job_id: str = "") -> list[SavedView]:
        """Return the saved states of a job, or of every job, the newest first."""
        query = f"?{urlencode({'job': job_id})}" if job_id else ""
        return self._ask("GET", f"/savepoints{query}", list[SavedView])

    def remove_saved(self, job_id: str, number: int) -> Done:
        """Remove a saved state of a job."""
        return self._ask("DELETE", f"/jobs/{job_id}/savepoints/{number}", Done)

    def restart(
        self, job_id: str, spec: str = "", number: int = 0, *, write_again: bool = False
    ) -> Accepted:
        """Continue from a saved state of a job: the latest, or the one with this number."""
        body = RestartAsked(spec, secrets.token_hex(16), number, write_again)
        return self._ask("POST", f"/jobs/{job_id}/restart", Accepted, body)

    def cluster(self) -> ClusterView:
        """Return who leads and who works."""
        return self._ask("GET", "/cluster", ClusterView)

    def drain(self, worker: str) -> Done:
        """Drain a worker: it gets no task, and its tasks move to other workers."""
        return self._ask("POST", f"/workers/{quote(worker, safe='')}/drain", Done)

    def undrain(self, worker: str) -> Done:
        """Let a drained worker get tasks again."""
        return self._ask("DELETE", f"/workers/{quote(worker, safe='')}/drain", Done)

    def overview(self) -> Overview:
        """Return the cluster at a glance."""
        return self._ask("GET", "/overview", Overview)

    def me(self) -> Me:
        """Return who this client is to the masters."""
        return self._ask("GET", "/me", Me)

    def tokens(self) -> list[TokenView]:
        """Return the tokens that were given out."""
        return self._ask("GET", "/tokens", list[TokenView])

    def give_token(self, name: str, role: str = "viewer", days: float = 0.0) -> NewToken:
        """Create a token; its text is in this answer only."""
        return self._ask("POST", "/tokens", NewToken, NewTokenAsked(name, role, days))

    def take_token_back(self, number: str) -> Done:
        """Revoke a token."""
        return self._ask("DELETE", f"/tokens/{number}", Done)

    def masters(self) -> dict[str, str]:
        """Return what each master that this client knows of is doing."""
        found = {}
        for url in self._masters:
            try:
                found[url] = (
                    f"leads, {self._once(url, 'GET', '/cluster', ClusterView, None).leader}"
                )
            except _Elsewhere:
                found[url] = "stands by"
            except (httpx2.TransportError, Unavailable) as error:
                found[url] = f"does not answer: {error}"
        return found

    def logs(self, job_id: str) -> list[dict[str, object]]:
        """Return what all masters that answer have logged about a job, in order of time."""
        lines: list[dict[str, object]] = []
        failures: list[str] = []
        for url in self._masters:
            try:
                found = self._once(url, "GET", f"/jobs/{job_id}/logs", LogLines, None)
            except (httpx2.TransportError, Unavailable) as error:
                failures.append(f"{url}: {error}")
                continue
            lines += [{**line, "master": found.master} for line in found.lines]
        if len(failures) == len(self._masters):
            raise Unavailable(f"No master answers. {'; '.join(failures)}")
        return sorted(lines, key=lambda line: str(line.get("time", "")))

    def wait(
        self, job_id: str, seen: Callable[[JobDetail], None], until: frozenset[str] = ENDED
    ) -> JobDetail:
        """Look at a job until it has one of these statuses, through failovers."""
        while True:
            now = self.job(job_id)
            seen(now)
            if now.status in until:
                return now
            time.sleep(POLL_S)

    def _ask(self, method: str, path: str, kind: type[T], body: Any = None) -> T:
        """Ask until a master answers, the leader first, or patience ends."""
        deadline_s = time.monotonic() + self._patience_s
        pause_s, turn = RETRY_S[0], 0
        said: dict[str, str] = {}
        while True:
            url = self._preferred
            try:
                return self._once(url, method, path, kind, body)
            except _Elsewhere as error:
                said[url] = str(error)
                if error.leader not in said:
                    self._preferred = error.leader
                    continue
            except (httpx2.TransportError, Unavailable) as error:
                plain = ERRNO.sub("", str(error)) or type(error).__name__
                said[url] = untrusted(str(error)) or plain
                if all(untrusted(said.get(u, "")) for u in self._masters):
                    reasons = "; ".join(f"{u}: {why}" for u, why in said.items())
                    raise UserError(f"No master can be trusted. {reasons}.", code="tls") from error
            if time.monotonic() + pause_s > deadline_s:
                reasons = "; ".join(f"{u}: {why}" for u, why in said.items())
                raise Unavailable(
                    f"No master could answer within {self._patience_s:g} s. {reasons}."
                    " Start one (holdfast master), or name those that run with --masters.",
                    code="client.no_answer",
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_S[1])
            self._preferred = self._masters[turn % len(self._masters)]
            turn += 1
            said = {u: why for u, why in said.items() if u != self._preferred}

    def _once(self, url: str, method: str, path: str, kind: type[T], body: Any) -> T:
        content = None if body is None else msgspec.json.encode(body)
        answer = self._http.request(method, f"{url}/api{path}", content=content)
        if answer.status_code == 200:
            return msgspec.json.decode(answer.content, type=kind)
        raise _error(url, answer)


class _Elsewhere(Exception):
    """Another master leads."""

    def __init__(self, leader: str) -> None:
        super().__init__(f"stands by, {leader} leads")
        self.leader = leader


def explained_text(explained: Explanation) -> str:
    """Return an explanation for people to read."""
    return as_text(explained, date_text)


def date_text(date_s: float) -> str:
    """Return a date as people here read it."""
    return datetime.fromtimestamp(date_s).strftime("%Y-%m-%d %H:%M:%S") if date_s else ""


def _error(url: str, answer: httpx2.Response) -> Exception:
    """Return what an answer other than 200 means."""
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
    except msgspec.DecodeError:
        return Unavailable(f"{url} answered {answer.status_code}, which is no answer of a master")
    if answer.status_code == 421:
        return _Elsewhere(problem.leader)
    if answer.status_code in (403, 429):
        return UserError(f"{url} refuses: {problem.message}", code=problem.code)
    if answer.status_code == 401:
        return UserError(
            f"{url} refuses the token. Give the masters' token with token_file or HOLDFAST_TOKEN.",
            code="client.token",
        )
    if problem.retryable:
        return Unavailable(problem.message, code=problem.code)
    if problem.mistakes:
        return JobFileError(_mistakes(problem.mistakes), _mistakes(problem.warnings))
    kind: type[HoldfastError] = UserError if answer.status_code < 500 else HoldfastError
    return kind(problem.message, code=problem.code)


def _mistakes(told: list[tuple[str, int, int, str]]) -> list[JobFileProblem]:
    return [
        JobFileProblem(SourceLocation(file, line, column), said)
        for file, line, column, said in told
    ]
