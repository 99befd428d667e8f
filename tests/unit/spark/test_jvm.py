"""How the JVM is started and ended, with shell scripts in the place of Java."""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import Unavailable, UserError
from holdfast.spark.java import Java
from holdfast.spark.jvm import CONNECTION, Command, Jvm, module_flags, spark_jars, start

Script = Callable[[str], Command]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Make a Java that runs a shell script."""

    def make(text: str) -> Command:
        program = tmp_path / "bin" / "java"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return Command(Java(tmp_path, "25.0.2"), ["a.jar", "b.jar"], ["-Xmx1g"])

    return make


def launch(command: Command, folder: Path) -> Jvm:
    return start(command, os.environ, folder, folder / "logs" / "spark.log")


def has_ended(pid: int, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_command_line(script: Script) -> None:
    command = script("")
    words = command.words()
    assert words[0] == str(command.java.executable)
    assert words[-4:] == [
        "-Xmx1g",
        "-cp",
        "a.jar:b.jar",
        "org.apache.spark.api.python.PythonGatewayServer",
    ]
    assert not [word for word in words if "incubator" in word]


def test_only_an_old_java_opens_what_a_new_one_lacks() -> None:
    gone = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    assert gone in module_flags(17) and gone not in module_flags(25)


def test_sparks_jars_come_in_one_order() -> None:
    jars = spark_jars()
    assert jars == sorted(jars) and any("spark-core_" in jar for jar in jars)


def test_the_port_and_the_secret_arrive_in_a_file(script: Script, tmp_path: Path) -> None:
    told = struct.pack(">ii", 4711, 3) + b"abc"
    (tmp_path / "told").write_bytes(told)
    jvm = launch(script(f'sleep 0.1; cp {tmp_path}/told x; mv x "${CONNECTION}"; cat'), tmp_path)
    assert jvm.wait_ready() == (4711, "abc")
    jvm.close(5)
    assert not jvm.is_alive


def test_a_jvm_that_dies_says_why(script: Script, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    log.parent.mkdir()
    log.write_text("from an earlier run\n")
    jvm = launch(script("echo no such flag >&2; exit 3"), tmp_path)
    with pytest.raises(Unavailable) as caught:
        jvm.wait_ready()
    assert str(caught.value) == (
        f"Spark's Java process ended with code 3. Its log is {log}."
        " The log ends with:\nno such flag"
    )
    jvm.kill()


def test_a_jvm_out_of_memory_is_told_apart(script: Script, tmp_path: Path) -> None:
    jvm = launch(script("echo java.lang.OutOfMemoryError: Java heap space; exit 52"), tmp_path)
    assert "set spark.driver.memory" in str(jvm.loss())
    jvm.kill()


def test_a_java_that_cannot_run_is_the_users_to_mend(script: Script, tmp_path: Path) -> None:
    command = script("")
    command.java.executable.chmod(0o644)
    with pytest.raises(UserError, match="cannot be started: Permission denied"):
        launch(command, tmp_path)


def test_kill_ends_what_the_jvm_started(script: Script, tmp_path: Path) -> None:
    # The child ignores every polite word, as a hung Python worker would.
    child = "sh -c 'trap \"\" HUP TERM; echo $$ >pid.new; mv pid.new pid; sleep 60; sleep 60'"
    jvm = launch(script(f"cd {tmp_path}; {child} & sleep 60"), tmp_path)
    while not (tmp_path / "pid").exists():
        time.sleep(0.02)
    jvm.kill()
    assert not jvm.is_alive
    assert has_ended(int((tmp_path / "pid").read_text()), 1)
    jvm.kill()


def test_ctrl_c_is_not_for_the_jvm(script: Script, tmp_path: Path) -> None:
    jvm = launch(script("cat"), tmp_path)
    time.sleep(0.1)
    jvm.process.send_signal(signal.SIGINT)
    assert not has_ended(jvm.process.pid, 0.2)
    jvm.kill()


def test_a_jvm_outlives_the_thread_that_asked_for_it(script: Script, tmp_path: Path) -> None:
    command, started = script("sleep 60"), list[Jvm]()
    thread = threading.Thread(target=lambda: started.append(launch(command, tmp_path)))
    thread.start()
    thread.join()
    assert not has_ended(started[0].process.pid, 0.3)
    started[0].kill()
    assert not started[0].is_alive


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_a_killed_python_takes_the_jvm_along(script: Script, tmp_path: Path) -> None:
    command = script("sleep 60; sleep 60")
    program = f"""
import os, time
from pathlib import Path
from holdfast.spark.java import Java
from holdfast.spark.jvm import Command, start
here = Path({str(tmp_path)!r})
jvm = start(Command(Java(here, "25"), [], []), os.environ, here, here / "log")
if os.fork() == 0:
    time.sleep(5)  # a forked child keeps the pipe to the JVM open
else:
    print(jvm.process.pid, flush=True)
    time.sleep(60)
"""
    assert command.java.executable.exists()
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as python:
        assert python.stdout is not None
        jvm = int(python.stdout.readline())
        python.kill()
        assert has_ended(jvm, 2)
