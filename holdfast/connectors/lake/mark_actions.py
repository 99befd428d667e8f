"""The marks of a partition that is done.  Each may be repeated."""

import base64
import json
import os
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from holdfast.connect.sink import CommitId
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.mark_options import Action, MarkDoneOptions
from holdfast.errors import Unavailable, UserError

if TYPE_CHECKING:
    from holdfast.connectors.lake.mark_done import Partition

REPORT_HOSTS = "HOLDFAST_REPORT_HOSTS"
"""The masters' option report_hosts, with commas between: hosts that jobs may have them post to.

A master can reach hosts that a job's author may not, so none is allowed unless its operator says
so.
"""

SUCCESS = "_SUCCESS"
DONE = ".done"


def mark(
    options: MarkDoneOptions, place: Location, done: "Partition", identifier: CommitId, now_ms: int
) -> None:
    """Do all that a job file asks for when a partition is done."""
    for action in options.mark_done.names if options.mark_done else ():
        match action:
            case Action.SUCCESS_FILE:
                _success_file(place, done.folder, now_ms)
            case Action.DONE_PARTITION:
                # Another partition without rows: readers of files do not see what starts
                # with an underscore, so to them the folder is empty.
                _success_file(place, done.folder + DONE, now_ms)
            case Action.HTTP_REPORT:
                _report(options, done, identifier)


def check_report(options: MarkDoneOptions) -> None:
    """Raise UserError if reports may not go where a job file wants them."""
    if options.http_url is None or not options.mark_done:
        return
    if Action.HTTP_REPORT not in options.mark_done.names:
        return
    parts = urlsplit(options.http_url.reveal())
    allowed = [h.strip().lower() for h in os.environ.get(REPORT_HOSTS, "").split(",") if h.strip()]
    wanted = {parts.hostname, parts.netloc.rpartition("@")[2].lower()}
    if not wanted & set(allowed):
        raise UserError(
            f"http-report may not post to {parts.hostname}: masters here allow"
            f" {', '.join(allowed) or 'no host'}. Have their operator set report_hosts, such as"
            f" {REPORT_HOSTS}={parts.hostname}, on every master.",
            code="sink.report_host",
        )


def _success_file(place: Location, folder: str, now_ms: int) -> None:
    """Write Paimon's file, which says when a partition was done first and last."""
    name = f"{folder}/{SUCCESS}"
    try:
        before = _first_ms(place.read(name))
        said = {"creationTime": before or now_ms, "modificationTime": now_ms}
        place.write(name, json.dumps(said).encode())
    except OSError as error:
        raise Unavailable(
            f"The partition {folder} of {place.url} is done, but {name} cannot be written:"
            f" {error}. Check who may write there.",
            code="sink.mark_failed",
        ) from error


def _first_ms(content: bytes | None) -> int | None:
    """Return when a partition was done first, if the file that is there says so."""
    try:
        found = json.loads(content or b"null")
    except ValueError:
        return None  # Spark and Hadoop leave empty files of this name
    first = found.get("creationTime") if isinstance(found, dict) else None
    return first if isinstance(first, int) else None


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a POST would become a GET, and say nothing."""

    def redirect_request(self, *_about: Any, **_more: Any) -> None:
        return None


def _report(options: MarkDoneOptions, done: "Partition", identifier: CommitId) -> None:
    assert options.http_url, "a job without it was refused"
    body = {
        "table": done.table,
        "path": done.url,
        "partition": dict(done.values),
        "folder": done.folder,
        "user": identifier.user,
        "commit": identifier.number,
        "params": options.http_params,
    }
    parts = urlsplit(options.http_url.reveal())
    where = parts.netloc.rpartition("@")[2]
    headers = {
        "Content-Type": "application/json",
        # The same for a repeated call, so that a receiver can tell.
        "Idempotency-Key": quote(f"{identifier.user}-{identifier.number}-{done.folder}"),
    }
    if parts.username is not None:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(known.encode()).decode()}"
    request = urllib.request.Request(
        parts._replace(netloc=where).geturl(), json.dumps(body).encode(), headers, method="POST"
    )
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=options.http_timeout_s):
            return
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        # Not all of the URL: there may be a token in it.
        raise Unavailable(
            f"The partition {done.folder} of {done.table} is done, but the report to"
            f" {parts.scheme}://{where} failed: {error}.",
            code="sink.report_failed",
        ) from error
