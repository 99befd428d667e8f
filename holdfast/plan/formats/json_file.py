"""JSON job files: checked to be JSON, then read as the part of HOCON that they are."""

import json

from holdfast.model.tree import Block
from holdfast.plan.formats.hocon_merge import Resolver, build_job
from holdfast.plan.formats.hocon_parse import Parser
from holdfast.plan.syntax import DEPTH_MAX, Lines, Unreadable


def parse_json(text: str, file: str) -> Block:
    """Return the tree of a JSON job file.  Raises Unreadable at the first mistake.

    Keys are quoted, so a dot in one separates nothing: `"row.num"` stays whole.
    """
    lines = Lines(file, text)
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
