"""Attacks on the links between masters and workers, each named after its case (X..)."""

import asyncio
import contextlib
import secrets
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from holdfast.client import Client
from holdfast.config import load_config
from holdfast.core.checkpoint import CheckpointDue, CheckpointKind
from holdfast.core.gather import StagedCommittable, TaskAck
from holdfast.core.task import TaskStatus, WorkerId
from holdfast.errors import UserError
from holdfast.model.secret import Secret
from holdfast.model.tree import Plain
from holdfast.process.links import PATH, UNREADABLE, Dialer
from holdfast.process.master_process import open_port, server_for
from holdfast.security.identity import PROOF, client_tls, hello_of_worker, proof_of_master
from holdfast.wire.codec import decode, encode
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    Heartbeat,
    SourceEndReport,
    TaskKey,
    TaskReport,
)
from tests.api.served import STREAM, TOKEN, Served, served
from tests.conformance.servers import free_ports

REFUSED = (OSError, WebSocketException, EOFError)
SINK = "Sink[0]-LocalFile"
HELLO = Heartbeat("W1", "W1-1", 1, 0, 4, (), ())


@contextlib.asynccontextmanager
async def listening(master: Served, port: int = 0, **config: str) -> AsyncIterator[str]:
    """Serve the master's whole port, TLS included, on a free one."""
    port = port or free_ports(1)[0]
    opened = open_port("127.0.0.1", port)
    server = server_for(master.app, load_config(config, {}).config)
    running = asyncio.ensure_future(server.serve(sockets=[opened]))
    try:
        yield f"127.0.0.1:{port}{PATH}"
    finally:
        server.should_exit = True
        await running


def joined(nonce: str = "", token: Secret = TOKEN) -> dict[str, str]:
    return {"Authorization": hello_of_worker(token, nonce or secrets.token_hex(16))}


def over_the_wire(folder: Path, test: Callable[[Served, str], Awaitable[None]]) -> None:
    async def run(master: Served) -> None:
        async with listening(master) as address:
            await test(master, f"ws://{address}")

    served(folder, run)


def test_x11_nobody_joins_without_the_token_or_with_anothers_name(tmp_path: Path) -> None:
    async def test(master: Served, url: str) -> None:
        used = joined()
        async with connect(url, additional_headers=used, proxy=None) as first:
            assert first.response and first.response.headers[PROOF]
            bad = [
                {}, {"Authorization": f"Bearer {TOKEN.reveal()}"}, joined(token=Secret("old")),
                used, {"Authorization": "Join short x"}, {"Authorization": f"Join {'a' * 32} x"},
            ]  # fmt: skip
            for headers in bad:
                with pytest.raises(InvalidStatus) as refused:
                    async with connect(url, additional_headers=headers, proxy=None):
                        pass
                assert refused.value.response.status_code == 403
            await first.send(encode(HELLO))
            crew = master.api.master.leader.crew  # type: ignore[union-attr]
            while "W1-1" not in crew.seen:
                await asyncio.sleep(0.01)
            async with connect(url, additional_headers=joined(), proxy=None) as second:
                await second.send(encode(Heartbeat("W1", "W1-2", 1, 0, 4, (), ())))
                with pytest.raises(ConnectionClosed, match="connected already"):
                    while True:
                        await second.recv()
            assert set(crew.seen) == {"W1-1"}

    over_the_wire(tmp_path, test)


def test_x12_a_rogue_master_without_the_token_is_not_heard(tmp_path: Path) -> None:
    heard: list[Any] = []
    poison = Barrier(10**9, TaskKey("j", "i", 1, "t"), 1, 1, 0, 0)

    async def run() -> None:
        async def rogue(socket: Any) -> None:
            with contextlib.suppress(ConnectionClosed):
                await socket.send(encode(poison))
                await socket.recv()

        async def proving(socket: Any, response: Any, nonce: str) -> None:
            response.headers[PROOF] = proof_of_master(TOKEN, nonce)

        said: list[str] = []
        port = free_ports(1)[0]
        async with serve(rogue, "127.0.0.1", port):
            dialer = Dialer(
                [f"http://127.0.0.1:{port}"], TOKEN, lambda: HELLO, heard.append,
                lambda message, **_: said.append(message),
            )  # fmt: skip
            running = asyncio.ensure_future(dialer.run())
            while not [s for s in said if "does not know the join token" in s]:
                await asyncio.sleep(0.01)
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    asyncio.run(run())
    assert not heard


