"""Pages written from declarations are up to date, and links lead somewhere."""

import re
from pathlib import Path

import pytest

from holdfast.cli.docs import pages
from holdfast.connect.options import describe
from holdfast.connect.registry import Registry
from holdfast.model.job import Role

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "connectors"
WRITTEN = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load()


def test_connector_pages_are_what_the_declarations_say(registry: Registry) -> None:
    made = pages(registry)
    assert {p.name for p in FOLDER.glob("*.md")} == set(made), "run `make docs`"
    stale = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    assert not stale, "run `make docs`"


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
    links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text())
    assert links
    assert not [link for link in links if not (page.parent / link).exists()]
