"""One process of the cluster: started, killed, stopped, started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class Process:
    """A master or a worker.  Its whole process group goes with it: a worker's JVM and Pythons."""

    def __init__(self, name: str, verb: str, environ: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.starts = 0
        self._command = [sys.executable, "-m", "holdfast", verb]
        self._environ = {**os.environ, **environ}
        self._log = folder / f"{name}.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._began = 0

    @property
    def alive(self) -> bool:
        """Whether it runs, or stands still."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start it, unless it is alive."""
        if self.alive:
            return
        self.kill()
        self.starts += 1
        with self._log.open("ab") as log:
            self._began = log.tell()
            self._child = subprocess.Popen(
                self._command, env=self._environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill -9 it and everything it has started.  Repeatable."""
        self._signal(signal.SIGKILL)
        if self._child:
            self._child.wait()

    def stop(self) -> None:
        """Let it stand still, with everything it has started."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def said(self, text: str) -> bool:
        """Say whether it has logged something since it was started."""
        return text.encode() in self._log.read_bytes()[self._began :]

    def tail(self) -> str:
        """Return the end of what it said."""
        return self._log.read_text(errors="replace")[-3_000:] if self._log.exists() else ""

    def _signal(self, which: int) -> None:
        if self._child:
            try:
                # The group outlives a leader that has killed itself.
                os.killpg(self._child.pid, which)
            except ProcessLookupError:
                return