def test_x13_what_was_said_before_is_not_heard_again(tmp_path: Path) -> None:
    async def test(master: Served, url: str) -> None:
        await master.submit("17")
        await master.runs("17")
        await master.checkpoint("17")
        leader, keeper = master.api.master.leader, next(iter(master.keepers()))
        assert leader
        before = keeper.state
        task = before.tasks[0]
        assert task.place
        old = TaskAck(1, task.id, task.attempt, task.place, (("s", 1),), (), True)
        stale = TaskAck(2, task.id, 7, task.place, (), (), True)
        key = keeper.task_key(task.id)
        for message in (
            Heartbeat("W1", "W1-1", 1, 0, 99, (), ()),
            BarrierAck(leader.desk.term, key, old),
            BarrierAck(leader.desk.term, key, stale),
            BarrierAck(leader.desk.term - 1, key, old),
            SourceEndReport(leader.desk.term, key, 7, task.sources[0], "W1", "W1-1"),
        ):
            await leader.hear("W1-1", message)
        assert keeper.state == before and leader.crew.seen["W1-1"].hello.slots == 8

    over_the_wire(tmp_path, test)


def test_x14_a_worker_cannot_speak_for_another(tmp_path: Path) -> None:
    async def test(master: Served, url: str) -> None:
        await master.submit("17")
        await master.runs("17")
        keeper = next(iter(master.keepers()))
        task = keeper.state.tasks[0]
        assert task.place == WorkerId("W1", "W1-1") and task.status is TaskStatus.RUNNING
        key, term = keeper.task_key(task.id), master.api.master.leader.desk.term  # type: ignore[union-attr]
        lies = [
            SourceEndReport(term, key, 1, task.sources[0], "W1", "W1-1"),
            BarrierAck(term, key, TaskAck(1, task.id, 1, task.place, (), (), True)),
            Heartbeat("W1", "W1-1", 10**6, 0, 0, (), ()),
        ]
        for number, lie in enumerate(lies):
            async with connect(url, additional_headers=joined(), proxy=None) as other:
                await other.send(encode(Heartbeat("W2", f"W2-{number}", 1, 0, 4, (), ())))
                await other.send(encode(lie))
                with pytest.raises(ConnectionClosed, match="spoke for another") as closed:
                    while True:
                        await other.recv()
                assert closed.value.rcvd and closed.value.rcvd.code == UNREADABLE
        assert not keeper.state.completion.ready
        assert keeper.state.tasks[0].status is TaskStatus.RUNNING

    over_the_wire(tmp_path, test)


def test_x40_a_worker_names_no_files_but_those_it_has_staged(tmp_path: Path) -> None:
    """It joins with the join token alone, runs its task, and answers with names of other files."""
    victim, out = tmp_path / "theirs" / "secret", tmp_path / "out"
    victim.parent.mkdir()
    victim.write_text("a stranger's")
    text = STREAM.replace("/tmp/nowhere", str(out)).replace(
        "env {", "env { job.retry.times = 20, job.retry.interval.seconds = 0,"
    )

    async def test(master: Served, url: str) -> None:
        await master.submit("17", text)
        (keeper,) = master.keepers()
        leader = master.api.master.leader
        assert leader
        task = keeper.state.tasks[0].id
        folder = f".holdfast/17.{keeper.state.incarnation}-{task}-a1-s0-t0"
        lies: list[Plain] = [
            {"root": str(victim.parent), "folder": folder, "files": [["secret", "../mine"]]},
            {"root": str(out), "folder": folder, "files": [["../theirs/secret", "mine"]]},
            {"root": str(out), "folder": "../theirs", "files": []},
        ]
        answers: list[Plain] = [
            {"version": 1, "table": "t", "rows": 1, "bytes": 1, "content": lie} for lie in lies
        ]
        answers += ["no committable", {"version": 1}, {**dict.fromkeys("ab")}]
        async with connect(url, additional_headers=joined(), proxy=None) as worker:
            here, beats, told = WorkerId("W1", "W1-1"), 0, 0
            while told < len(answers):
                beats += 1
                held = tuple(
                    TaskReport(keeper.task_key(t.id), t.attempt, progress=beats)
                    for t in keeper.state.tasks
                    if t.live and t.place == here
                )
                await worker.send(encode(Heartbeat("W1", "W1-1", beats, 0, 4, (), held)))
                if not keeper.state.checkpoints.pending:
                    await keeper.handle(CheckpointDue(CheckpointKind.PERIODIC, leader.desk.term))
                with contextlib.suppress(TimeoutError):
                    while True:
                        order = decode(bytes(await asyncio.wait_for(worker.recv(False), 0.05)))
                        if not isinstance(order, Barrier) or len(keeper.state.failures) > told:
                            continue
                        made = StagedCommittable(order.number, SINK, answers[told])
                        acked = TaskAck(order.number, task, order.attempt, here, (), (made,), False)
                        await worker.send(encode(BarrierAck(order.term, order.key, acked)))
                told = len(keeper.state.failures)
            for failure in keeper.state.failures:
                assert failure.task == task and f"task {task} of job 17" in failure.reason
                assert SINK in failure.reason and "refuse" in failure.reason
            assert any("theirs" in f.reason for f in keeper.state.failures)
        assert keeper.state.commits.through == 0 and not keeper.state.checkpoints.latest
        assert victim.read_text() == "a stranger's" and not (tmp_path / "mine").exists()

    over_the_wire(tmp_path, test)


