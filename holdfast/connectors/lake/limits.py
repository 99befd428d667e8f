"""Values that a table does not take, refused by Spark while it writes them.

A value is known only from its row, so Spark's expressions look at each and stop at the first one,
in words.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.connect.literals import text_literal

SHOWN_MAX = 40
NUL = "CAST(X'00' AS STRING)"
NUL_SHOWN = "\u2400"
CHANGE = "Change it with a transform, or leave such rows out."


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a value of a column may be; `exact`: shorter ones are not taken, or filled up.

    Texts are counted in characters, and filled up with blanks; bytes are counted as they are.
    """

    spelled: str
    most: int
    text: bool = True
    exact: bool = False


def limited(fits: Mapping[str, str], limits: Mapping[str, Limit], about: str) -> dict[str, str]:
    """Return what is written to each column, with values refused that are too long for it."""
    return {
        name: _limited(sql, name, limits[name], about) if name in limits else sql
        for name, sql in fits.items()
    }


def refusing(when: str, value: str, words: str, *, text: bool = True) -> str:
    """Return a case in Spark SQL that refuses a value in words, and shows how it begins."""
    shown = f"replace({value}, {NUL}, '{NUL_SHOWN}')" if text else f"hex({value})"
    parts = (
        f"{text_literal(f'{words}: ')}, left({shown}, {SHOWN_MAX}), {text_literal(f'. {CHANGE}')}"
    )
    return f"WHEN {when} THEN raise_error(concat({parts}))"


def _limited(value: str, name: str, limit: Limit, about: str) -> str:
    size = f"char_length({value})" if limit.text else f"octet_length({value})"
    unit = "characters" if limit.text else "bytes"
    other = limit.exact and not limit.text
    said = f"{about}: column {name} is {limit.spelled} in the table, and a value has"
    words = f"{said} {'not so many' if other else 'more'} {unit}"
    case = refusing(f"{size} {'<>' if other else '>'} {limit.most}", value, words, text=limit.text)
    kept = f"rpad({value}, {limit.most}, ' ')" if limit.exact and limit.text else value
    return f"CASE {case} ELSE {kept} END"
