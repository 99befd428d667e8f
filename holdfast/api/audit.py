"""The audit log: who asked for what, from where, and what came of it.

One JSON object a line, appended and flushed before the order is carried out and again after.  Each
line holds the hash of the line before it, so that a line that was changed or taken out shows.
"""

import hashlib
import json
import logging
import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from holdfast.api.route import Caller, Route

log = logging.getLogger("holdfast")

SHOWN_MAX = 500
FAILED_SAID = (1, 10, 100)
"""An attacker sends many wrong tokens: these counts in a minute are written down."""


class Audit:
    """One master's audit log.  Without a file it is kept in memory alone, for tests."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.latest: deque[dict[str, object]] = deque(maxlen=SHOWN_MAX)
        self._number = 0
        self._before = ""
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._number, self._before = _last(file)

    def asked(self, who: Caller, address: str, route: Route, about: Mapping[str, str]) -> int:
        """Write down an order that is about to be carried out; return its number."""
        order = f"{route.method} {route.path}"
        return self._note("asked", who, **{"from": address}, order=order, **about)

    def writes_again(self, who: Caller, job: str, source: str, number: int) -> None:
        """Write down that a job starts where rows that are visible are written again."""
        self._note("writes again", who, jobId=job, source=source, number=number)

    def forces(self, who: Caller, job: str) -> None:
        """Write down that a job is ended without waiting for its commits."""
        self._note("cancels by force", who, jobId=job)

    def looks(self, who: Caller, file: str, worker: str) -> None:
        """Write down that a worker opens what a job names, with the logins in it."""
        self._note("looks at places", who, file=file, worker=worker)

    def answered(self, entry: int, status: int, code: str) -> None:
        """Write down what came of an order."""
        self._write({"what": "answered", "asked": entry, "status": status, "code": code})

    def refused(
        self, who: Caller, address: str, route: Route, about: Mapping[str, str], status: int
    ) -> None:
        """Write down a request that its role does not allow."""
        order = f"{route.method} {route.path}"
        self._note("refused", who, **{"from": address}, order=order, **about, status=status)

    def failed(self, address: str, times: int) -> None:
        """Write down a wrong token; of many in a minute only some."""
        if times in FAILED_SAID:
            self._write({"what": "wrong token", "from": address, "times": times, "status": 401})

    def _note(self, what: str, who: Caller, **facts: object) -> int:
        return self._write({"what": what, "who": who.name, "role": who.role.value, **facts})

    def _write(self, facts: dict[str, object]) -> int:
        self._number += 1
        line = {"number": self._number, "at_s": round(time.time(), 3), **facts}
        line["before"] = self._before
        text = json.dumps(line, separators=(",", ":"))
        self._before = hashlib.sha256(text.encode()).hexdigest()
        self.latest.append(line)
        if self.file:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self.file, flags, 0o600)
            try:
                os.write(descriptor, f"{text}\n".encode())
            finally:
                os.close(descriptor)
        return self._number


def broken_at(file: Path) -> int:
    """Return the number of the first line that does not follow from the one before; 0 if none."""
    before, wanted = "", 1
    for text in file.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            return wanted
        if line.get("before") != before or line.get("number") != wanted:
            return wanted
        before, wanted = hashlib.sha256(text.encode()).hexdigest(), wanted + 1
    return 0


def _last(file: Path) -> tuple[int, str]:
    """Return the number and the hash of the last line, so that the chain continues."""
    if not file.exists():
        return 0, ""
    lines = file.read_text().splitlines()
    if not lines:
        return 0, ""
    try:
        number = int(json.loads(lines[-1])["number"])
    except (ValueError, KeyError, TypeError):
        log.warning("the last line of the audit log %s cannot be read; it stays as it is", file)
        number = len(lines)
    return number, hashlib.sha256(lines[-1].encode()).hexdigest()
