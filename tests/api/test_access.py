"""Every path, every role, and nobody: as each path declares, read from the router itself."""

import asyncio
import base64
import hmac
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.api import access
from holdfast.api.audit import broken_at
from holdfast.api.route import GRANTED, AccessRole, Permission, Route
from holdfast.config import load_config
from holdfast.errors import UserError
from holdfast.model.secret import Secret
from holdfast.process import links
from holdfast.security.identity import check_listen
from holdfast.security.token_files import join_token
from tests.api.served import TOKEN, Served, served

EXAMPLES = {
    "jobId": "17",
    "saved": "1",
    "state": "FINISHED",
    "name": "job-17.log",
    "role": "sink",
    "id": "0" * 16,
    "worker": "W1",
}


def address(route: Route) -> str:
    path = route.path
    for name, value in EXAMPLES.items():
        path = path.replace(f"{{{name}}}", value)
    return path + ("?wait_s=0" if path == "/api/changes" else "")


async def asked(master: Served, route: Route, headers: dict[str, str]) -> Any:
    return await master.http.request(route.method, address(route), headers=headers, content=b"")


def test_x01_nobody_learns_anything_without_a_token(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        nobody = {"Authorization": ""}
        public = {r.path for r in master.app.routes if r.permission is Permission.PUBLIC}
        assert {p for p in public if not p.endswith((".js", ".css", ".svg", ".html"))} <= {
            "/", "/healthz", "/manifest.webmanifest", "/favicon.ico",
        }  # fmt: skip
        for route in master.app.routes:
            answer = await asked(master, route, nobody)
            if route.permission is Permission.PUBLIC:
                assert answer.status_code == 200
                continue
            assert answer.status_code == 401, (route.path, answer.status_code)
            assert set(answer.json()) >= {"status", "message"} and "17" not in answer.text
            assert "bearer" in answer.headers["www-authenticate"].lower()
        for path in ("/nothing", "/api/jobs/17/nothing", "/admin", "/api/jobs/17"):
            answer = await master.http.get(path, headers=nobody)
            assert answer.status_code == 401, "not even which paths and jobs there are"

    served(tmp_path, test)


@pytest.mark.parametrize("role", AccessRole)
def test_x02_every_path_with_every_role(tmp_path: Path, role: AccessRole) -> None:
    async def test(master: Served) -> None:
        headers = await master.as_role(role)
        for route in master.app.routes:
            before = len(master.app.audit.latest)
            answer = await asked(master, route, headers)
            granted = route.permission is Permission.PUBLIC or route.permission in GRANTED[role]
            assert (answer.status_code != 403) == granted, (route.path, answer.text)
            assert answer.status_code != 401
            assert answer.status_code < 500 or answer.status_code == 503, (route.path, answer.text)
            if not granted:
                line = list(master.app.audit.latest)[before]
                assert (line["what"], line["who"], line["status"]) == ("refused", f"a-{role}", 403)

    served(tmp_path, test)


ORDERS = """
POST /api/jobs                      POST /api/submit
POST /api/jobs/{jobId}/cancel       POST /api/jobs/{jobId}/savepoint
POST /api/jobs/{jobId}/retry        POST /submit-job
POST /submit-job/upload             POST /submit-jobs
POST /stop-job                      POST /stop-jobs
POST /api/workers/{worker}/drain    DELETE /api/workers/{worker}/drain
"""
"""What changes jobs, said here once more: a path's own declaration cannot vouch for itself."""


def test_whoever_may_only_read_orders_nothing(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        headers = await master.as_role(AccessRole.VIEWER)
        words = ORDERS.split()
        orders = set(zip(words[::2], words[1::2], strict=True))
        routes = {(r.method, r.path): r for r in master.app.routes}
        assert orders <= set(routes), orders - set(routes)
        assert {key for key, route in routes.items() if route.order} >= orders
        for key, route in routes.items():
            if key in orders or route.order:
                answer = await asked(master, route, headers)
                assert answer.status_code == 403, (key, answer.text)
        assert (await master.get("/api/jobs/17"))["status"] == "PENDING"

    served(tmp_path, test)


def test_x03_a_token_for_some_jobs_does_not_learn_of_others(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for job in ("a-1", "b-1"):
            await master.submit(job)
        made = await master.app.access.give("team-a", AccessRole.OPERATOR, 0.0, "a-")
        headers = {"Authorization": f"Bearer {made.token}"}
        paths = [r for r in master.app.routes if "jobId" in r.parameters]
        for route in paths:
            for job in ("b-1", "nobody"):
                path = address(route).replace("17", job)
                answer = await master.http.request(route.method, path, headers=headers, content=b"")
                assert answer.status_code == 404, (route.path, answer.text)
                assert answer.json()["message"] == f"There is no job {job}."
        assert (await master.http.get("/api/jobs/a-1", headers=headers)).status_code == 200
        listed = (await master.http.get("/api/jobs", headers=headers)).json()
        assert [j["job_id"] for j in listed["jobs"]] == ["a-1"] and listed["total"] == 1
        assert "b-1" not in (await master.http.get("/api/jobs?search=1", headers=headers)).text
        for path in ("/running-jobs", "/metrics", "/overview", "/api/workers", "/pending-jobs"):
            assert (await master.http.get(path, headers=headers)).status_code == 403
        stolen = {"text": "x", "job_id": "b-2"}
        answer = await master.http.post("/api/submit", json=stolen, headers=headers)
        assert answer.status_code == 400 or answer.status_code == 403
        with pytest.raises(UserError):
            await master.app.access.give("boss", AccessRole.ADMIN, 0.0, "a-")

    served(tmp_path, test)


def test_x04_expired_revoked_and_forged_tokens_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(master: Served) -> None:
        async def status(token: str, scheme: str = "Bearer") -> int:
            headers = {"Authorization": f"{scheme} {token}"}
            return (await master.http.get("/api/me", headers=headers)).status_code

        give = master.app.access.give
        good = await give("me", AccessRole.VIEWER, 1.0)
        assert await status(good.token) == 200
        basic = base64.b64encode(f"anybody:{good.token}".encode()).decode()
        assert await status(basic, "Basic") == 200, "as SeaTunnel's clients show it"
        assert await status(basic[:-4], "Basic") == await status("?", "Basic") == 401
        monkeypatch.setattr(access.time, "time", lambda: good.expires_s)
        assert await status(good.token) == 401, "expired"
        monkeypatch.undo()
        assert (await master.http.delete(f"/api/tokens/{good.id}")).status_code == 200
        assert await status(good.token) == 401, "taken back, at once"
        other = (await give("me", AccessRole.VIEWER, 0.0)).token
        none_alg = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInJvbGUiOiJhZG1pbiJ9."
        signed = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl"
        forged = [
            none_alg, signed, "", "x", other[:-1], other + "x", other.replace("hf_", "hf-"),
            other[:20] + "A" * 43, TOKEN.reveal()[:-1], TOKEN.reveal() + " ", other.upper(),
        ]  # fmt: skip
        for token in forged:
            assert await status(token) == 401, token
        assert await status(other, "bearer") == 200, "the scheme's case does not matter"
        assert await status(other, "Digest") == 401

    served(tmp_path, test)


def test_x05_secrets_are_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    compare = hmac.compare_digest

    def counted(one: Any, other: Any) -> bool:
        calls.append((one, other))
        return compare(one, other)

    async def test(master: Served) -> None:
        monkeypatch.setattr(hmac, "compare_digest", counted)
        token = (await master.app.access.give("me", AccessRole.VIEWER, 0.0)).token
        wrong = token[:-3] + "AAA"
        assert (await master.http.get("/api/me", headers={"Authorization": f"Bearer {wrong}"})
                ).status_code == 401  # fmt: skip
        assert len(calls) == 2, "once with the admin's token, once with the hash of the record"

    served(tmp_path, test)


def test_x06_guessing_is_slowed_down_and_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(master: Served) -> None:
        seen = []
        for number in range(1000):
            headers = {"Authorization": f"Bearer guess {number}"}
            seen.append((await master.http.get("/api/me", headers=headers)).status_code)
        assert seen.count(401) == access.TRIES_MAX and seen.count(429) == 1000 - access.TRIES_MAX
        lines = [x for x in master.app.audit.latest if x["what"] == "wrong token"]
        assert [x["times"] for x in lines] == [1, 10, 100], "and the log is not flooded"
        last = await master.http.get("/api/me", headers={"Authorization": "Bearer x"})
        assert last.headers["retry-after"]
        later = time.monotonic() + access.TRIES_S
        monkeypatch.setattr("holdfast.api.app.time.monotonic", lambda: later)
        assert (await master.http.get("/api/me")).status_code == 200, "a minute later"

    served(tmp_path, test)


def test_x07_a_public_address_without_tls_is_refused() -> None:
    for listen in ("0.0.0.0:1", "[::]:1", "192.168.1.5:1", "example.com:1"):
        with pytest.raises(UserError, match="without TLS") as refused:
            check_listen(load_config({"listen": listen}, {}).config)
        assert "insecure: true" in str(refused.value)
        check_listen(load_config({"listen": listen, "insecure": "true"}, {}).config)
        tls = {"listen": listen, "tls_cert": "c", "tls_key": "k"}
        check_listen(load_config(tls, {}).config)
    for listen in ("127.0.0.1:1", "[::1]:1", "localhost:1", "127.9.9.9:1"):
        check_listen(load_config({"listen": listen}, {}).config)
    with pytest.raises(UserError, match="belong together"):
        load_config({"tls_cert": "c"}, {})


def test_x08_there_are_no_old_paths_and_documents_need_a_token(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        nobody = {"Authorization": ""}
        for path in ("/docs", "/redoc", "/hazelcast/rest/maps/submit-job", "/debug", "/actuator",
                     "/hazelcast/rest/instance/metrics", "/api/docs", "/.git/config"):  # fmt: skip
            assert (await master.http.get(path)).status_code == 404
            assert (await master.http.get(path, headers=nobody)).status_code == 401
        for path in ("/openapi.json", "/metrics", "/openmetrics", "/thread-dump"):
            assert (await master.http.get(path)).status_code == 200
            assert (await master.http.get(path, headers=nobody)).status_code == 401
        for method in ("TRACE", "CONNECT", "OPTIONS", "PUT", "PROPFIND"):
            answer = await master.http.request(method, "/api/jobs")
            assert answer.status_code == 405 and answer.headers["allow"] == "GET, POST"
            assert "access-control-allow-origin" not in answer.headers

    served(tmp_path, test)


def test_x09_another_sites_page_can_order_nothing(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        cancel = "/api/jobs/17/cancel"
        cookie = {"Authorization": "", "Cookie": f"token={TOKEN.reveal()}; session=1"}
        assert (await master.http.post(cancel, headers=cookie)).status_code == 401, "no cookies"
        for foreign in ({"Origin": "https://evil.example"}, {"Origin": "null"},
                        {"Sec-Fetch-Site": "cross-site"}):  # fmt: skip
            answer = await master.http.post(cancel, headers=foreign)
            assert answer.status_code == 403 and answer.json()["code"] == "origin"
        own = {"Origin": "http://m1", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
        assert (await master.http.post(cancel, headers=own)).status_code == 200
        page = await master.http.get("/api/me", headers={**own, "Authorization": ""})
        assert "basic" not in page.headers["www-authenticate"].lower(), "no browser's own dialog"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe-inline" not in policy
        assert page.headers["x-frame-options"] == "DENY"

    served(tmp_path, test)


def test_orders_are_in_the_audit_log_whose_chain_shows_changes(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        headers = await master.as_role(AccessRole.OPERATOR)
        await master.http.post("/api/jobs/17/cancel", headers=headers)
        await master.http.post("/api/jobs/nobody/cancel", headers=headers)
        lines = (await master.get("/api/audit"))["lines"]
        cancelled = next(x for x in lines if x.get("order", "").endswith("/cancel"))
        assert cancelled["who"] == "a-operator" and cancelled["jobId"] == "17"
        answers = {x["asked"]: x for x in lines if x["what"] == "answered"}
        assert answers[cancelled["number"]]["status"] == 200
        assert answers[lines[-2]["number"]]["code"] == "job.unknown"

    served(tmp_path, test)
    log = tmp_path / "audit.log"
    assert broken_at(log) == 0 and log.stat().st_mode & 0o077 == 0
    lines = log.read_text().splitlines()
    log.write_text("\n".join([lines[0], lines[1].replace("200", "403"), *lines[2:]]) + "\n")
    assert broken_at(log) == 3, "the line after the changed one does not follow from it"
    log.write_text("\n".join([lines[0], *lines[2:]]) + "\n")
    assert broken_at(log) == 2, "a line was taken out"


def test_the_join_token_is_made_from_the_token_and_opens_no_path(tmp_path: Path) -> None:
    config = load_config({"token": TOKEN.reveal()}, {}).config
    made = join_token(config, create=False)
    assert made != TOKEN and made == join_token(config, create=False)
    own = load_config({"join_token": "j"}, {}).config
    assert join_token(own, create=False) == Secret("j"), "a worker needs no other token"

    async def test(master: Served) -> None:
        headers = {"Authorization": f"Bearer {made.reveal()}"}
        assert (await master.http.get("/api/me", headers=headers)).status_code == 401
        await asyncio.sleep(0)

    served(tmp_path, test)
    assert links.PATH == "/link"
