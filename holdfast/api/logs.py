"""What this master has logged, for clients that may read it.

A name never becomes a path: it is compared with the one file there is, or it is a job's.
"""

import json
import re
from pathlib import Path

LOG_BYTES_MAX = 4_000_000
JOB_LOG = re.compile(r"job-([A-Za-z0-9][A-Za-z0-9._-]{0,63})\.log")


def job_log(job: str) -> str:
    """Return the name of a job's log, as SeaTunnel calls it."""
    return f"job-{job}.log"


def log_tail(file: Path) -> bytes:
    """Return the end of a log."""
    if not file.exists():
        return b""
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - LOG_BYTES_MAX))
        return log.read()


def log_lines(file: Path | None, job_id: str) -> list[dict[str, object]]:
    """Return the lines about a job from the end of a log."""
    if file is None:
        return []
    lines = log_tail(file).decode(errors="replace").splitlines()
    found = (json.loads(line) for line in lines if job_id in line and line.startswith("{"))
    return [line for line in found if line.get("job_id") == job_id]
