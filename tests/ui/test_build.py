"""The built assets are those of the sources, are small, and hold nothing that a policy forbids."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES, BUILT = ROOT / "ui", ROOT / "holdfast" / "ui"
NAMED = ("index.html", "package.json", "package-lock.json", "svelte.config.js", "vite.config.js")
GZIP_BYTES_MAX = 150_000
BUILD_S = 500


def source_files() -> list[Path]:
    folders = (SOURCES / "public", SOURCES / "src")
    inside = [f for folder in folders for f in folder.rglob("*") if f.is_file()]
    return [*(SOURCES / name for name in NAMED), *inside]


def fingerprint() -> str:
    """Return what vite.config.js writes beside the assets."""
    whole = hashlib.sha256()
    for name in sorted(str(f.relative_to(SOURCES)) for f in source_files()):
        digest = hashlib.sha256((SOURCES / name).read_bytes()).hexdigest()
        whole.update(f"{name}\n{digest}\n".encode())
    return whole.hexdigest()


def test_the_assets_were_built_from_these_sources() -> None:
    assert (BUILT / "SOURCES").read_text().strip() == fingerprint(), (
        "holdfast/ui is older than ui/. Run `make ui` and commit what it writes."
    )


def test_the_assets_are_small() -> None:
    sizes = {f.name: len(gzip.compress(f.read_bytes())) for f in BUILT.rglob("*") if f.is_file()}
    assert sum(sizes.values()) < GZIP_BYTES_MAX, sizes


def test_the_page_holds_no_inline_script_or_style() -> None:
    page = (BUILT / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert "<style" not in page
    assert re.findall(r"\s(?:on\w+|style)=", page) == []
    outside = [u for u in re.findall(r'(?:src|href)="([^"]+)"', page) if not u.startswith("./")]
    assert outside == [], "everything comes from the master itself"


@pytest.mark.ui
def test_a_new_build_is_the_same(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("THE UI WAS NOT REBUILT: npm is not installed here")
    copy, out = tmp_path / "ui", tmp_path / "built"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("node_modules"))
    # Not `npm ci`: it wants the compilers of all other platforms in the lock file too.
    asked = [npm, "install", "--no-save", "--ignore-scripts", "--prefer-offline", "--no-audit"]
    got = subprocess.run(asked, cwd=copy, capture_output=True, text=True, timeout=BUILD_S)
    if got.returncode and re.search(r"ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|network", got.stderr):
        pytest.skip(f"THE UI WAS NOT REBUILT: npm's registry is out of reach: {got.stderr[-300:]}")
    assert got.returncode == 0, got.stderr
    environ = {**os.environ, "HOLDFAST_UI_OUT": str(out)}
    made = subprocess.run(
        [npm, "run", "build"], cwd=copy, env=environ, capture_output=True, text=True,
        timeout=BUILD_S,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    assert contents(out) == contents(BUILT), "run `make ui` and commit what it writes"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
