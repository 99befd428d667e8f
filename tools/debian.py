"""What tests need and PyPI does not have: files of Debian's packages, unpacked into a cache folder.

Nothing is installed.  Nobody needs to be root, unless the machine has no list of packages yet.
"""

import os
import shutil
import subprocess
from pathlib import Path

from holdfast.errors import UserError

DOWNLOAD_S = 300


class NoPackage(UserError):
    """A package could not be fetched; the message says why."""


def unpacked(name: str, *packages: str) -> Path:
    """Return a folder with the files of packages; the first time, this downloads them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "holdfast" / name
    if root.exists():
        return root
    fetched = root.with_name(f"{name}.{os.getpid()}")
    (fetched / "packages").mkdir(parents=True)
    try:
        _download(packages, fetched / "packages")
        for package in sorted((fetched / "packages").glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(fetched)], fetched)
        if not root.exists():  # else another run was faster
            fetched.rename(root)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)
    return root


def _download(packages: tuple[str, ...], folder: Path) -> None:
    download = ["apt-get", "download", *packages]
    try:
        _run(download, folder)
    except NoPackage:
        if os.geteuid() != 0:
            raise
        # A new machine has no list of packages, an old one names versions that are gone.
        _run(["apt-get", "update", "-q"], folder)
        _run(download, folder)


def _run(command: list[str], folder: Path) -> None:
    asked = " ".join(command)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPackage(f"{asked} failed: {error}") from error
    if done.returncode:
        raise NoPackage(f"{asked} failed: {done.stderr.strip()}")
