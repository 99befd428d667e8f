"""docs/operations.md says what the code says: every option, every verb, every exit code."""

import re
from pathlib import Path

from holdfast.cli.main import VERBS
from holdfast.config import PREFIX, Config, flag
from holdfast.connect.options import describe

ROOT = Path(__file__).parents[3]
DOC = (ROOT / "docs" / "operations.md").read_text()
OF_THIS_MACHINE = {
    "name": "machine and process id", "store": "`sqlite:` in Holdfast's home",
    "blobs": "a folder in Holdfast's home", "advertise": "from `listen`",
    "masters": "http://127.0.0.1:5801", "token_file": "a file in Holdfast's home",
    "logs": "a folder in Holdfast's home", "token": "none",
}  # fmt: skip


def rows() -> list[str]:
    plain = Config()
    found = []
    for info in describe(Config):
        value = getattr(plain, info.name)
        shown = str(value).lower() if isinstance(value, bool) else str(value or 0)
        empty = value in ([], {}, "", None)
        default = OF_THIS_MACHINE.get(info.name) or ("none" if empty else shown)
        found.append(f"| `{info.key}` | {default} | {info.doc} |")
    return found


def test_every_option_stands_in_the_table_as_it_is_declared() -> None:
    missing = [row for row in rows() if row not in DOC]
    assert not missing, "docs/operations.md lacks:\n" + "\n".join(missing)
    options = DOC.partition("### Options")[2].partition("###")[0]
    listed = [line for line in options.splitlines() if line.startswith("| `")]
    strange = [line for line in listed if line not in rows()]
    assert not strange, "docs/operations.md has options that are not:\n" + "\n".join(strange)


def test_flags_and_variables_follow_from_the_name() -> None:
    info = next(i for i in describe(Config) if i.name == "worker_lost_s")
    assert f"{flag(info)}" in DOC and f"{PREFIX}{info.name.upper()}" in DOC


def test_every_verb_of_a_cluster_is_told_of() -> None:
    ours = [verb for verb, module in VERBS.items() if module in ("cluster", "node")]
    assert not [verb for verb in ours if f"holdfast {verb}" not in DOC]


def test_the_texts_of_failures_are_those_that_people_see() -> None:
    code = "\n".join(path.read_text() for path in sorted((ROOT / "holdfast").rglob("*.py")))
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # a sentence over several lines is one text
    table = DOC.partition("## What a failure looks like")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    quoted = [text for row in rows for text in re.findall(r"`([^`]+ [^`]+)`", row[2])]
    texts = [text for text in quoted if not text.startswith("holdfast ")]
    assert len(texts) > 10
    missing = [text for text in texts if not re.search(pattern_of(text), code)]
    assert not missing, "no text of Holdfast's reads so: " + "; ".join(missing)


def pattern_of(text: str) -> str:
    """Numbers and `...` stand for whatever a text says there."""
    parts = re.split(r"\d+|\bN\b|\.\.\.", text)
    return ".{1,60}?".join(re.escape(part.strip()) for part in parts if part.strip())
