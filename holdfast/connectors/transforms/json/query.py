"""Find values in JSON text by path: the part of JsonPath that runs in Spark's Python workers.

Text goes in and text comes out; Spark turns it into the column's type.  For each path there are
two answers: the value found, as text, or why there is none.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jsonpath
import pyarrow as pa

from holdfast.connectors.transforms.json.lenient import Float, Json, parse

MISSING = "the path finds nothing"


@dataclass(frozen=True, slots=True)
class Ask:
    """One path, and whether its column holds whole numbers."""

    path: str
    whole: bool = False


class NotFound(Exception):
    """The path leads nowhere in this document."""


class Query:
    """A compiled path: the steps every document must have, then what may find many values."""

    def __init__(self, path: str) -> None:
        """Compile.  Raises ValueError with a sentence if it is no path."""
        rooted = path if path.startswith(("$", "@")) else f"$.{path}"
        # Names such as 1st and @type need no brackets in SeaTunnel.
        rooted = re.sub(r"(?<=[\w\]$])\.(@\w[\w-]*|\d[\w-]*)(?=[.\[]|$)", r"['\1']", rooted)
        try:
            self.found = jsonpath.compile(rooted)
        except jsonpath.JSONPathError as error:
            raise ValueError(
                f"'{path}' is not a JSON path: {str(error).splitlines()[0]}"
            ) from error
        if not isinstance(self.found, jsonpath.JSONPath):
            raise ValueError(f"'{path}' is more than one JSON path")
        self.steps = tuple(_steps(self.found))
        self.single = len(self.steps) == len(self.found.segments)

    def read(self, document: Json) -> Json:
        """Return the value, or a list of values where the path may find many.

        Raises NotFound if a step that names one place is not there.
        """
        here = document
        for step in self.steps:
            if isinstance(step, str):
                if not isinstance(here, dict) or step not in here:
                    raise NotFound
                here = here[step]
            else:
                if not isinstance(here, list) or not -len(here) <= step < len(here):
                    raise NotFound
                here = here[step]
        if self.single:
            return here
        # A text would be parsed once more, and nothing is inside a plain value anyhow.
        many: list[Any] = []
        if isinstance(document, (dict, list)):
            many = self.found.findall(document)
        return many


def load(text: str) -> Json:
    """Return what the JSON says, forgiving what SeaTunnel forgives; ValueError if it cannot be."""
    try:
        loaded: Json = json.loads(text, parse_float=Float, strict=False)
    except ValueError:
        return parse(text)
    return loaded


def written(value: Json, whole: bool = False) -> str | None:
    """Return a value as Spark is to read it; lists and objects as JSON."""
    match value:
        case None:
            return None
        case str():
            return _valid(value)
        case bool():
            return "true" if value else "false"
        case list() | dict():
            return _valid(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        case Float() if whole and abs(value) < 2**63:
            return str(int(value))  # as SeaTunnel reads 42.0 into an int
        case Float():
            return value.text
    return str(value)


def answers(text: str | None, asks: Sequence[Ask]) -> list[tuple[str | None, str | None]]:
    """Return (value, why there is none) for each path; both None where the value is null."""
    if text is None:
        return [(None, None)] * len(asks)
    try:
        document = load(text)
    except ValueError as error:
        return [(None, f"it is not JSON: {error}")] * len(asks)
    except RecursionError:
        return [(None, "its JSON is nested too deeply")] * len(asks)
    return [_answer(document, ask) for ask in asks]


def answer_batch(texts: "pa.Array[Any]", asks: Sequence[Ask]) -> "pa.Array[Any]":
    """Return a struct of `v0, e0, v1, e1, ...` for each text: value and error of each path."""
    columns: list[list[str | None]] = [[] for _ in range(2 * len(asks))]
    for text in texts.to_pylist():
        for i, (value, error) in enumerate(answers(text, asks)):
            columns[2 * i].append(value)
            columns[2 * i + 1].append(error)
    names = [f"{kind}{i}" for i in range(len(asks)) for kind in "ve"]
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.StructArray.from_arrays(arrays, names=names)


@lru_cache(maxsize=256)
def compiled(path: str) -> Query:
    """Return the compiled path; each worker compiles it once."""
    return Query(path)


def _answer(document: Json, ask: Ask) -> tuple[str | None, str | None]:
    try:
        return written(compiled(ask.path).read(document), ask.whole), None
    except NotFound:
        return None, MISSING
    except jsonpath.JSONPathError as error:
        return None, f"the path fails: {str(error).splitlines()[0]}"


def _valid(text: str) -> str:
    r"""Return text that UTF-8 can hold: JSON may escape half a character (`\ud83d`)."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _steps(path: jsonpath.JSONPath) -> list[str | int]:
    """Return the leading steps of a path that each name one place."""
    steps: list[str | int] = []
    for segment in path.segments:
        if not isinstance(segment, jsonpath.segments.JSONPathChildSegment):
            break
        if len(segment.selectors) != 1:
            break
        match segment.selectors[0]:
            case jsonpath.selectors.NameSelector(name=name):
                steps.append(name)
            case jsonpath.selectors.IndexSelector(index=index):
                steps.append(index)
            case _:
                break
    return steps
