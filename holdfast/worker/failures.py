"""Turn what Spark raises into an error a person can act on.

Spark wraps a bad value in layers of Java stack traces.  What a user needs is the innermost
`[ERROR_CLASS] sentence SQLSTATE: code`, and the state's first digits say who has to act: 22 and 42
are the job's data and text, everything else may pass.
"""

import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.connect.arrow_rows import MALFORMED, raised_in_task
from holdfast.errors import Cancelled, Fenced, HoldfastError, Unavailable, UserError
from holdfast.model.job import Stage
from holdfast.plan.masking import masked_text
from holdfast.worker.root_causes import cause_of, find_cause, while_reading

STACK_MAX = 8_000
"""How much of a stack is sent to the masters, in characters."""

GONE = "spark.gone"
"""The code of an error that says that Spark's JVM does not answer any more."""

_SENTENCE = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] (.*?) SQLSTATE: (\w{5})", re.DOTALL)
_CANCELLED = ("SPARK_JOB_CANCELLED", "cancelled part of cancelled job group", "has been cancelled")
_USERS_FAULT = ("22", "42", "P0")
_RAISED = "USER_RAISED_EXCEPTION"
_MALFORMED = "MALFORMED_RECORD_IN_PARSING"
_BLAMES = re.compile(r"(Source|Transform|Sink)\[\d+\]-\w+[: ]")
_QUERY = re.compile(r"\s*== (SQL|DataFrame).*", re.DOTALL)
_TOLERATE = re.compile(r" Use `try_\w+` .*?(?=$| If necessary)", re.DOTALL)
_SETTING = re.compile(r" If necessary set \"?spark\.\S+ to \S+ to bypass this error\.?")

_CALLED, _CAUSE = "An error occurred while calling", "Caused by: "
_SILENT = "Spark failed and gave no reason"
_PACKAGE = re.compile(r"^(?:[a-z0-9_]+\.)+")
_PYTHON = "Traceback (most recent call last)"
_RAISED_LINE = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit|Interrupt): .*)$", re.MULTILINE)


@contextmanager
def explained(stage: Stage, sources: Sequence[Stage] = ()) -> Iterator[None]:
    """Run a plug-in's code; whatever Spark raises comes out as a HoldfastError about that stage.

    `sources` are those whose rows it asks for: a failure to read is theirs.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Cancelled, Fenced):
        raise
    except HoldfastError as error:
        if not _BLAMES.match(str(error)):  # with five sinks of a kind, people must know which
            error.args = (f"{_blamed(stage)}: {error}", *error.args[1:])
        raise
    except (Py4JNetworkError, ConnectionError, EOFError) as error:
        raise Unavailable(
            f"{stage.id}: Spark's Java process is gone ({error}). Its log says why.",
            code=GONE,
        ) from error
    except (PySparkException, Py4JError) as error:
        raise explain(error, stage, sources) from error
    except OSError as error:
        cause = cause_of(error)
        if cause is None:
            raise
        kind = Unavailable if cause.heals else UserError
        raise kind(f"{_blamed(stage)}: {cause.said}", code=cause.code) from error


def explain(error: Exception, stage: Stage, sources: Sequence[Stage] = ()) -> HoldfastError:
    """Return the error to show for what Spark raised while `stage` ran."""
    text = str(error)
    whole = f"{text}\n{getattr(error, '_stackTrace', None) or ''}"
    if any(mark in text for mark in _CANCELLED):
        return Cancelled(f"{stage.id} was cancelled.")
    if ours := raised_in_task(text):
        return ours
    found = _SENTENCE.findall(text)
    malformed = any(name.startswith(_MALFORMED) for name, _, _ in found)
    blamed = _blamed(stage, sources) if malformed or while_reading(whole) else _blamed(stage)
    if (cause := find_cause(whole)) and not any(f[0] == _RAISED for f in found):
        kind = Unavailable if cause.heals else UserError
        return kind(f"{blamed}: {cause.said}", code=cause.code)
    if not found:
        return Unavailable(f"{blamed}: {_first_line(whole)}", code="spark.failed")
    # The innermost cause comes last; the outer ones only say that a job was aborted.
    raised = [f for f in found if f[0] == _RAISED]
    name, sentence, state = (raised or found)[-1]
    said = _plain(sentence)
    # A transform's row fails while a sink writes it: such a sentence names its own stage.
    message = said if _BLAMES.match(said) else f"{blamed}: {said}"
    if malformed:
        return UserError(message, code=MALFORMED)
    if name == _RAISED or state[:2] in _USERS_FAULT:
        return UserError(message, code=f"spark.{name.lower()}")
    return Unavailable(message, code=f"spark.{name.lower()}")


def _blamed(stage: Stage, sources: Sequence[Stage] = ()) -> str:
    """Name the stages at fault: those that were read, or the one that ran."""
    return " or ".join(f"{s.id} ({s.place})" for s in sources or (stage,))


def _plain(sentence: str) -> str:
    """Drop what only helps somebody who types Spark SQL by hand."""
    for pattern in (_QUERY, _TOLERATE, _SETTING):
        sentence = pattern.sub("", sentence)
    return " ".join(sentence.split())


def _first_line(text: str) -> str:
    """Return what says most of a failure: the innermost cause, without the ways that led there."""
    if _PYTHON in text and (said := _RAISED_LINE.findall(text)):
        return str(said[-1])[:500]
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(_CAUSE)]
    lines = causes[-1:] or [line for line in lines if not line.startswith(_CALLED)]
    return _PACKAGE.sub("", lines[0].removeprefix(_CAUSE))[:500] if lines else _SILENT


def stack_of(error: BaseException) -> str:
    """Return where an error came from, its causes first, without secrets; the end of a long one."""
    whole = "".join(traceback.format_exception(error))
    return masked_text(whole[-STACK_MAX:].partition("\n")[2] if len(whole) > STACK_MAX else whole)
