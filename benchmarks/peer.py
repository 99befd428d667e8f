"""Peers from PyPI: each in an environment of its own, never in ours.

What an environment holds is pinned in `peers/NAME.txt`, with everything that comes along.  It is
made on first use, and anew when the pins have changed.
"""

import shutil
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).with_name("peers")
MADE = Path(__file__).with_name(".peers")
NAMES = ("dlt", "pyflink")


def python_of(name: str) -> Path:
    """Return the Python that has a peer installed; the first time, this downloads the peer."""
    pins, home = PINS / f"{name}.txt", MADE / name
    installed = home / "pins.txt"
    python = home / "bin" / "python"
    wanted = pins.read_text()
    if installed.exists() and installed.read_text() == wanted:
        return python
    print(f"Making an environment for {name} ...", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python), "-r", str(pins)]
    subprocess.run(install, check=True)
    # Last, so that an environment that was not finished is made anew.
    installed.write_text(wanted)
    return python
