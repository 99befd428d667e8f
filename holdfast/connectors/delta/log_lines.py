"""What a commit to a Delta table looks like in its log: one line of JSON for each action.

The library writes the same for the same files; a test compares the two.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.connect.sink import CommitId
from holdfast.connectors.delta.staged_files import DeltaFile

USER, NUMBER, WATERMARK = "holdfast.user", "holdfast.number", "holdfast.watermark"

PLAIN = "/'~=!@$(),;:+&"
"""What the library leaves as it is in a path, as well as letters and digits."""

SKIPPED = (b'{"add":', b'{"remove":', b'{"commitInfo":', b'{"cdc":')
"""How lines begin that change neither the columns nor the number of any user."""


def facts(identifier: CommitId) -> dict[str, str]:
    """Return what the commit info says of us."""
    found = {USER: identifier.user, NUMBER: str(identifier.number)}
    if identifier.watermark is not None:
        found[WATERMARK] = str(identifier.watermark)
    return found


def written(
    identifier: CommitId, files: Sequence[DeltaFile], partitions: Sequence[str], now_ms: int
) -> bytes:
    """Return the content of a version that adds files and the user's number."""
    about = {
        "timestamp": now_ms,
        "operation": "WRITE",
        "operationParameters": {
            "partitionBy": msgspec.json.encode(list(partitions)).decode(),
            "mode": "Append",
        },
        "engineInfo": f"holdfast:{_ours()}",
        **facts(identifier),
    }
    mark = {"appId": identifier.user, "version": identifier.number, "lastUpdated": now_ms}
    actions: list[dict[str, Any]] = [
        {"commitInfo": about},
        *({"add": _add(file, now_ms)} for file in files),
        {"txn": mark},
    ]
    return b"".join(msgspec.json.encode(action) + b"\n" for action in actions)


def telling(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the actions of a version that may change columns, rules or numbers.

    Raises ValueError for a version that is not whole.  Files are most of a log, so lines about them
    are passed over unread.
    """
    lines = content.splitlines()
    if not lines:
        raise ValueError("The version is empty.")
    for line in lines:
        if line.startswith(SKIPPED):
            if not line.endswith(b"}}"):
                raise ValueError("A line is cut off.")
        elif line:
            action = msgspec.json.decode(line)
            if not isinstance(action, dict):
                raise ValueError("A line is no action.")
            yield action


def _add(file: DeltaFile, now_ms: int) -> dict[str, Any]:
    return {
        "path": quote(file.final, safe=PLAIN),
        "partitionValues": file.partition,
        "size": file.bytes,
        "modificationTime": now_ms,
        "dataChange": True,
        "stats": file.stats,
        "tags": None,
        "baseRowId": None,
        "defaultRowCommitVersion": None,
        "clusteringProvider": None,
    }


@cache
def _ours() -> str:
    return version("holdfast")