def certificate(folder: Path, name: str, host: str = "127.0.0.1") -> tuple[str, str]:
    """Make a certificate that signs itself, as `openssl` does for anybody."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName=IP:{host}"],
        check=True, capture_output=True,
    )  # fmt: skip
    return str(cert), str(key)


def test_a_wrong_certificate_is_said_at_once_with_what_mends_it(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "master")
    other, _ = certificate(tmp_path, "other")

    async def test(master: Served) -> None:
        async with listening(master, tls_cert=cert, tls_key=key) as address:
            strange = client_tls(load_config({"tls_ca": other}, {}).config)
            client = Client(f"https://{address}", "token", patience_s=3600.0, tls=strange)
            with pytest.raises(UserError) as refused:
                await asyncio.to_thread(client.jobs)
        said = str(refused.value)
        assert said.startswith(f"No master can be trusted. https://{address}: its certificate is")
        assert "tls_ca" in said

    served(tmp_path, test)


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    for path, said in ((f"{tmp_path}/ca.pem", "it holds no certificate"), ("none", "No such file")):
        with pytest.raises(UserError, match=f"tls_ca: {path} cannot be used: {said}"):
            client_tls(load_config({"tls_ca": path}, {}).config)


def test_x11_tls_trusts_only_the_authorities_that_are_given(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "master")
    other, other_key = certificate(tmp_path, "other")
    mine, mine_key = certificate(tmp_path, "worker")

    async def test(master: Served) -> None:
        tls = {"tls_cert": cert, "tls_key": key}
        async with listening(master, **tls) as address:
            trusting = client_tls(load_config({"tls_ca": cert}, {}).config)
            url = f"wss://{address}"
            async with connect(url, additional_headers=joined(), ssl=trusting, proxy=None) as link:
                assert link.response and link.response.headers[PROOF]
            strange = client_tls(load_config({"tls_ca": other}, {}).config)
            with pytest.raises(ssl.SSLError):
                await connect(url, additional_headers=joined(), ssl=strange, proxy=None)
            with pytest.raises(REFUSED):
                await connect(f"ws://{address}", additional_headers=joined(), proxy=None)
        async with listening(master, **tls, tls_client_ca=mine) as address:
            url = f"wss://{address}"
            shown = {"tls_ca": cert, "tls_client_cert": mine, "tls_client_key": mine_key}
            known = client_tls(load_config(shown, {}).config)
            async with connect(url, additional_headers=joined(), ssl=known, proxy=None) as link:
                assert link.response
            for bad in ({"tls_ca": cert}, {"tls_ca": cert, "tls_client_cert": other,
                                           "tls_client_key": other_key}):  # fmt: skip
                context = client_tls(load_config(bad, {}).config)
                with pytest.raises(REFUSED):
                    link = await connect(url, additional_headers=joined(), ssl=context, proxy=None)
                    await link.recv()

    served(tmp_path, test)
