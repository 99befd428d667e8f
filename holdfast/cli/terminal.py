"""What people see: errors, the live progress line, and the closing statistics."""

import sys
import time
import traceback
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid

from holdfast.errors import HoldfastError, JobFileError, JobFileProblem
from holdfast.process.run_outcome import RunView

PLAIN_EVERY_S = 10.0
LIVE_EVERY_S = 0.5

screen = Console(stderr=True, highlight=False, soft_wrap=True)


def show_error(error: HoldfastError, *, debug: bool) -> None:
    """Print an error as a person should meet it; the traceback only on request."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
        return
    if isinstance(error, JobFileError):
        show_warnings(error.warnings)
        for mistake in error.mistakes:
            screen.print(f"[red]{_escape(str(mistake.place))}[/]: {_escape(mistake.message)}")
        count = len(error.mistakes)
        screen.print(f"{count} mistake{'s' if count > 1 else ''}; nothing was run.")
        return
    screen.print(f"[red]Error:[/] {_escape(str(error))}")
    for note in getattr(error, "__notes__", ()):
        screen.print(note, markup=False)


def show_warnings(warnings: Iterable[JobFileProblem]) -> None:
    """Print what the user should know though the job runs."""
    for warning in warnings:
        place, said = _escape(str(warning.place)), _escape(warning.message)
        screen.print(f"[yellow]{place}[/]: warning: {said}")


def statistics(
    started: datetime, ended: datetime, read: int, written: int, failed: int, rejected: int
) -> str:
    """Return the closing table in the form SeaTunnel's users know (and grep)."""
    line = "*" * 47
    rows = [
        ("Start Time", started.strftime("%Y-%m-%d %H:%M:%S")),
        ("End Time", ended.strftime("%Y-%m-%d %H:%M:%S")),
        ("Total Time(s)", str(int((ended - started).total_seconds()))),
        ("Total Read Count", str(read)),
        ("Total Write Count", str(written)),
        ("Total Failed Count", str(failed)),
        ("Total Rejected Count", str(rejected)),
    ]
    body = [f"{name:<26}: {value:>19}" for name, value in rows]
    return "\n".join(["", line, f"{'Job Statistic Information':^47}".rstrip(), line, *body, line])


class WatchedRun(Protocol):
    """A job that can be watched."""

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; say whether it has ended."""

    def view(self) -> RunView:
        """Return how far it has come."""


class Progress:
    """Rows, rows a second and bytes for each table, while a job runs.

    A live table on a terminal; a line every ten seconds where output goes to a file.
    """

    def __init__(self, run: WatchedRun, *, quiet: bool) -> None:
        self.run = run
        self.quiet = quiet
        self.started_s = time.monotonic()
        self.said_s = self.started_s
        self.live = Live(console=screen, transient=True, refresh_per_second=4)

    def __enter__(self) -> "Progress":
        if screen.is_terminal and not self.quiet:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live.is_started:
            self.live.stop()

    def wait(self) -> None:
        """Show progress until the job has ended."""
        while not self.run.wait(LIVE_EVERY_S):
            if self.quiet:
                continue
            if self.live.is_started:
                self.live.update(self._grid(self.run.view()))
            elif time.monotonic() - self.said_s >= PLAIN_EVERY_S:
                self.said_s = time.monotonic()
                screen.print(self._line(self.run.view()))

    def _rate(self, rows: int) -> float:
        return rows / max(time.monotonic() - self.started_s, 0.001)

    def _line(self, now: RunView) -> str:
        read = now.read + now.moving.rows_in
        written = now.rows_written + now.moving.rows_out
        rejected = f" rejected {now.rejected:,}," if now.rejected else ""
        return (
            f"{now.name}: read {read:,} rows,{rejected} written {written:,},"
            f" committed {now.committed:,} ({self._rate(written):,.0f} rows/s)"
        )

    def _grid(self, now: RunView) -> Grid:
        grid = Grid(title=self._line(now), title_justify="left", box=None, pad_edge=False)
        for name in ("sink", "table", "rows", "rows/s", "size"):
            left = name in ("sink", "table")
            grid.add_column(name, justify="left" if left else "right", style="cyan")
        for (sink, table), (rows, size) in sorted(now.written.items()):
            grid.add_row(sink, table, f"{rows:,}", f"{self._rate(rows):,.0f}", human_bytes(size))
        moving = now.moving
        if moving.rows_out or moving.rows_in:
            rows = moving.rows_out or moving.rows_in
            moved = human_bytes(moving.bytes_out or moving.bytes_in)
            grid.add_row("", "moving now", f"{rows:,}", f"{self._rate(rows):,.0f}", moved)
        return grid


def human_bytes(count: int) -> str:
    """Return a size with a unit a person reads at a glance."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _escape(text: str) -> str:
    """Keep a job file's own brackets from being read as markup."""
    return text.replace("[", "\\[")
