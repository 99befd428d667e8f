"""Pages written from declarations are up to date, and links lead somewhere."""

import getpass
import inspect
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import holdfast
from benchmarks.catalogue import USUAL_MINUTES
from holdfast.cli.connectors import pages
from holdfast.cli.main import build
from holdfast.connect.options import describe
from holdfast.connect.registry import Registry
from holdfast.model.job import Role
from holdfast.process.run_result import RunResult, TableResult
from tools.reference import stale

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "connectors"
PAGES = sorted((ROOT / "docs").glob("*.md"))
WRITTEN = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *PAGES]
ORDER = (
    "install",
    "quick-start",
    "connectors/README",
    "from-seatunnel",
    "schedulers",
    "operations",
    "reliability",
    "machines",
)
"""What people want, in that order; how it is built comes last."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load()


def test_connector_pages_are_what_the_declarations_say(registry: Registry) -> None:
    made = pages(registry)
    assert {p.name for p in FOLDER.glob("*.md")} == set(made), "run `make docs`"
    stale = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    assert not stale, "run `make docs`"


def test_tables_of_paths_and_metrics_are_what_the_declarations_say() -> None:
    assert not stale(), "run `make docs`"


def test_every_option_has_a_sentence(registry: Registry) -> None:
    plugins = [p for role in Role for n in registry.names(role) if (p := registry.find(role, n))]
    bare = [
        f"{plugin.name}.{info.key}"
        for plugin in plugins
        if not plugin.refused
        for info in describe(plugin.options_class)
        if not info.doc.endswith(".")
    ]
    assert not bare


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", page.read_text())
    assert links or page.parent != ROOT
    for file, heading in links:
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not heading or heading in headings(target), f"{file}#{heading}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|md|yaml|toml|txt))`", text))
    missing = [n for n in named if not (ROOT / n).exists() and not (ROOT / "holdfast" / n).exists()]
    assert named and not missing


def test_metrics_that_are_named_are_there() -> None:
    known = (ROOT / "docs" / "metrics.md").read_text()
    for page in WRITTEN:
        named = re.findall(r"`(holdfast_(?:jobs?|workers?|slots|store|blob)_\w+)", page.read_text())
        assert not [name for name in named if f"`{name}`" not in known], page.name


def headings(page: Path) -> set[str]:
    """The names by which a page's headings and anchors are linked to."""
    text = page.read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)
    return {*plain, *re.findall(r'<a id="([^"]+)"', text)}


def test_the_readme_leads_to_every_page_in_the_order_people_want() -> None:
    last = (ROOT / "README.md").read_text().partition("## Read on")[2]
    places = [last.find(f"(docs/{name}.md)") for name in ORDER]
    assert -1 not in places and places == sorted(places)
    assert not [p.stem for p in PAGES if f"(docs/{p.name})" not in last]


def test_the_readme_itself_is_in_that_order() -> None:
    titles = re.findall(r"^## (.*)$", (ROOT / "README.md").read_text(), re.M)
    wanted = ["Install", "Your first job", "What it connects", "Coming from SeaTunnel", "A cluster",
              "Day by day", "Why you can believe it"]  # fmt: skip
    assert [t for t in titles if t in wanted] == wanted


def test_the_unit_for_systemd_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs/schedulers.md").read_text()
    (unit,) = re.findall(r"^```ini\n(.*?)^```", text, re.M | re.S)
    judge = shutil.which("systemd-analyze")
    if judge is None:
        pytest.skip("this system has no systemd-analyze")
    # Its paths are the reader's own; a program and a user of this machine stand in for them.
    unit = unit.replace("/opt/holdfast/bin/holdfast", sys.executable)
    unit = unit.replace("User=holdfast", f"User={getpass.getuser()}")
    file = tmp_path / "holdfast-master.service"
    file.write_text(unit)
    said = subprocess.run([judge, "verify", file], capture_output=True, text=True, check=False)
    ours = [line for line in said.stderr.splitlines() if file.name in line]
    assert not ours and said.returncode == 0, said.stderr


