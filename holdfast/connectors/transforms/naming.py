"""How FieldRename and TableRename make a new name from an old one.

Their patterns are Java's, so Java looks for them, in Spark's JVM when the job starts.  What Python
can tell of a pattern before that is reported when the job is checked.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from holdfast.connect.options import option, options
from holdfast.errors import UserError

Find = Callable[[str, str], list[tuple[int, int]]]
"""Returns where a Java regular expression matches in a name."""

JAVAS_OWN = re.compile(r"\\[a-zA-Z]|&&|\[[^]]*\[|[?*+}]\+|\(\?")
"""Notation that Java has alone, or that means something else to Python."""


@options
class Replacement:
    """One rule that replaces a part of a name."""

    replace_from: str  #: What to look for in the old name.
    replace_to: str  #: The text that replaces it in the new name, taken as it is.
    is_regex: bool = True  #: Whether `replace_from` is a regular expression or the whole old name.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the expression."""
        if not self.is_regex:
            return
        if JAVAS_OWN.search(self.replace_from):
            return  # Java reports it when the job starts
        try:
            re.compile(self.replace_from)
        except re.error as error:
            yield (
                "replace_from",
                f"'{self.replace_from}' is not a regular expression: {error}."
                " Correct it, or set is_regex = false.",
            )

    def spans(self, name: str, find: Find) -> list[tuple[int, int]]:
        """Return where this rule matches."""
        if not self.replace_from:
            return []
        if self.is_regex:
            return find(self.replace_from, name)
        return [(0, len(name))] if name == self.replace_from else []


@options
class Naming:
    """The parts of a new name."""

    convert_case: Literal["UPPER", "LOWER"] | None = None  #: Turn the name to this case.
    prefix: str = ""  #: Text to put before the name.
    suffix: str = ""  #: Text to put after the name.
    #: Parts of the old name to replace. Where several rules match, only the last one counts.
    replacements_with_regex: list[Replacement] = option([])

    def cased(self, text: str) -> str:
        """Return the text in the case asked for."""
        match self.convert_case:
            case "UPPER":
                return text.upper()
            case "LOWER":
                return text.lower()
        return text

    @property
    def plainly(self) -> Find | None:
        """What finds these rules' texts; None where only Java can tell."""
        rules = (r for r in self.replacements_with_regex if r.is_regex)
        return None if any(re.escape(r.replace_from) != r.replace_from for r in rules) else _plainly

    def new_name(self, old: str, find: Find) -> str:
        """Return the new name.

        Rules look at the old name as it was; what they put in keeps its own case; the prefix and
        suffix come last.
        """
        spans: list[tuple[int, int]] = []
        put = ""
        for rule in self.replacements_with_regex:
            if found := rule.spans(old, find):
                spans, put = found, rule.replace_to.strip()
        parts: list[str] = []
        at = 0
        for start, end in spans:
            parts += [self.cased(old[at:start]), put]
            at = end
        parts.append(self.cased(old[at:]))
        return self.prefix.strip() + "".join(parts) + self.suffix.strip()


def _plainly(text: str, name: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(re.escape(text), name)]


def javas_find(stage: str) -> Find:
    """Return what finds a pattern as Java does; a pattern that Java does not know is a mistake."""
    from pyspark.errors import IllegalArgumentException
    from pyspark.sql import SparkSession

    patterns: dict[str, Any] = {}

    def find(pattern: str, name: str) -> list[tuple[int, int]]:
        if pattern not in patterns:
            jvm: Any = SparkSession.active()._jvm
            try:
                patterns[pattern] = jvm.java.util.regex.Pattern.compile(pattern)
            except IllegalArgumentException as error:
                said = str(error).partition(" near index")[0]
                raise UserError(
                    f"{stage}: '{pattern}' is not a Java regular expression: {said}."
                    " Correct replace_from, or set is_regex = false."
                ) from error
        matcher = patterns[pattern].matcher(name)
        spans = []
        while matcher.find():
            spans.append((_place(name, matcher.start()), _place(name, matcher.end())))
        return spans

    return find


def _place(text: str, units: int) -> int:
    """Return the place of a character that Java counts in units of UTF-16."""
    return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "replace"))
