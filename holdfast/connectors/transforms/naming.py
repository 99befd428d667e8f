"""How FieldRename and TableRename make a new name from an old one."""

import re
from collections.abc import Iterator
from typing import Literal

from holdfast.connect.options import option, options


@options
class Replacement:
    """One rule that replaces a part of a name."""

    replace_from: str  #: What to look for in the old name.
    replace_to: str  #: What stands there in the new name, taken as it is.
    is_regex: bool = True  #: Whether `replace_from` is a regular expression or the whole old name.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the expression."""
        if not self.is_regex:
            return
        try:
            re.compile(self.replace_from)
        except re.error as error:
            yield (
                "replace_from",
                f"'{self.replace_from}' is not a regular expression: {error}."
                " Correct it, or set is_regex = false.",
            )

    def spans(self, name: str) -> list[tuple[int, int]]:
        """Return where this rule matches."""
        if not self.replace_from:
            return []
        if self.is_regex:
            return [m.span() for m in re.finditer(self.replace_from, name)]
        return [(0, len(name))] if name == self.replace_from else []


@options
class Naming:
    """What a new name is made of."""

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

    def new_name(self, old: str) -> str:
        """Return the new name.

        Rules look at the old name as it was; what they put in keeps its own case; the prefix and
        suffix come last.
        """
        spans: list[tuple[int, int]] = []
        put = ""
        for rule in self.replacements_with_regex:
            if found := rule.spans(old):
                spans, put = found, rule.replace_to.strip()
        parts: list[str] = []
        at = 0
        for start, end in spans:
            parts += [self.cased(old[at:start]), put]
            at = end
        parts.append(self.cased(old[at:]))
        return self.prefix.strip() + "".join(parts) + self.suffix.strip()
