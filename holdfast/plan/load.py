"""Read the text of a job file, in any of its formats, into one tree."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePath

from holdfast.connect.checks import CheckReport
from holdfast.errors import JobFileError, JobFileProblem, SourceLocation
from holdfast.model.tree import Block
from holdfast.plan.formats.hocon import Read, Resolver, build_job, parse_hocon
from holdfast.plan.formats.hocon_parse import Parser
from holdfast.plan.formats.sql_file import parse_sql
from holdfast.plan.formats.yaml_file import parse_yaml
from holdfast.plan.shape import shape_job
from holdfast.plan.syntax import DEPTH_MAX, LineIndex, Unreadable
from holdfast.plan.variables import (
    Unset,
    given_by,
    reserved_names,
    substitute,
    unset_message,
)

BOM = "\ufeff"


class JobFileFormat(StrEnum):
    """How a job file is written."""

    HOCON = "hocon"
    JSON = "json"
    SQL = "sql"
    YAML = "yaml"


_ENDINGS = {
    ".json": JobFileFormat.JSON,
    ".sql": JobFileFormat.SQL,
    ".yaml": JobFileFormat.YAML,
    ".yml": JobFileFormat.YAML,
}


def parse_job(
    text: str,
    file: str,
    variables: Mapping[str, str],
    read: Read | None,
    report: CheckReport,
    format: JobFileFormat | None = None,
) -> Block | None:
    """Return the tree of a job, or report what is wrong with its text and return None.

    The tree has env, a block, and source, transform and sink, each a list of blocks that start
    with `plugin_name`.  `read` fetches included files; without it nothing can be included.
    """
    before = len(report.mistakes)
    for name in reserved_names(variables):
        report.error(
            SourceLocation(file, 1, 1),
            f"The variable '{name}' may not be given: sinks fill ${{{name}}} for each table."
            " Choose another name.",
        )
    try:
        _check_text(text, file)
        tree = _parse(text, file, variables, read, report, format or format_of(file))
    except Unreadable as stopped:
        report.mistakes.append(stopped.mistake)
        return None
    unset: Unset = {}
    filled = substitute(tree, variables, unset)
    if not report.allow_unset:
        for name, place in unset.items():
            report.error(place, unset_message(name))
    assert isinstance(filled, Block)
    job = shape_job(filled, file, report)
    return None if len(report.mistakes) > before else job


def format_of(file: str) -> JobFileFormat:
    """Return the format by the ending of a file's name; HOCON for unknown endings."""
    return _ENDINGS.get(PurePath(file).suffix.lower(), JobFileFormat.HOCON)


def decode_job(data: bytes, file: str) -> str:
    """Return the text of a job file.  Raises JobFileError where it is not UTF-8."""
    try:
        return data.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        place = LineIndex(file, before).at(len(before))
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        found = "UTF-16" if wide else f"a byte 0x{data[error.start]:02x} that is not UTF-8"
        mistake = JobFileProblem(place, f"Found {found}. Save the file as UTF-8.")
        raise JobFileError([mistake]) from error


def _check_text(text: str, file: str) -> None:
    nul = text.find("\0")
    if nul >= 0:
        raise Unreadable(
            LineIndex(file, text).at(nul), "Found a NUL character. Is this a text file in UTF-8?"
        )
    if not re.search(r"[^\s\ufeff]", text):
        raise Unreadable(
            SourceLocation(file, 1, 1), "The file is empty. A job has env, source and sink blocks."
        )


def _parse(
    text: str,
    file: str,
    variables: Mapping[str, str],
    read: Read | None,
    report: CheckReport,
    format: JobFileFormat,
) -> Block:
    text = text.removeprefix(BOM)
    match format:
        case JobFileFormat.HOCON:
            return parse_hocon(text, file, read, given_by(variables), report.warn)
        case JobFileFormat.JSON:
            return parse_json(text, file)
        case JobFileFormat.SQL:
            return parse_sql(text, file, given_by(variables), report.warn)
        case JobFileFormat.YAML:
            return parse_yaml(text, file)


def parse_json(text: str, file: str) -> Block:
    """Return the tree of a JSON job file.  Raises Unreadable at the first mistake.

    Keys are quoted, so a dot in one separates nothing: `"row.num"` stays whole.
    """
    lines = LineIndex(file, text)
    try:
        whole = json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        message = error.msg[0].lower() + error.msg[1:]
        raise Unreadable(
            lines.at(error.pos), f"This is not JSON: {message}. Correct it, or name the file .conf."
        ) from None
    except RecursionError:
        raise Unreadable(
            lines.at(0), f"This JSON nests deeper than {DEPTH_MAX}. Nest less."
        ) from None
    if not isinstance(whole, dict):
        raise Unreadable(lines.at(0), "A JSON job is an object with env, source and sink.")
    fields = Parser(text, lines.at).root()
    job = build_job(fields, lambda place, message: None, unique=True)
    return Resolver(job, lambda name, place: None).block(job)