def test_the_call_from_airflow_is_one_that_the_command_line_takes() -> None:
    text = (ROOT / "docs/schedulers.md").read_text()
    (call,) = re.findall(r'bash_command="(.*)"', text)
    program, verb, *words = shlex.split(call.replace("{{ ds }}", "2026-01-31"))
    command = typer.main.get_command(build([verb])).commands[verb]  # type: ignore[attr-defined]
    taken = command.make_context(f"{program} {verb}", words).params
    assert taken["close_job"] and taken["quiet"] and taken["job_id"] == "load-2026-01-31"
    assert str(taken["file"]) == "/jobs/load.conf" and taken["variable"] == ["DAY=2026-01-31"]
    flags = set(re.findall(r"^\| `(--[a-z-]+|-\w)\b", text, re.M))
    known = {flag for option in command.params for flag in option.opts}
    assert flags and flags <= known


@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md"])
def test_whatever_is_a_command_is_typed_by_a_test(page: str) -> None:
    """Only blocks marked `sh` are typed; one that is not must hold none of our commands."""
    for kind, text in re.findall(
        r"^```([^\n]*)\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S
    ):
        if not kind.startswith("sh"):
            assert not re.search(r"^(holdfast|make|pip|python3?) ", text, re.M), text


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_every_verb_of_make_that_is_named_is_there(page: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.M))
    assert named <= verbs


def test_benchmarks_that_are_named_are_there() -> None:
    (line,) = re.findall(r"make bench ONLY=.*one question: (.*)", (ROOT / "README.md").read_text())
    assert set(line.split(", ")) == set(USUAL_MINUTES)


def test_connectors_and_transforms_are_all_named_where_people_look(registry: Registry) -> None:
    for role in Role:
        everything = set(registry.names(role))
        kept = {name for name in everything if not refused(registry, role, name)}
        assert row_of("README.md", role) == kept
        assert row_of("docs/from-seatunnel.md", role) == everything
    changes = (ROOT / "CHANGELOG.md").read_text()
    (told,) = re.findall(r"^- Transforms: (.*?)\.$", changes, re.M | re.S)
    kept = {n for n in registry.names(Role.TRANSFORM) if not refused(registry, Role.TRANSFORM, n)}
    assert set(re.split(r",\s+", told)) == kept


@pytest.mark.parametrize("call", [holdfast.run, holdfast.submit])
def test_the_page_on_python_names_every_argument_and_every_part_of_a_result(
    call: Callable[..., object],
) -> None:
    text = (ROOT / "docs/python.md").read_text()
    part = text.partition("## On a cluster")[0 if call is holdfast.run else 2]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", part, re.M))))
    assert named == set(inspect.signature(call).parameters) - {"file"}
    parts = {f.name for kind in (RunResult, TableResult) for f in fields(kind)}
    assert parts - {"name", "job_id", "table", "sink"} <= set(re.findall(r"`(\w+)`", text))


def row_of(page: str, role: Role) -> set[str]:
    """The connectors that a page's table names for a role."""
    (row,) = re.findall(rf"^\| {role.value}s \|(.*)\|$", (ROOT / page).read_text(), re.M)
    return set(re.findall(r"\b[A-Z]\w+", re.sub(r"\(.*?\)|:.*", "", row)))


def refused(registry: Registry, role: Role, name: str) -> bool:
    """Whether a name is known only to be refused with what to do instead."""
    kind = registry.find(role, name)
    return kind is None or bool(kind.refused)


@pytest.mark.parametrize("connector", ["LocalFile", "Jdbc", "Delta", "Iceberg", "Paimon"])
def test_connectors_that_convert_values_lead_to_the_rule(connector: str) -> None:
    assert "[Values](../values.md" in (FOLDER / f"{connector}.md").read_text()
