"""What a job file may say about marking partitions as done, under Paimon's names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import option, options
from holdfast.connectors.lake.partition_time import to_strptime
from holdfast.model.secret import Secret
from holdfast.model.tree import Items, Node, Scalar

UNITS_MS = {
    "ms": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000,
    "minute": 60_000, "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000,
}  # fmt: skip

_DURATION = re.compile(r"(\d+)\s*([a-z]*)")


class Action(StrEnum):
    """What marks a partition as done."""

    SUCCESS_FILE = "success-file"
    DONE_PARTITION = "done-partition"
    HTTP_REPORT = "http-report"


class MarkMode(StrEnum):
    """Which time decides that a partition is done."""

    PROCESS_TIME = "process-time"
    WATERMARK = "watermark"


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: `15 min`, `1 d`, `30s`; a number alone is milliseconds."""

    ms: int

    type_text = "duration"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "Duration":
        """Read a number and its unit."""
        text = node.text.strip().lower() if isinstance(node, Scalar) else ""
        found = _DURATION.fullmatch(text)
        unit = (found[2] or "ms") if found else ""
        unit = unit if unit in UNITS_MS else unit.removesuffix("s")
        if not found or unit not in UNITS_MS:
            raise ValueError(f"'{text}' is no duration. Give one such as 15 min, 2 h or 1 d")
        return cls(int(found[1]) * UNITS_MS[unit])

    def __str__(self) -> str:
        return f"{self.ms} ms"


@dataclass(frozen=True, slots=True)
class Actions:
    """What marks a partition as done: one action, several with commas between, or a list."""

    names: tuple[Action, ...]

    type_text = " | ".join(Action) + ", several with commas between"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "Actions":
        """Read the names."""
        parts = node.items if isinstance(node, Items) else (node,)
        texts = [p.text for p in parts if isinstance(p, Scalar)]
        names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
        wrong = [n for n in names if n not in list(Action)]
        if wrong or not names or len(texts) != len(parts):
            said = f"'{wrong[0]}' is not known" if wrong else "it names nothing"
            raise ValueError(f"{said}. Good values: {', '.join(Action)}")
        return cls(tuple(dict.fromkeys(Action(n) for n in names)))


@options
class MarkDoneOptions:
    """Options of sinks that can mark partitions as done."""

    shown_last = True

    #: What to do when a partition is done; several with commas between.  Without it, nothing.
    mark_done: Actions | None = option(None, key="partition.mark-done-action")
    #: A partition is done when no new files came for so long: `15 min`, `1 h`.
    idle_time: Duration | None = option(None, key="partition.idle-time-to-done")
    #: How long a partition lasts, such as `1 d` for one of each day.  It is not done before its
    #: own time, which its values tell, and this have passed.
    time_interval: Duration | None = option(None, key="partition.time-interval")
    #: How the time of a partition is written, as a Java pattern such as yyyyMMdd.  Without it,
    #: yyyy-MM-dd, with HH:mm:ss behind it or not.
    timestamp_formatter: str | None = option(None, key="partition.timestamp-formatter")
    #: How partition values make up that time, such as `$dt $hour:00:00`.  Without it, the first
    #: value.
    timestamp_pattern: str | None = option(None, key="partition.timestamp-pattern")
    #: The time zone of that time, such as Europe/Berlin.  Without it, that of the masters.
    timestamp_zone: str | None = option(None, key="partition.timestamp-zone")
    #: Which time decides: the clock of the leader, or the job's watermark (`watermark.column`).
    mark_mode: MarkMode = option(MarkMode.PROCESS_TIME, key="partition.mark-done-action.mode")
    #: Where http-report posts to.  It may hold a password or a token, and is never shown.  The
    #: masters' operator must allow its host (report_hosts).
    http_url: Secret | None = option(None, key="partition.mark-done-action.http.url")
    #: Text that http-report sends along.
    http_params: str | None = option(None, key="partition.mark-done-action.http.params")
    #: Seconds after which http-report counts as failed; it is then tried again.
    http_timeout_s: int = option(
        10, key="partition.mark-done-action.http.timeout-seconds", at_least=1, at_most=300
    )
    #: Whether all partitions that were written to are done when the input has ended.
    end_input_to_done: bool = option(False, key="partition.end-input-to-done")

    def mark_problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option of these can tell: (option, sentence)."""
        if self.mark_done is None:
            return
        if self.mark_mode is MarkMode.WATERMARK and self.time_interval is None:
            yield "mark_mode", "by watermark, a partition is done partition.time-interval after" \
                " its time: give that, too."  # fmt: skip
        elif self.mark_mode is MarkMode.PROCESS_TIME and not (
            self.idle_time or self.end_input_to_done
        ):
            yield "mark_done", "nothing says when a partition is done: give" \
                " partition.idle-time-to-done or partition.end-input-to-done = true."  # fmt: skip
        if Action.HTTP_REPORT in self.mark_done.names:
            parts = urlsplit(self.http_url.reveal() if self.http_url else "")
            if parts.scheme not in ("http", "https") or not parts.hostname:
                yield "http_url", "http-report needs partition.mark-done-action.http.url, an" \
                    " http:// or https:// URL."  # fmt: skip
        if self.timestamp_zone is not None:
            try:
                ZoneInfo(self.timestamp_zone)
            except (ZoneInfoNotFoundError, ValueError):
                yield "timestamp_zone", f"'{self.timestamp_zone}' is not a time zone."
        try:
            to_strptime(self.timestamp_formatter or "yyyy")
        except ValueError as error:
            yield "timestamp_formatter", f"partition.timestamp-formatter: {error}."
