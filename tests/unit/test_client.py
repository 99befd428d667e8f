"""The client: it follows the leader, waits out a failover, and repeats the same submit."""

import json
from collections.abc import Callable

import httpx2
import pytest

from holdfast import client as module
from holdfast.client import Client
from holdfast.errors import JobFileError, Unavailable, UserError
from holdfast.model.secret import Secret

ONE, TWO = "http://one:1", "http://two:2"
CLUSTER = {"leader": "M2", "url": TWO, "term": 7, "workers": [], "set_aside": {}}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", (0.001, 0.002))


def client(answer: Callable[[httpx2.Request], httpx2.Response], patience_s: float = 2.0) -> Client:
    return Client([ONE, TWO], Secret("t"), patience_s, httpx2.MockTransport(answer))


def problem(status: int, code: str, message: str, **more: object) -> httpx2.Response:
    return httpx2.Response(status, json={"code": code, "message": message, **more})


def test_a_standby_names_the_leader() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        assert request.headers["authorization"] == "Bearer t"
        if request.url.host == "one":
            return problem(421, "master.standby", "two leads", leader=TWO)
        return httpx2.Response(200, json=CLUSTER)

    talk = client(answer)
    assert talk.cluster().term == 7
    assert talk.cluster().term == 7
    assert asked == ["one", "two", "two"], "and is remembered"


def test_a_failover_is_waited_out_with_the_same_token() -> None:
    bodies: list[dict[str, object]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        match len(bodies):
            case 1:
                raise httpx2.ConnectError("refused")
            case 2:
                return problem(503, "master.no_leader", "nobody leads", retryable=True)
            case 3:
                return problem(421, "master.standby", "one leads", leader=ONE)
            case 4:
                raise httpx2.ReadTimeout("no answer")
        return httpx2.Response(200, json={"job_id": "17"})

    assert client(answer).submit("spec", "token", "17").job_id == "17"
    assert len({json.dumps(b) for b in bodies}) == 1 and bodies[0]["token"] == "token"


def test_patience_ends_with_what_each_master_said() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "one":
            raise httpx2.ConnectError("refused")
        return problem(503, "", "just begun", retryable=True)

    with pytest.raises(Unavailable) as caught:
        client(answer, 0.1).jobs()
    assert "one:1: refused" in str(caught.value) and "two:2: just begun" in str(caught.value)


def test_two_masters_that_name_each_other_are_no_endless_loop() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        other = TWO if request.url.host == "one" else ONE
        return problem(421, "master.standby", "the other leads", leader=other)

    with pytest.raises(Unavailable, match="stands by"):
        client(answer, 0.1).cluster()


def test_errors_keep_their_kind() -> None:
    told = [("job.conf", 2, 3, "wrong"), ("job.conf", 9, 1, "wrong too")]
    answers = iter(
        [
            problem(401, "token", "no"),
            problem(404, "job.unknown", "There is no job 17."),
            problem(400, "job.invalid", "...", mistakes=told),
            httpx2.Response(502, text="a proxy"),
        ]
    )
    talk = client(lambda _: next(answers), 0.0)
    with pytest.raises(UserError, match="refuses the token"):
        talk.jobs()
    with pytest.raises(UserError, match="There is no job 17") as unknown:
        talk.job("17")
    assert unknown.value.code == "job.unknown"
    with pytest.raises(JobFileError) as invalid:
        talk.submit("", "", "")
    assert [str(m) for m in invalid.value.mistakes] == [
        "job.conf:2:3: wrong", "job.conf:9:1: wrong too",
    ]  # fmt: skip
    with pytest.raises(Unavailable, match="no answer of a master"):
        talk.jobs()


def test_logs_of_all_masters_that_answer_in_order_of_time() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "one":
            lines = [{"time": "3", "message": "c"}, {"time": "1", "message": "a"}]
            return httpx2.Response(200, json={"master": "M1", "lines": lines})
        return httpx2.Response(200, json={"master": "M2", "lines": [{"time": "2", "message": "b"}]})

    assert [(x["message"], x["master"]) for x in client(answer).logs("17")] == [
        ("a", "M1"), ("b", "M2"), ("c", "M1"),
    ]  # fmt: skip
