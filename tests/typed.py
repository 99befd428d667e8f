"""Type what a page prints: its command blocks, in one shell, as a person at a terminal would.

A block marked `sh` is typed as it stands.  `sh yours` has values that are the reader's own,
`sh proxy` needs a proxy, `sh long` takes minutes to hours: whoever types a page says what of these.
"""

import os
import queue
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ERRED = "<<failed: "
END_S = 60.0


@dataclass(frozen=True)
class Block:
    """A command block of a page.  `kind` is what stands behind `sh`; "" of most."""

    page: str
    kind: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the command blocks of a page."""
    found = re.findall(r"^```sh *(\w*)\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.M)
    assert found, f"{page} has no command block"
    return [Block(page, kind, text) for kind, text in found]


class Shell:
    """A bash that is typed into; what it and its background processes say comes back."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.said = ""
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=dict(environ), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, bufsize=1,
        )  # fmt: skip
        self._scripts = folder / f".typed-{secrets.token_hex(3)}"
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self._write(f"set -E; trap 'echo \"{ERRED}$BASH_COMMAND\"' ERR")

    def type(self, text: str, patience_s: float = 300.0) -> str:
        """Type a block, wait until the prompt is back, and return what was said meanwhile."""
        mark = f"<<typed {secrets.token_hex(6)}>>"
        self._scripts.write_text(text)
        # From a file, so that no command can take the next ones for its input.
        self._write(f". {self._scripts} < /dev/null\necho '{mark}'")
        said, until_s = "", time.monotonic() + patience_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"no prompt after {patience_s} s of:\n{text}\n{said}"
                ) from None
            assert line is not None, f"the shell ended in:\n{text}\n{said}"
            if mark in line:
                break
            said += line
        self.said += said
        assert ERRED not in said, f"in:\n{text}\n{said}"
        return said

    def close(self) -> None:
        """End the shell and whatever still runs in its background."""
        group = self._bash.pid
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(group, number)
                self._gone(group)
                break
            except ProcessLookupError:
                break
            except TimeoutError:
                continue
        self._reading.join(END_S)
        for pipe in (self._bash.stdin, self._bash.stdout):
            assert pipe
            pipe.close()

    def _gone(self, group: int) -> None:
        until_s = time.monotonic() + END_S
        while time.monotonic() < until_s:
            self._bash.poll()
            os.killpg(group, 0)
            time.sleep(0.1)
        raise TimeoutError

    def _write(self, line: str) -> None:
        assert self._bash.stdin
        self._bash.stdin.write(line + "\n")
        self._bash.stdin.flush()

    def _read(self) -> None:
        assert self._bash.stdout
        for line in self._bash.stdout:
            self._lines.put(line)
        self._lines.put(None)
