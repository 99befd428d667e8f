"""A newcomer types what README, quick start and the first pages say, in an empty environment.

`make newcomer` runs it: a copy of the sources, a home with nothing in it, no variable of this
shell's but how this machine reaches its package index.  What was typed and said, and a picture of
the page, are left in build/newcomer.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conformance.servers import Postgres, free_ports
from tests.typed import ROOT, Shell, blocks

pytestmark = [pytest.mark.newcomer, pytest.mark.timeout(3600)]

OUT = ROOT / "build" / "newcomer"
REACHES = ("PIP_", "UV_", "SSL_CERT", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""How this machine reaches its package index: what docs/install.md has people set."""
SLOW_S = 1800.0


class Newcomer:
    """A person with a checkout and an empty home, at a terminal."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.checkout = home / "holdfast"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        for name in listed:
            with suppress(FileNotFoundError):  # deleted, and not committed yet
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.checkout / name)
        reaches = {k: v for k, v in os.environ.items() if k.upper().startswith(REACHES)}
        # The one thing that is not as printed: another port, for other clusters on this machine.
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.environ = {
            "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
            "HOLDFAST_LISTEN": f"127.0.0.1:{port}", "HOLDFAST_MASTERS": self.url, **reaches,
        }  # fmt: skip
        self.shell = Shell(home, self.environ)
        self.transcript = OUT / f"{home.name}.txt"
        self.type(f"cd {self.checkout}")

    def type(self, text: str) -> str:
        """Type a block, and keep what was typed and said."""
        with self.transcript.open("a") as kept:
            kept.write("".join(f"$ {line}\n" for line in text.splitlines()))
            kept.flush()
            said = self.shell.type(text, SLOW_S)
            kept.write(said)
        return said

    def close(self) -> None:
        """Leave, and end what still runs."""
        self.shell.close()


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with closing(Newcomer(tmp_path_factory.mktemp("newcomer"))) as person:
        yield person


def test_the_readme_up_to_a_stream_that_is_seen_in_the_pages(newcomer: Newcomer) -> None:
    rest = [block.text for block in blocks("README.md") if not block.kind]
    while rest and "holdfast worker" not in rest[0]:
        newcomer.type(rest.pop(0))
    assert pq.read_table(newcomer.home / "first/out/people").num_rows == 4
    newcomer.type(rest.pop(0))  # the cluster, with the stream
    see_the_stream(newcomer)
    for text in rest:
        newcomer.type(text)
    stream = (newcomer.home / "first/out/stream").glob("*.json")
    lines = [line for file in stream for line in file.read_text().splitlines()]
    assert len(lines) == 3, lines


def see_the_stream(newcomer: Newcomer) -> None:
    """Sign in with the token that the README names, see the job run and rows come."""
    from playwright.sync_api import expect

    from tests.ui.browser import chromium, shot, visiting

    token = (newcomer.home / ".holdfast/cluster/token").read_text().strip()
    two, three = (re.compile(rf"^\s*{count}\b") for count in (2, 3))
    with chromium() as browser, visiting(browser, newcomer.url) as visit:
        visit.sign_in(token)
        visit.page.get_by_role("link", name="Jobs").first.click()
        visit.page.get_by_role("link", name="people").first.click()
        page = visit.page
        expect(page.get_by_test_id("explain")).to_contain_text("It runs.", timeout=300_000)
        expect(page.get_by_test_id("committed")).to_contain_text(two, timeout=300_000)
        places = page.get_by_test_id("places")
        expect(places).to_contain_text(str(newcomer.home / "first/out/stream"))
        # It is a stream: a file that comes now is in the page soon.
        newcomer.type("printf 'id,name,city\\n3,Cy,Lima\\n' > ~/first/in/more.csv")
        expect(page.get_by_test_id("committed")).to_contain_text(three, timeout=300_000)
        shot(visit, OUT / "stream.png")
        assert visit.complaints == []


def test_the_quick_start(newcomer: Newcomer) -> None:
    install, *rest = blocks("docs/quick-start.md")
    newcomer.type(f"cd {newcomer.checkout}\n{install.text}")
    newcomer.type("mkdir -p ~/quick && cd ~/quick")
    for block in rest:
        newcomer.type(block.text)
    assert pq.read_table(newcomer.home / "quick/out/people").num_rows == 3


def test_bad_data(newcomer: Newcomer) -> None:
    newcomer.type("mkdir -p ~/bad && cd ~/bad")
    strict, lenient = (newcomer.type(block.text) for block in blocks("docs/bad-data.md"))
    page = (ROOT / "docs/bad-data.md").read_text()
    shown = re.search(r"what to set:\n```\n(.*)\n```", page)
    assert shown and shown[1] in strict and "nothing of it is visible" in strict
    assert "read 4 rows, wrote 1, rejected 3." in lenient and "wrote 1, rejected 3." in page


def test_csv_to_a_lake_and_a_database(newcomer: Newcomer) -> None:
    import psycopg

    newcomer.type("mkdir -p ~/lake && cd ~/lake")
    server = Postgres()
    server.start()
    try:
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE shop")
        place = f"127.0.0.1:{server.port}/shop"
        for block in blocks("docs/csv-lake-database.md"):
            if block.kind == "yours":
                newcomer.type(
                    f"export DB_URL=jdbc:postgresql://{place} DB_USER=postgres DB_PASSWORD=none"
                )
            else:
                newcomer.type(block.text)
        with psycopg.connect(f"postgres://postgres@{place}") as shop:
            found = shop.execute("SELECT id, name, city FROM people ORDER BY id").fetchall()
            both = shop.execute("SELECT count(*) FROM both_people").fetchone()
        assert found == [(1, "Ann", "Berlin"), (2, "Bo", "Bergen"), (3, "Cy", "Lima")]
        assert both == (2,)
    finally:
        server.remove()


def test_install_make_demo_and_uninstall(newcomer: Newcomer) -> None:
    newcomer.type(f"cd {newcomer.checkout}")
    *rest, gone = [block for block in blocks("docs/install.md") if not block.kind]
    for block in rest:
        newcomer.type(block.text)
    assert "people" in newcomer.type("cd ~/first && holdfast run job.conf")
    newcomer.type(f"cd {newcomer.checkout}")
    assert "holdfast" in (newcomer.home / ".bashrc").read_text()
    said = newcomer.type("make demo")
    assert "shop.orders" in said and "Next:" in said
    newcomer.type(gone.text)
    (also,) = re.findall(r"`(rm -rf ~/[^`]*)` empties it", (ROOT / "docs/install.md").read_text())
    newcomer.type(also)  # `make demo` ran
    mine = {"holdfast", "first", "quick", "bad", "lake"}  # the checkout, and what was written
    left = [p for p in newcomer.home.iterdir() if p.name not in mine]
    found = [f for p in left for f in (p, *p.rglob("*")) if "holdfast" in f.name]
    assert not found, found
