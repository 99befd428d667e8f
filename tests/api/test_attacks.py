"""Attacks through the API, each named after its case in the design's list (X..)."""

import asyncio
import json
import logging
import pickle
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.route import AccessRole as Rights
from holdfast.cli.cluster_verb import printable
from holdfast.cli.logs import JsonLines
from holdfast.cli.processes import _Sentences
from holdfast.core.job import JobRecord
from holdfast.errors import UserError
from holdfast.master import checkpoint_content
from holdfast.master.ports import BlobBad
from holdfast.master.records import RecordUnreadable, decode, job_key
from holdfast.model.job import Role
from holdfast.plan.masking import MASK, masked_text
from holdfast.security.path_policy import PathPolicy
from holdfast.store.contract import Guard, Put
from holdfast.wire import codec
from tests.api.served import BATCH, STREAM, TOKEN, Served, served

CANARY = "canary-5f0c1b-never-to-be-seen"


class Boom:
    """What an attacker pickles: it makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (Path.touch, (self.file,))


def test_x20_the_masters_environment_and_files_get_into_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    monkeypatch.setenv("ALLOWED_ONE", "may-be-used")
    secret = tmp_path / "secret.conf"
    secret.write_text(f"x = {CANARY}")
    tries = [
        "${env:AWS_SECRET_ACCESS_KEY}", "${AWS_SECRET_ACCESS_KEY}", "${?AWS_SECRET_ACCESS_KEY}",
        f"${{file:{secret}}}", "${env.AWS_SECRET_ACCESS_KEY}", "$AWS_SECRET_ACCESS_KEY",
    ]  # fmt: skip

    async def test(master: Served) -> None:
        for each in tries:
            text = BATCH.replace("job.name = small", f'job.name = "a {each} b", x.y = {each}')
            body = {"text": text, "lenient": True, "allow_unset": True}
            for path in ("/api/check", "/api/submit"):
                answer = await master.http.post(path, json=body)
                assert CANARY not in answer.text, each
        answer = await master.http.post("/api/check", json={"text": BATCH + "x = ${DT}"})
        assert "The variable 'DT' is not set" in answer.text
        text = f'include "{secret}"\n{BATCH}'
        answer = await master.http.post("/api/check", json={"text": text})
        assert CANARY not in answer.text and not answer.json()["ok"]
        for job in (await master.get("/api/jobs"))["jobs"]:
            assert CANARY not in json.dumps(await master.get(f"/api/jobs/{job['job_id']}/config"))
        allowed = BATCH.replace("job.name = small", 'job.name = "${ALLOWED_ONE}"')
        answer = await master.http.post("/api/check", json={"text": allowed})
        assert answer.json()["plan"]["name"] == "may-be-used"

    served(tmp_path, test, environment=["ALLOWED_ONE"])


def test_x23_what_is_pickled_is_never_opened(tmp_path: Path) -> None:
    boom = tmp_path / "boom"
    evil = pickle.dumps(Boom(boom))

    async def test(master: Served) -> None:
        for path in ("/submit-job?format=hocon", "/api/submit", "/stop-job", "/update-tags",
                     "/submit-jobs", "/encrypt-config"):  # fmt: skip
            answer = await master.http.post(path, content=evil)
            assert answer.status_code in (200, 400) and "fail" in answer.text
        with pytest.raises(codec.FrameUnreadable):
            codec.decode(evil)
        with pytest.raises(BlobBad):
            checkpoint_content.read(evil)
        with pytest.raises(RecordUnreadable):
            decode(JobRecord, evil)
        store = master.api.master.store
        await store.commit([Guard(job_key("evil"), 0)], [Put(job_key("evil"), evil)])
        assert await master.api.stored_jobs() == []
        with pytest.raises(UserError, match="damaged"):
            await master.api.job("evil")

    served(tmp_path, test)
    assert not boom.exists(), "and the canary works:"
    pickle.loads(evil)  # noqa: S301
    assert boom.exists()


def _bombs() -> dict[str, tuple[str, str]]:
    laughs = "\n".join(
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]"
        for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    )
    return {
        "python object": ("yaml", "env: !!python/object/apply:os.system ['touch /tmp/x']"),
        "laughs": ("yaml", f"a: &a [lol]\n{laughs}\nenv: *j"),
        "deep json": ("json", "[" * 100_000),
        "deep objects": ("json", '{"a":' * 100_000 + "1" + "}" * 100_000),
        "deep hocon": ("hocon", "a {" * 100_000),
        "deep list": ("hocon", "a = " + "[" * 100_000),
        "deep yaml": ("yaml", "a: " + "[" * 50_000),
        "nan": ("json", '{"env": {"parallelism": NaN}, "source": [], "sink": []}'),
        "huge number": ("json", '{"env": {"parallelism": 1e999}, "source": [], "sink": []}'),
        "long number": ("json", '{"env": {"parallelism": ' + "9" * 100_000 + "}}"),
        "many": ("json", '{"env": {' + ",".join(f'"k{n}": 1' for n in range(60_000)) + "}}"),
    }


@pytest.mark.parametrize("name", _bombs())
def test_x24_bombs_are_refused_fast_and_in_bounded_memory(tmp_path: Path, name: str) -> None:
    format, text = _bombs()[name]

    async def test(master: Served) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF)
        answer = await master.http.post("/api/check", json={"text": text, "format": format})
        after = resource.getrusage(resource.RUSAGE_SELF)
        assert answer.status_code == 200 and not answer.json()["ok"] and answer.json()["mistakes"]
        assert after.ru_utime - before.ru_utime < 30, "processor time, not the clock's"
        assert after.ru_maxrss - before.ru_maxrss < 400_000, "kilobytes"
        answer = await master.http.post(f"/submit-job?format={format}", content=text.encode())
        assert answer.status_code == 400

    served(tmp_path, test)


def test_x24_bodies_are_bounded_before_they_are_read(tmp_path: Path) -> None:
    async def endless() -> Any:
        while True:
            yield b"x" * 65_536

    async def test(master: Served) -> None:
        post = master.http.post
        told = await post("/api/check", headers={"Content-Length": "1000000000"}, content=b"{}")
        assert told.status_code == 413
        assert (await post("/submit-job", content=endless())).status_code == 413
        assert (await post("/api/check", content=b"[" * 1_000_000)).status_code == 400
        squeezed = await post("/api/check", headers={"Content-Encoding": "gzip"}, content=b"x")
        assert squeezed.status_code == 415, "no zip bombs"
        twice = await post("/stop-job", content=b'{"jobId":"a","jobId":"b"}')
        assert twice.status_code == 404 and "b" in twice.json()["message"]
        spec = '{"version":1,"file":"f","name":null,"lenient":false,"allow_python":false,"tree":'
        deep = spec + '["i",[1,1],[' * 5_000 + "]]" * 5_000 + "}"
        answer = await post("/api/jobs", json={"spec": deep, "token": "t"})
        assert answer.status_code == 400

    served(tmp_path, test)


BAD_IDS = [
    "a/b", "%2e%2e", "%2e%2e%2fetc", "a%00b", "a" * 10_240, "a%0d%0ab",
    "%E2%80%AEevil", "a b", "-a", "~root", "a;b", "a'b", "<script>", "${x}", "a\\b",
]  # fmt: skip


async def raw(master: Served, path: str) -> int:
    """Ask for a path as it stands: an HTTP client would tidy it up first."""
    said: list[Any] = []
    token = f"Bearer {TOKEN.reveal()}".encode()
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
             "query_string": b"", "headers": [(b"authorization", token), (b"host", b"m1")],
             "client": ("127.0.0.1", 1), "server": ("m1", 80), "scheme": "http"}  # fmt: skip

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    await master.app(scope, receive, send)
    status: int = said[0]["status"]
    return status


def test_x25_ids_that_are_no_ids(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for path in ("/job-info/..", "/job-info/.", "/api/jobs/../../etc/passwd", "/log/../x",
                     "/api/jobs/a\x00b", "/api//jobs", "/finished-jobs/..", "/api/jobs/\u202ex",
                     "/option-rules/../metrics", "/job-info/a\\b"):  # fmt: skip
            assert await raw(master, path) == 400, path
        paths = [r.path for r in master.app.routes if "jobId" in r.parameters and r.method == "GET"]
        for path in paths:
            for bad in BAD_IDS:
                answer = await master.http.get(path.replace("{jobId}", bad))
                assert answer.status_code in (400, 404), (path, bad[:20], answer.text[:200])
        for bad in [*BAD_IDS, "a\x00b", "a\nb", "\u202eevil"]:
            body = {"text": BATCH, "job_id": bad}
            answer = await master.http.post("/api/submit", json=body)
            assert answer.status_code == 400, bad[:20]
            assert (await master.http.post("/stop-job", json={"jobId": bad})).status_code == 400
        assert (await master.get("/api/jobs"))["jobs"] == []

    served(tmp_path, test)


def test_x26_a_restore_names_a_job_and_never_a_path(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for bad in ("../other", "s3://other/x", "file:///etc/passwd", "/etc/passwd"):
            body = {"text": BATCH, "job_id": bad, "restore": True}
            assert (await master.http.post("/api/submit", json=body)).status_code == 400
            query = {"jobId": bad, "isStartWithSavePoint": "true", "format": "hocon"}
            answer = await master.http.post("/submit-job", params=query, content=BATCH)
            assert answer.status_code == 400
        query = {"restoreMode": "CHECKPOINT", "restoreSourceJobId": "other", "format": "hocon"}
        answer = await master.http.post("/submit-job", params=query, content=BATCH)
        assert answer.status_code == 404 and "There is no job other" in answer.text

    served(tmp_path, test)


def test_x27_a_job_names_no_file_of_the_machine(tmp_path: Path) -> None:
    data, link = tmp_path / "data", tmp_path / "data" / "link"
    data.mkdir()
    link.symlink_to("/etc")
    bad = ["/proc/self/environ", "/**", "/pro*/self/environ", f"{data}/../../../proc/1/environ",
           "file:///proc/self/environ", "/dev/mem", "/sys/kernel"]  # fmt: skip
    outside = ["/etc/passwd", f"{link}/passwd", f"{data}/../other"]

    def job(path: str) -> str:
        return STREAM.replace("/tmp/nowhere", path)

    async def test(master: Served) -> None:
        for path in (*bad, *outside):
            answer = await master.http.post("/api/submit", json={"text": job(path)})
            assert answer.status_code == 400 and path in answer.text, path
            assert answer.json()["mistakes"][0][1] == 5, "with its line"
        inside = {"text": job(f"{data}/out"), "job_id": "fine"}
        assert (await master.http.post("/api/submit", json=inside)).status_code == 200

    served(tmp_path, test, confined=PathPolicy([str(data)]))


def test_x28_logs_are_found_by_name_and_by_no_path(tmp_path: Path) -> None:
    log = tmp_path / "master-M1.log"
    log.write_text('{"message": "hello", "job_id": "17"}\n')
    (tmp_path / "other.log").write_text("secret")
    (tmp_path / "job-18.log").symlink_to("/etc/passwd")

    async def test(master: Served) -> None:
        for name in ("../other.log", "other.log", "..%2fother.log", "%2e%2e/other.log",
                     "/etc/passwd", "job-..%2f..%2fetc.log", "job-18.log%00", "token"):  # fmt: skip
            answer = await master.http.get(f"/log/{name}")
            assert answer.status_code in (400, 404) and "secret" not in answer.text, name
        link = await master.http.get("/log/job-18.log")
        assert link.status_code == 200 and link.text == "", "what was logged about 18: nothing"
        assert "hello" in (await master.http.get("/log/job-17.log")).text
        assert "hello" in (await master.http.get("/log/master-M1.log")).text
        viewer = await master.as_role(Rights.VIEWER)
        whole = await master.http.get("/log/master-M1.log", headers=viewer)
        assert whole.status_code == 403

    served(tmp_path, test, log_file=log)


@pytest.mark.parametrize("text", ["{{7*7}}", "{0.__class__}", "%s%n", "#{7*7}", "<%= 7*7 %>"])
def test_x32_templates_stay_text(tmp_path: Path, text: str) -> None:
    async def test(master: Served) -> None:
        await master.submit("1", BATCH.replace("job.name = small", f'job.name = """{text}"""'))
        assert (await master.get("/api/jobs/1"))["name"] == text
        assert (await master.get("/job-info/1"))["jobName"] == text
        assert "49" not in json.dumps(await master.get("/api/jobs/1/config"))

    served(tmp_path, test)


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "holdfast.api.service.Api"])
def test_x33_only_registered_names_are_plug_ins(tmp_path: Path, name: str) -> None:
    async def test(master: Served) -> None:
        for role in Role:
            config = {
                "env": {"job.mode": "BATCH"},
                "source": [{"plugin_name": "FakeSource", "plugin_output": "f",
                            "schema": {"fields": {"id": "int"}}}],
                "transform": [],
                "sink": [{"plugin_name": "Console", "plugin_input": ["f"]}],
            }  # fmt: skip
            config[role.value] = [{"plugin_name": name, "plugin_input": ["f"]}]
            answer = await master.http.post("/submit-job", json=config)
            assert answer.status_code == 400 and answer.json()["mistakes"]
        python = BATCH.replace(
            "sink {", 'transform { Python { plugin_input = f, function = "os.system" } }\nsink {'
        )
        answer = await master.http.post("/api/submit", json={"text": python})
        assert answer.status_code == 400, "functions run only where the operator says so"

    served(tmp_path, test)


@pytest.mark.parametrize(
    "shown",
    [
        f"jdbc:postgresql://h/db?user=me&password={CANARY}",
        f"could not connect to postgres://me:{CANARY}@h:5432/db: refused",
        f"s3a: secret_key={CANARY}, region=eu",
        f"PASSWORD = {CANARY}",
        f"https://h/x?access_token={CANARY}&y=1",
    ],
)
def test_x35_errors_that_echo_a_secret_are_masked(shown: str) -> None:
    assert CANARY not in masked_text(shown) and MASK in masked_text(shown)


def test_x35_secrets_are_masked_however_deep_and_whatever_they_are_called(tmp_path: Path) -> None:
    nested = "a { " * 40 + f'password = "{CANARY}"' + " }" * 40
    sink = f"""sink {{ Spark {{ plugin_input = f, format = noop, mode = append
      options {{ "secret.key" = "{CANARY}", api-key = "{CANARY}", {nested}
        list = [{{ token = "{CANARY}" }}],
        url = "jdbc:x://u:{CANARY}@h/d?password={CANARY}" }} }} }}"""
    text = BATCH.partition("sink {")[0] + sink

    async def test(master: Served) -> None:
        answer = await master.http.post("/api/check", json={"text": text, "lenient": True})
        assert CANARY not in answer.text
        body = {"text": text, "job_id": "1", "lenient": True}
        answer = await master.http.post("/api/submit", json=body)
        assert CANARY not in answer.text
        if answer.status_code == 200:
            for path in ("/api/jobs/1/config", "/job-info/1", "/api/jobs/1/graph"):
                assert CANARY not in (await master.http.get(path)).text

    served(tmp_path, test)


def test_x36_names_are_data_in_answers_pages_and_logs(tmp_path: Path) -> None:
    evil = '<script>alert(1)</script>\x1b[2J\\r\\n{"level":"forged"}'
    text = BATCH.replace("job.name = small", f"job.name = {json.dumps(evil)}")

    async def test(master: Served) -> None:
        await master.submit("1", text)
        for path in ("/api/jobs", "/running-jobs", "/job-info/1"):
            answer = await master.http.get(path)
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "\x1b" not in answer.text, "JSON writes it as an escape"
        page = await master.http.get("/logs/1?format=html")
        assert "<script" not in page.text
        metrics = (await master.http.get("/metrics")).text
        assert not [x for x in metrics.splitlines() if x.startswith(('{"level"', "alert"))]

    served(tmp_path, test)
    record = logging.LogRecord("holdfast", 20, "f", 1, "job %s\nforged", (evil,), None)
    for form in (JsonLines(), _Sentences()):
        line = form.format(record)
        assert "\n" not in line and "\x1b" not in line and "forged" in line
    leak = logging.LogRecord("holdfast", 30, "f", 1, "no: %s", (f"x?password={CANARY}",), None)
    leak.about = {"reason": f"postgres://me:{CANARY}@h/d"}
    assert CANARY not in JsonLines().format(leak) + _Sentences().format(leak)
    assert printable(evil + "\n\r") == printable(evil) + "  " and "\x1b" not in printable(evil)


def test_x50_a_bug_tells_nothing_but_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"password={CANARY} in /etc/holdfast/token")

    async def test(master: Served) -> None:
        monkeypatch.setattr(master.api, "jobs", broken)
        answer = await master.http.get("/api/jobs")
        assert answer.status_code == 500 and answer.json()["code"] == "master.bug"
        number = answer.json()["message"].rpartition("under ")[2].rstrip(".")
        assert CANARY not in answer.text and "Traceback" not in answer.text
        assert "/etc" not in answer.text and len(number) == 12
        assert number in caplog.text, "and the log explains it"

    with caplog.at_level(logging.ERROR, "holdfast"):
        served(tmp_path, test)


def test_a_read_never_waits_for_a_worker(tmp_path: Path) -> None:
    """Workers that have said nothing for an hour change nothing about how fast reads answer."""

    async def test(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        sent: list[Any] = []
        master.api.master.ports.workers.send = lambda *m: sent.append(m)  # type: ignore[method-assign]
        reads = [r for r in master.app.routes if r.method == "GET" and "changes" not in r.path]
        before = time.monotonic()
        for route in reads:
            path = route.path.replace("{jobId}", "17").replace("{state}", "FINISHED")
            await asyncio.wait_for(master.http.get(path), 30)
        assert time.monotonic() - before < 60
        asked = [
            m for m in sent if type(m[1]).__name__ not in ("Barrier", "DeployTask", "HeartbeatAck")
        ]
        assert not asked, "nothing is asked of a worker for a read"

    served(tmp_path, test)
