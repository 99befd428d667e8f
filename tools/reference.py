"""Write the tables of docs/rest.md and docs/metrics.md from what the code declares.

    python -m tools.reference           write them (`make docs` does)
    python -m tools.reference --check   fail if a page is stale

A table stands between two comments in its page; the rest of the page is written by hand.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.api.metrics import METRICS
from holdfast.api.route import Permission, Route, TextAnswer
from holdfast.api.table import all_routes, document

DOCS = Path(__file__).parents[1] / "docs"
BEGIN = "<!-- {name}: written by `make docs` from the declarations; do not edit -->"
END = "<!-- end of {name} -->"


def routes() -> list[Route]:
    """Return every path of a master but the files of the UI."""
    nobody = cast(Any, None)
    found = all_routes(nobody, nobody, nobody, nobody)
    return [r for r in found if r.permission is not Permission.PUBLIC or r.answer is not TextAnswer]


def path_table(group: str) -> str:
    """Return the paths of a group: who may ask, what is sent, what is answered, what it is for."""
    rows = ["| path | needs | send | answer | |", "| --- | --- | --- | --- | --- |"]
    for route in routes():
        if route.group == group:
            cells = (_asked(route), str(route.permission), _sent(route), _kind(route.answer))
            rows.append("| " + " | ".join((*cells, _cell(route.about))) + " |")
    return "\n".join(rows)


def shape_list(group: str) -> str:
    """Return the shapes that a group of paths sends and answers, each with its fields."""
    own = [r for r in routes() if r.group == group]
    schemas: dict[str, Any] = document(own)["components"]["schemas"]
    return "\n\n".join(_shape(name, schema) for name, schema in sorted(schemas.items()))


def metric_table() -> str:
    """Return every metric with its labels, its sentence and its source."""
    rows = ["| metric | type | labels | | source |", "| --- | --- | --- | --- | --- |"]
    for one in METRICS:
        name = one.name + ("_total" if one.kind == "counter" else "")
        cells = (f"`{name}`", one.kind, one.labels, _cell(one.about), one.source)
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "rest.md": {
        "our paths": lambda: path_table("api"),
        "our shapes": lambda: shape_list("api"),
        "SeaTunnel's paths": lambda: path_table("v2"),
        "SeaTunnel's shapes": lambda: shape_list("v2"),
    },
    "metrics.md": {"metrics": metric_table},
}
"""Each page and what stands in it between comments."""


def filled(page: str, text: str) -> str:
    """Return a page with its written parts as the code declares them."""
    for name, part in PARTS[page].items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        before, _, rest = text.partition(begin)
        _, there, after = rest.partition(end)
        if not there:
            raise SystemExit(f"docs/{page} has no place for {name}: put {begin} and {end} into it.")
        text = f"{before}{begin}\n\n{part()}\n\n{end}{after}"
    return text


def stale() -> list[str]:
    """Return the pages that do not say what the code declares."""
    return [page for page in PARTS if filled(page, _read(page)) != _read(page)]


def _read(page: str) -> str:
    return (DOCS / page).read_text()


def _asked(route: Route) -> str:
    fields = [field.name for field in msgspec.structs.fields(route.query)] if route.query else []
    query = "?" + "&".join(f"{name}=" for name in fields) if fields else ""
    return f"`{route.method} {route.path}{query}`"


def _sent(route: Route) -> str:
    return "" if route.body is None else _kind(route.body)


def _kind(kind: Any) -> str:
    """Return how a type is called on the page."""
    if kind in (bytes, TextAnswer):
        return "text"
    text = re.sub(r"(?:\w+\.)+(?=\w)", "", getattr(kind, "__name__", "") or str(kind))
    if getattr(kind, "__args__", ()):
        text = re.sub(r"(?:\w+\.)+(?=\w)", "", str(kind))
    return f"`{_cell(text)}`"


def _shape(name: str, schema: dict[str, Any]) -> str:
    about = " ".join(schema.get("description", "").split())
    needed = set(schema.get("required", ()))
    fields = [
        f"`{key}` {_type(value)}{'' if key in needed else '?'}"
        for key, value in schema.get("properties", {}).items()
    ]
    return f"**{name}**: {about}\n{', '.join(fields)}".rstrip()


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a field in a word or a few."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    match schema.get("type"):
        case "array":
            return f"[{_type(schema.get('items') or {})}]"
        case "object":
            return f"{{{_type(cast(Any, schema.get('additionalProperties') or {}))}}}"
        case str() as name:
            return name
    return "any"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _written() -> Iterator[str]:
    for page in stale():
        (DOCS / page).write_text(filled(page, _read(page)))
        yield page


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or say which are stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
    if parser.parse_args(arguments).check:
        old = stale()
        print("\n".join(f"docs/{page} is stale: run `make docs`" for page in old) or "Fresh.")
        return 1 if old else 0
    print("\n".join(f"docs/{page} is written" for page in _written()) or "Nothing has changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
