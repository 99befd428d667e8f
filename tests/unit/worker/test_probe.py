"""The probe of Spark's JVM: silence is told, then it is given up; a real JVM is stopped for it."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.spark.jvm import Jvm, stands_still
from holdfast.worker import probe
from holdfast.worker.probe import Bounds, Probe

SECRET = "a secret"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Jvm]:
    """A process that does nothing, in the place of a JVM."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.PIPE
    )
    jvm = Jvm(process, tmp_path / "connection", tmp_path / "spark.log", 0)
    yield jvm
    jvm.kill()


@contextmanager
def answering(jvm: Jvm, says: bytes | None) -> Iterator[None]:
    """Be the port of a JVM that says this to whoever knows the secret; None: it takes no notice."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        jvm.address = (server.getsockname()[1], SECRET)

        def serve() -> None:
            while says is not None:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    if line.recv(100) == f"A\n{SECRET}\ne\n".encode():
                        line.sendall(says)

        threading.Thread(target=serve, daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("LOOK_S", 0.02),
        ("ANSWER_S", 0.1),
        ("SAID_S", 0.04),
        ("START_SAID_S", 0.1),
    ):
        monkeypatch.setattr(probe, name, seconds)


def until(what: Callable[[], object], seconds: float = 30.0) -> None:
    deadline_s = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_jvm_that_answers_is_left_alone(sleeper: Jvm) -> None:
    lost = threading.Event()
    with answering(sleeper, b"!yv\n"):
        asked = Probe(sleeper, lambda: True, Bounds(5, 0.2), lost.set)
        asked.start()
        assert not lost.wait(1.0)
        assert asked.trouble == probe.Trouble()
        asked.close()
    assert sleeper.loss_soon(0) is None


@pytest.mark.parametrize("says", [None, b"", b"!xsno\n"])
def test_silence_is_told_and_then_the_jvm_is_given_up(sleeper: Jvm, says: bytes | None) -> None:
    lost = threading.Event()
    with answering(sleeper, says):
        os.kill(sleeper.process.pid, signal.SIGSTOP)
        until(lambda: stands_still(sleeper.process.pid))
        asked = Probe(sleeper, lambda: True, Bounds(100, 0.4), lost.set)
        asked.start()
        until(lambda: asked.trouble.said)
        said = asked.trouble.said
        assert said.startswith("Spark's Java process has not answered for ")
        assert "it is stopped, by a signal or a debugger. After 0.4 s it is ended" in said
        assert lost.wait(30)
    loss = sleeper.loss_soon(1)
    assert sleeper.is_alive and loss and loss.code == "spark.gone"
    assert "did not answer for" in str(loss) and "it is stopped" in str(loss)


def test_a_start_has_a_bound_of_its_own(sleeper: Jvm) -> None:
    lost = threading.Event()
    asked = Probe(sleeper, lambda: False, Bounds(0.4, 100), lost.set)
    asked.start()
    until(lambda: asked.trouble.said)
    assert asked.trouble.said.startswith("Spark has been starting for ")
    assert lost.wait(30)
    with pytest.raises(Exception, match="Spark did not start within"):
        sleeper.wait_ready()


def test_a_jvm_that_is_stopped_as_it_starts_is_silent_like_any_other(sleeper: Jvm) -> None:
    """Nothing can be asked of it yet; the kernel knows."""
    lost = threading.Event()
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    until(lambda: stands_still(sleeper.process.pid))
    asked = Probe(sleeper, lambda: False, Bounds(100, 0.4), lost.set)
    asked.start()
    until(lambda: asked.trouble.said)
    assert asked.trouble.said.startswith("Spark's Java process has not answered for ")
    assert lost.wait(30)
    with pytest.raises(Exception, match="did not answer for"):
        sleeper.wait_ready()


def test_one_that_goes_on_is_well_again(sleeper: Jvm) -> None:
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    asked = Probe(sleeper, lambda: False, Bounds(100, 100), lambda: None)
    asked.start()
    until(lambda: asked.trouble.silent_s > 0.04)
    os.kill(sleeper.process.pid, signal.SIGCONT)
    until(lambda: "has not answered" not in asked.trouble.said)
    asked.close()


def test_a_jvm_that_is_gone_is_nobody_to_accuse(sleeper: Jvm) -> None:
    sleeper.kill()
    lost = threading.Event()
    asked = Probe(sleeper, lambda: True, Bounds(5, 0.1), lost.set)
    asked.start()
    assert not lost.wait(0.5)


def test_what_a_jvm_writes_of_its_port_is_where_it_is_asked(sleeper: Jvm, tmp_path: Path) -> None:
    told = SECRET.encode()
    (tmp_path / "connection").write_bytes(struct.pack(">ii", 4711, len(told)) + told)
    assert sleeper.wait_ready() == sleeper.address == (4711, SECRET)
