"""What people see: errors, warnings and the closing statistics."""

import sys
import traceback
from collections.abc import Iterable
from datetime import datetime

from rich.console import Console

from holdfast.errors import HoldfastError, JobFileError, JobFileProblem

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
