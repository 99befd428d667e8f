"""Committers in processes of their own, which can be killed, frozen and set against each other."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from holdfast.connect.sink import CommitId, Committable, Sink
from holdfast.errors import HoldfastError
from holdfast.testing.sink_bench import commit_until_done
from holdfast.testing.sink_points import Points

# Libraries with threads of their own do not survive a fork: children come from a process that has
# imported what is needed and done nothing with it.
NURSERY = multiprocessing.get_context("forkserver")

STARTED_S = 60.0
KILLED = 9

Open = Callable[[], Sink[Any]]
Order = tuple[CommitId, Sequence[Committable]]


@dataclass
class Committer:
    """Another process with a sink of its own.  It does what it is told, one call at a time."""

    process: BaseProcess
    line: Connection

    def tell(self, *words: Any) -> None:
        """Give an order; `answer` waits for what comes of it."""
        self.line.send(words)

    def answer(self, timeout_s: float) -> str:
        """Return nothing, or what went wrong; fail if there is no answer in time."""
        if not self.line.poll(timeout_s):
            raise AssertionError(
                f"broken promise: a commit ends; no answer from another process in {timeout_s} s"
            )
        return str(self.line.recv())

    def freeze(self) -> None:
        """Stop the process wherever it is."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def committer(open: Open, patience_s: float) -> Iterator[Committer]:
    """Start another process, ready to commit; end it afterwards."""
    NURSERY.set_forkserver_preload([__name__, "pyarrow.parquet", _home(open)])
    line, far = NURSERY.Pipe()
    process = NURSERY.Process(target=_serve, args=(open, far, patience_s), daemon=True)
    process.start()
    far.close()
    started = Committer(process, line)
    try:
        problem = started.answer(STARTED_S)
        assert not problem, problem
        yield started
    finally:
        process.kill()
        process.join()
        line.close()


def kill_inside(open: Open, order: Order, at: int, patience_s: float) -> bool:
    """Kill a process just before the `at`-th outward call of its commit.

    Return whether it came to that; otherwise it was done before.
    """
    with committer(open, patience_s) as other:
        other.tell("die", at, *order)
        other.process.join(patience_s)
        code = other.process.exitcode
        if code is None:
            raise AssertionError(f"broken promise: a commit ends; not ended after {patience_s} s")
        assert code in (0, KILLED), f"a process that commits ended with {code}"
        return code == KILLED


def _serve(open: Open, line: Connection, patience_s: float) -> None:
    """Do what the other end says, until it hangs up."""
    try:
        sink = open()
    except BaseException:  # noqa: BLE001  the other end shall see it
        line.send(traceback.format_exc())
        return
    line.send("")
    while True:
        try:
            verb, *rest = line.recv()
        except EOFError:
            return
        match verb:
            case "die":
                _die_inside(sink, *rest)
            case "once":
                line.send(_said(partial(sink.commit, *rest)))
            case _:
                line.send(_said(partial(_commit, sink, open, patience_s, *rest)))


def _commit(
    sink: Sink[Any],
    open: Open,
    patience_s: float,
    identifier: CommitId,
    committables: Sequence[Committable],
) -> None:
    commit_until_done(sink, open, identifier, committables, patience_s)


def _home(open: Open) -> str:
    """Return the module that a function, or what a partial is made of, comes from."""
    function = open.func if isinstance(open, partial) else open
    return str(function.__module__)


def _die_inside(
    sink: Sink[Any], at: int, identifier: CommitId, committables: Sequence[Committable]
) -> None:
    with Points(at, lambda: os._exit(KILLED)).watching():
        sink.commit(identifier, committables)
    os._exit(0)


def _said(call: Callable[[], None]) -> str:
    try:
        call()
    except (HoldfastError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  the other end shall see it
        return "bug: " + traceback.format_exc()
    return ""
