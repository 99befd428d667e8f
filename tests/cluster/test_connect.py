"""`check --connect` on a cluster: a worker opens what a job names, and its answer is told here."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from holdfast.client import Client
from holdfast.errors import UserError
from tests.cluster.processes import TOKEN, Cluster

pytestmark = pytest.mark.spark

PLUGIN = """
import os, time
from holdfast.connect.options import options
from holdfast.connect.sink import Sink
from holdfast.model.job import Guarantee

@options
class Then:
    #: What becomes of whoever looks.
    then: str = "ends"

class Told(Sink[Then]):
    '''A sink that says who has looked at it, and for which tables.'''
    name = "Told"
    guarantee = Guarantee.AT_LEAST_ONCE

    def look(self, tables, spark):
        paths = ", ".join(str(t.path) for t in tables)
        yield f"Told is seen from {os.environ['HOLDFAST_NAME']} with {paths}"
        if self.options.then == "hangs":
            time.sleep(3600)
        if self.options.then == "breaks":
            raise ZeroDivisionError("a bug of a plug-in")
"""

FAKE = "FakeSource { plugin_output = a, row.num = 3, schema { table = t, fields { id = int } } }"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("connect")
    started = Cluster(folder, masters=2)
    (folder / "told.py").write_text(PLUGIN)
    started.environ["HOLDFAST_PLUGINS"] = str(folder / "told.py")
    started.master()
    started.master(2)
    started.until("a leader", lambda: "leads" in "".join(started.client.masters().values()))
    yield started
    started.end()


def job(folder: Path, sinks: str, source: str = FAKE, env: str = "") -> str:
    file = folder / "job.conf"
    file.write_text(
        f"env {{ job.mode = BATCH\n{env} }}\nsource {{ {source} }}\nsink {{ {sinks} }}\n"
    )
    return str(file)


def test_1_without_a_worker_nobody_can_look(cluster: Cluster, tmp_path: Path) -> None:
    file = job(tmp_path, "Console {}")
    said = cluster.ask("check", "--connect", file)
    assert said.returncode == 1
    assert "no worker is connected. Start one (holdfast worker)" in said.stderr
    assert cluster.ask("check", file).returncode == 0, "a plain check asks no cluster"
    for flags in (["--masters", cluster.urls[0]], ["--connect", "--plugin", "told.py"]):
        assert cluster.ask("check", *flags, file).returncode == 2, flags


def test_2_a_worker_looks_and_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker(HOLDFAST_TAGS=json.dumps({"zone": "a"}))
    cluster.until("the worker", lambda: cluster.client.cluster().workers)
    out, lake = tmp_path / "out", tmp_path / "lake"
    sinks = f'LocalFile {{ path = "{out}", file_format_type = csv }} Delta {{ path = "{lake}" }}'
    fine = cluster.ask(
        "check", "--connect", job(tmp_path, sinks.replace("{ p", "{ plugin_input = a, p"))
    )
    assert fine.returncode == 0, fine.stderr + cluster.said()
    assert "no mistakes found; worker W1 can open all that it names" in fine.stderr
    assert not out.exists() and not lake.exists()


def test_3_all_problems_are_told_at_once_as_the_worker_sees_them(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    source = (
        f'{FAKE} LocalFile {{ plugin_output = b, path = "{tmp_path}/no", file_format_type = text }}'
    )
    server = 'url = "jdbc:postgresql://127.0.0.1:1/x", user = u, password = hushhush, table = t'
    sinks = f"""
        Told {{ plugin_input = a }}
        Jdbc {{ plugin_input = a, {server} }}
        LocalFile {{ plugin_input = b, path = "{tmp_path}/file/x", file_format_type = text }}
    """
    said = cluster.ask("check", "--connect", job(tmp_path, sinks, source))
    assert said.returncode == 1
    assert "as worker W1 sees it" in said.stderr
    assert "Told is seen from W1 with t" in said.stderr
    assert "Check host and port in url" in said.stderr
    assert f"LocalFile cannot read {tmp_path}/no" in said.stderr
    assert f"{tmp_path}/file is a file" in said.stderr
    assert "4 mistakes; nothing was run." in said.stderr, said.stderr
    assert "hushhush" not in said.stderr + said.stdout


def test_4_only_a_worker_with_the_tags_looks(cluster: Cluster, tmp_path: Path) -> None:
    given = 'tag_filter { zone = "b" }'
    said = cluster.ask("check", "--connect", job(tmp_path, "Console {}", env=given))
    assert said.returncode == 1
    assert "tag_filter asks for zone = b, which none of the workers has: W1" in said.stderr


def test_5_what_hangs_is_named_when_the_time_is_over(cluster: Cluster, tmp_path: Path) -> None:
    begun_s = time.monotonic()
    said = cluster.ask(
        "check", "--connect", "--timeout", "4", job(tmp_path, "Told { then = hangs }")
    )
    assert said.returncode == 1
    assert "Told is seen from W1" in said.stderr, "what was found by then is told"
    assert "did not end within 4 s. It was at Sink[0]-Told" in said.stderr
    assert time.monotonic() - begun_s < 60


def test_6_a_bug_of_a_connector_is_told(cluster: Cluster, tmp_path: Path) -> None:
    said = cluster.ask("check", "--connect", job(tmp_path, "Told { then = breaks }"))
    assert said.returncode == 1
    assert "ZeroDivisionError" in said.stderr and "worker's log" in said.stderr


def test_7_any_master_answers_rest_and_viewers_may_not_ask(
    cluster: Cluster, tmp_path: Path
) -> None:
    text = Path(job(tmp_path, "Told {}")).read_text()
    for url in cluster.urls:
        asked = {"Authorization": f"Bearer {TOKEN}"}
        answer = httpx2.post(
            f"{url}/api/check/connect", json={"text": text}, headers=asked, timeout=60
        ).json()
        assert answer["done"] and not answer["ok"] and answer["worker"] == "W1"
        assert [m["line"] for m in answer["mistakes"]] == [4]
    viewer = Client(cluster.urls, cluster.client.give_token("eve", "viewer").token, 20.0)
    with pytest.raises(UserError, match="operate"):
        viewer.check_connect("{}")
    viewer.close()
    wrong = httpx2.post(
        f"{cluster.urls[0]}/api/check/connect", json={"text": text.replace("Told", "Untold")},
        headers=asked, timeout=60,
    ).json()  # fmt: skip
    assert (wrong["done"], wrong["ok"], wrong["worker"]) == (True, False, "")
    assert "Untold" in wrong["mistakes"][0]["message"]
    proc = 'LocalFile { path = "/proc/1", file_format_type = text }'
    said = cluster.ask("check", "--connect", job(tmp_path, "Console {}", proc))
    assert "is among the machine's own files" in said.stderr and "the master sees" in said.stderr


def test_8_a_worker_that_dies_in_the_middle_is_told(cluster: Cluster, tmp_path: Path) -> None:
    file = job(tmp_path, "Told { then = hangs }")
    audits = cluster.folder / "logs"

    def looks() -> int:
        return sum(p.read_text().count("looks at places") for p in audits.glob("audit-*.log"))

    before = looks()
    assert before, "every look is in the audit log"
    asking = cluster.begin("check", "--connect", file)
    cluster.until("the look", lambda: looks() > before)
    os.kill(cluster.processes["W1"].pid, signal.SIGKILL)
    _, said = asking.communicate(timeout=60)
    assert asking.returncode == 1
    assert "worker W1 could not look at everything: it was lost in the middle" in said
