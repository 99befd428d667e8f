"""The commands of the README and of the quick start, typed as they are printed.

What installs is typed by `make newcomer`, and checked in `test_install.py`.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import holdfast
from tests.conformance.servers import free_ports
from tests.typed import ROOT, Shell, blocks

Opened = Callable[..., Shell]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Opened]:
    """Open a shell in an empty home, with `holdfast` on the path."""
    opened: list[Shell] = []

    def begin(**environ: str) -> Shell:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        given = {**os.environ, "HOME": str(tmp_path), "PATH": path, "HOLDFAST_AOT": "off"}
        given.pop("HOLDFAST_HOME", None)
        opened.append(Shell(tmp_path, {**given, **environ}))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


@pytest.mark.spark
def test_every_block_of_the_quick_start_works_in_turn(shell: Opened, tmp_path: Path) -> None:
    install, *rest = blocks("docs/quick-start.md")
    assert ".[all]" in install.text
    typing = shell()
    said = [typing.type(block.text) for block in rest]
    first = next(s for s in said if "wrote 3, rejected 0." in s)
    assert "Next:" in first
    shown = re.search(
        r"what to try next:\n```\n(.*?)```", (ROOT / "docs/quick-start.md").read_text(), re.S
    )
    assert shown
    told = re.sub(r"after \d+ s", "after 2 s", first).replace(str(tmp_path), "/your/folder")
    assert shown[1] in told
    rows = pq.read_table(tmp_path / "out/people").sort_by("id").to_pylist()
    assert [r["name"] for r in rows] == ["Ann", 'Bo "the boat" Smith', "Cy\n(on two lines)"]
    assert rows[0]["city"] == "BERLIN"
    # What does not fit is named by file, line and value, and nothing of it shows.
    assert "people.csv" in said[-1] and "four" in said[-1] and "it said why" in said[-1]


@pytest.mark.spark
def test_every_block_of_the_readme_works_in_turn(shell: Opened, tmp_path: Path) -> None:
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    typing = shell(HOLDFAST_LISTEN=url.removeprefix("http://"), HOLDFAST_MASTERS=url)
    install, *rest = [b for b in blocks("README.md") if not b.kind]
    assert ".[all]" in install.text
    for block in rest:
        said = typing.type(block.text)
        if "holdfast worker" in block.text:
            wait_for_rows(url, tmp_path)
        if "holdfast run" in block.text:
            assert "read 2 rows, wrote 2, rejected 0." in said
    assert pq.read_table(tmp_path / "first/out/people").num_rows == 4  # run, and run by -c
    stream = (tmp_path / "first/out/stream").glob("*.json")
    lines = [line for file in stream for line in file.read_text().splitlines()]
    assert len(lines) == 2, lines  # through a savepoint and a restore, once
    assert "Job people is CANCELED" in typing.said and "continues" in typing.said


def wait_for_rows(url: str, home: Path) -> None:
    token = (home / ".holdfast/cluster/token").read_text().strip()
    client = holdfast.Client(url, token)
    until_s = time.monotonic() + 240
    while client.job("people").written < 2:
        assert time.monotonic() < until_s, client.explain("people")
        time.sleep(0.2)
    client.close()


def test_the_mistakes_of_the_readme_are_those_that_are_found(
    holdfast: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    text = (ROOT / "README.md").read_text()
    job = re.search(r"cat > job\.conf <<'EOF'\n(.*?)EOF", text, re.DOTALL)
    assert job
    wrong = job[1].replace("file_format_type = csv", "file_format_typ = csv")
    (tmp_path / "job.conf").write_text(wrong.replace("id = bigint", "id = bigit"))
    shown = re.search(r"come in one go:\n```\n(.*?)```", text, re.DOTALL)
    assert shown
    assert shown[1] in holdfast("check", "job.conf").stderr


def long_lines() -> list[str]:
    found = [b for b in blocks("README.md") if b.kind == "long"]
    return [line.partition("#")[0].strip() for b in found for line in b.text.splitlines()]


@pytest.mark.parametrize("line", long_lines())
def test_the_long_verbs_of_the_readme_take_what_is_given(line: str) -> None:
    verb, *given = line.removeprefix("make ").split()
    made = dry(verb, *given)
    for name, _, value in (word.partition("=") for word in given):
        others = [word for word in given if not word.startswith(f"{name}=")]
        assert value in made or made != dry(verb, *others), f"{verb} knows no {name}"


def dry(*given: str) -> str:
    """What `make` would run."""
    ran = subprocess.run(["make", "-n", *given], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
