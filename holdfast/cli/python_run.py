"""Run a job file from Python, as `holdfast run` does: `holdfast.run("job.conf").check()`."""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from holdfast.cli.closing import show_closing
from holdfast.cli.launch import Launch, Signals, run_here
from holdfast.process.run_result import RunResult


def run(
    file: str | os.PathLike[str],
    *,
    variables: Mapping[str, str] | None = None,
    name: str | None = None,
    job_id: str | None = None,
    cores: int | None = None,
    plugins: Sequence[str] = (),
    lenient: bool = False,
    allow_unset: bool = False,
    allow_python: bool = False,
    progress: bool = False,
    log_file: str | os.PathLike[str] | None = None,
) -> RunResult:
    """Run a job file to its end in this process and return what became of it.

    Raises `JobFileError` if the file is wrong, before any row moves.  A job that fails is a result
    too: its `problems` say why, and `check()` raises its error.  Ctrl-C cancels the job.
    """
    asked = Launch(
        file=Path(file), variables=dict(variables or {}), name=name, job_id=job_id, cores=cores,
        plugins=plugins, lenient=lenient, allow_unset=allow_unset,
        allow_python=allow_python, quiet=not progress,
        log_file=Path(log_file) if log_file else None,
    )  # fmt: skip
    signals = Signals()
    # Only the main thread may handle signals; in another thread they belong to the caller.
    handled = signals if threading.current_thread() is threading.main_thread() else nullcontext()
    with handled:
        result = run_here(asked, signals)
    if progress:
        show_closing(result, (), box=False)
    return result
