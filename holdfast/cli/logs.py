"""Logs: JSON lines in a file for machines, sentences on the terminal for people."""

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from holdfast.errors import UsageError, UserError
from holdfast.plan.masking import masked_text

LEVEL = "HOLDFAST_LOG_LEVEL"
"""The environment variable that asks for more: `debug` has a line for each slice."""

log = logging.getLogger("holdfast")


class JsonLines(logging.Formatter):
    """One JSON object a line; what a call gives in `extra={"about": {...}}` is part of it.

    `terminal`: the file next to it has everything, so errors of users come without a stack trace.
    """

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for one record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": masked_text(record.getMessage()),
            **{k: _masked(v) for k, v in getattr(record, "about", {}).items()},
        }
        if record.exc_info and not (self._terminal and isinstance(record.exc_info[1], UserError)):
            line["trace"] = masked_text(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def _masked(value: object) -> object:
    """Return a fact without secrets: what a driver says may repeat the URL it was given."""
    return masked_text(value) if isinstance(value, str) else value


class LogFile(logging.FileHandler):
    """The log in a file.  If it cannot be written, work continues; the terminal says so once."""

    _reported = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Say why a line could not be written."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self._report(error)
        else:
            super().handleError(record)

    def close(self) -> None:
        """Close the file, also where its last lines cannot be written."""
        try:
            super().close()
        except OSError as error:
            self._report(error)

    def _report(self, error: OSError) -> None:
        if not self._reported:
            self._reported = True
            said = f"The log {self.baseFilename} cannot be written: {error.strerror}."
            print(f"{said} What comes now may not be in it.", file=sys.stderr)


def log_to(file: Path, *, terminal_json: bool) -> None:
    """Send the log to a file and, where asked, as JSON to the terminal too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [LogFile(file)]
    if terminal_json:
        handlers.append(logging.StreamHandler(sys.stderr))
    for handler in handlers:
        handler.setFormatter(JsonLines(terminal=not isinstance(handler, LogFile)))
    log.handlers[:] = handlers
    log.propagate = False
    log.setLevel(_level(os.environ.get(LEVEL, "info")))


@contextmanager
def logging_to(file: Path, *, terminal_json: bool) -> Iterator[None]:
    """Send the log there while entered: a program that runs a job from Python has its own log."""
    before = (log.handlers[:], log.propagate, log.level)
    log_to(file, terminal_json=terminal_json)
    try:
        yield
    finally:
        for handler in log.handlers:
            handler.close()
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])


def _level(named: str) -> int:
    known = {"debug": logging.DEBUG, "info": logging.INFO}
    if named.lower() not in known:
        raise UsageError(f"{LEVEL} = '{named}' is no level. Give {' or '.join(known)}.")
    return known[named.lower()]


def event(message: str, **about: object) -> None:
    """Log something that happened, with its facts."""
    log.info(message, extra={"about": about})
