"""What a worker uses is its own and that of every process it started."""

import os
from pathlib import Path

import pytest

from holdfast.worker import agent
from holdfast.worker.agent import LoadMeter

PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Machine:
    """A folder that looks like /proc, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_s = 100.0
        (folder / "meminfo").write_text("MemTotal:       2048 kB\nMemFree: 1 kB\n")

    def process(self, number: int, cpu_s: float, pages: int, children: str = "") -> None:
        here = self.folder / str(number)
        (here / "task" / str(number)).mkdir(parents=True, exist_ok=True)
        (here / "task" / str(number) / "children").write_text(children)
        fields = ["S", *["0"] * 10, str(int(cpu_s * TICKS)), "0", *["0"] * 10]
        (here / "stat").write_text(f"{number} (a ) name) {' '.join(fields)}")
        (here / "statm").write_text(f"999 {pages} 0 0 0 0 0")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr(agent.time, "monotonic", lambda: made.now_s)
    return made


def test_a_worker_and_its_children_are_counted_together(machine: Machine) -> None:
    own = os.getpid()
    meter = LoadMeter(machine.folder, machine.folder / "no limit")
    machine.process(own, 10.0, 100, "7001 7002")
    machine.process(7001, 50.0, 1000)
    assert meter.read() is None, "there is nothing to compare with yet"
    machine.now_s += 10
    machine.process(own, 11.0, 100, "7001 7002")
    machine.process(7001, 64.0, 1000)
    found = meter.read()
    assert found and (found.cpu, found.memory) == (1.5, 1100 * PAGE), "7002 has ended meanwhile"
    assert found.cores == os.cpu_count() and found.memory_total == 2048 * 1024
    machine.now_s += 1
    machine.process(own, 99.0, 1)
    assert meter.read() is found, "it is not measured at every beat"


def test_a_container_has_no_more_memory_than_it_may_use(machine: Machine) -> None:
    limit = machine.folder / "memory.max"
    for text, total in (("1000000\n", 1_000_000), ("max\n", 2048 * 1024)):
        limit.write_text(text)
        meter = LoadMeter(machine.folder, limit)
        machine.process(os.getpid(), 1.0, 1)
        meter.read()
        machine.now_s += 10
        found = meter.read()
        assert found and found.memory_total == total


def test_without_proc_nobody_can_say(tmp_path: Path, machine: Machine) -> None:
    meter = LoadMeter(tmp_path / "none", tmp_path / "none")
    meter.read()
    machine.now_s += 10
    assert meter.read() is None
