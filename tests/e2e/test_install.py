"""Holdfast is installed from its wheel, past a proxy with its own certificate, and uninstalled.

Its dependencies are not fetched here: `make newcomer` does that.  A wheel of ours is enough to see
that what docs/install.md says of proxies and certificates is what pip and uv go by.
"""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import holdfast
from tests.proxied import company
from tests.typed import ROOT, Shell, blocks

TOML = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLEAN = {
    "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "PIP_NO_DEPS": "1",
    "PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "HOLDFAST_AOT": "off",
}  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `python -m build` makes; uv has the same builder in itself."""
    folder = tmp_path_factory.mktemp("dist")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "build", "--quiet", "--wheel", "--offline", "--out-dir", folder, ROOT], check=True
    )
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_has_all_that_runs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    kept = (p for p in (ROOT / "holdfast").rglob("*") if "__pycache__" not in p.parts)
    assert {str(p.relative_to(ROOT)) for p in kept if p.is_file()} <= names
    about = f"holdfast-{holdfast.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"holdfast", about}


def test_one_extra_brings_all_others() -> None:
    extras = TOML["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(extras) - {"all"}
    for page in ("README.md", "docs/quick-start.md", "docs/install.md"):
        assert '".[all]"' in blocks(page)[0].text
        assert set(re.findall(r"`\[(\w+)\]`", (ROOT / page).read_text())) <= set(extras)


def test_it_is_installed_past_a_proxy_with_its_own_certificate_and_uninstalled(
    wheel: Path, tmp_path: Path
) -> None:
    (told,) = [b.text for b in blocks("docs/install.md") if b.kind == "proxy"]
    with company(tmp_path, wheel.parent) as corp:
        typed = told.replace("http://proxy.example.com:3128", corp.proxy)
        typed = typed.replace("/etc/ssl/corporate.pem", str(corp.authority))
        assert typed.count(str(corp.authority)) == 2 and corp.proxy in typed
        home = {**CLEAN, "HOME": str(tmp_path), "PIP_INDEX_URL": corp.index}
        shell = Shell(tmp_path, home)
        try:
            # Without the certificate pip says what the page says it says.
            blind = re.sub(r"PIP_CERT=\S+ SSL_CERT_FILE=\S+", "PIP_RETRIES=0", typed)
            with pytest.raises(AssertionError, match="CERTIFICATE_VERIFY_FAILED"):
                shell.type(blind)
            shell.type("unset PIP_RETRIES")
            shell.type(typed)
        finally:
            shell.close()
        assert corp.asked and set(corp.asked) == {"packages.corp.test:443"}
        # `make setup` has uv fetch what is locked; it goes by the same variables.
        environ = {**home, "HTTPS_PROXY": corp.proxy, "SSL_CERT_FILE": str(corp.authority)}
        fetch_by_uv(environ | {"UV_INDEX_URL": corp.index}, tmp_path / "by-uv")

    bin = tmp_path / ".holdfast-env/bin"
    lend_libraries(tmp_path / ".holdfast-env")
    said = subprocess.run([bin / "holdfast", "--version"], capture_output=True, text=True, env=home)
    assert said.stdout == f"holdfast {holdfast.__version__}\n", said.stderr

    gone = blocks("docs/install.md")[-1].text
    assert "rm -rf ~/.holdfast-env ~/.holdfast" in gone
    subprocess.run(["bash", "-euc", gone], env=home, check=True)
    left = {p.name for p in tmp_path.iterdir() if "holdfast" in p.name}
    assert not left


def fetch_by_uv(environ: dict[str, str], folder: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    ran = subprocess.run(
        [uv, "pip", "install", "--no-cache", "--no-deps", "--target", folder, "holdfast"],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert (folder / "holdfast/cli/main.py").exists()


def lend_libraries(venv: Path) -> None:
    """Let the fresh environment have the libraries of this one: they were not fetched."""
    (theirs,) = venv.glob("lib/python*/site-packages")
    ours = Path(pytest.__file__).parents[1]
    (theirs / "lent.pth").write_text(f"{ours}\n")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_shell_learns_the_verbs(name: str, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("holdfast")
    typing = {
        "HOME": str(tmp_path), "_HOLDFAST_COMPLETE": f"complete_{name}",
        "COMP_WORDS": "holdfast sav", "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "holdfast sav", "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    ran = subprocess.run(
        [command], env={**os.environ, **typing}, capture_output=True, text=True, check=False
    )
    assert "savepoint" in ran.stdout and "explain" not in ran.stdout, ran.stderr
