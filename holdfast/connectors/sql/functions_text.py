"""Text functions: SeaTunnel's (after H2) on the left, Spark's on the right.

They differ in more than names: CONCAT skips NULL, pads and trims take one character, positions
may count from the end, an empty SUBSTRING is NULL, and lengths are bigint.
"""

from holdfast.connectors.sql.values import (
    BIGINT,
    BOOLEAN,
    INT,
    NULL,
    STRING,
    Call,
    Function,
    Value,
    as_text,
    literal,
    template,
)
from holdfast.errors import UserError
from holdfast.model.types import Type

FLAGS = {"i": "i", "n": "s", "m": "m"}
STRINGS = Type("array", parts=(STRING,))


def concat(call: Call) -> Value:
    """Join all that is not NULL; nothing at all gives an empty text."""
    parts = ", ".join(as_text(a, call.kind(i)) for i, a in enumerate(call.args))
    return Value(f"concat_ws('', {parts})", STRING)


def _concat_ws(call: Call) -> Value:
    parts = []
    for i, value in enumerate(call.args[1:], start=1):
        if call.kind(i) == "array":
            parts.append(f"cast({value.sql} AS array<string>)")
        else:
            parts.append(as_text(value, call.kind(i)))
    return Value(f"concat_ws(coalesce({call.sql(0)}, ''), {', '.join(parts)})", STRING)


def _ascii(call: Call) -> Value:
    return Value(f"if({call.sql(0)} = '', NULL, ascii({call.sql(0)}))", INT)


def _char(call: Call) -> Value:
    # Spark's chr stops at 255; SeaTunnel's goes on to all of UTF-16.
    code = f"lpad(hex(cast({call.sql(0)} AS int) & 65535), 4, '0')"
    return Value(f"decode(unhex({code}), 'UTF-16BE')", STRING)


def _hextoraw(call: Call) -> Value:
    sql = call.sql(0)
    wrong = f"raise_error(concat('HEXTORAW: not four digits for each character: ', {sql}))"
    good = f"decode(to_binary({sql}, 'hex'), 'UTF-16BE')"
    return Value(f"if(length({sql}) % 4 <> 0, cast({wrong} AS string), {good})", STRING)


def _rawtohex(call: Call) -> Value:
    if call.kind(0) == "bytes":
        return Value(f"lower(hex({call.sql(0)}))", STRING)
    return Value(f"lower(hex(encode({as_text(call.args[0], call.kind(0))}, 'UTF-16BE')))", STRING)


def _insert(call: Call) -> Value:
    old, start, length, new = (a.sql for a in call.args)
    return Value(
        f"CASE WHEN {old} IS NULL THEN {new} WHEN {new} IS NULL THEN {old}"
        f" WHEN {start} < 1 OR {length} <= 0 OR {new} = '' OR {start} > length({old}) + 1"
        f" THEN {old}"
        f" ELSE concat(left({old}, {start} - 1), {new}, substring({old}, {start} + {length})) END",
        STRING,
    )


def position(search: str, within: str, start: Value | None = None) -> Value:
    """Return where a text begins in another, from 1; 0 where it does not, or there is no text.

    A negative start looks for the last place at or before that many characters from the end.
    """
    if start is None:
        return Value(f"coalesce(locate({search}, {within}), 0)", INT)
    forward = f"coalesce(locate({search}, {within}, greatest({start.sql}, 1)), 0)"
    part = f"left({within}, length({within}) + {start.sql} + length({search}))"
    found = f"locate(reverse({search}), reverse({part}))"
    place = f"length({part}) - {found} - length({search}) + 2"
    backward = f"coalesce(if({found} = 0, 0, {place}), 0)"
    if isinstance(start.literal, int):
        return Value(backward if start.literal < 0 else forward, INT)
    return Value(f"if({start.sql} < 0, {backward}, {forward})", INT)


def _locate(call: Call) -> Value:
    return position(call.sql(0), call.sql(1), call.args[2] if call.given(2) else None)


def _instr(call: Call) -> Value:
    return position(call.sql(1), call.sql(0), call.args[2] if call.given(2) else None)


def _one_character(call: Call, index: int) -> str:
    """Return the character to pad or trim with: the first of an argument, else a space."""
    if not call.given(index):
        return "' '"
    value = call.args[index]
    if isinstance(value.literal, str):
        return literal(value.literal[:1] or " ")
    return f"coalesce(nullif(left({value.sql}, 1), ''), ' ')"


def _pad(call: Call) -> Value:
    sql = f"{call.name.lower()}({call.sql(0)}, {call.sql(1)}, {_one_character(call, 2)})"
    return Value(sql, STRING)


def _trim(side: str) -> Function:
    def build(call: Call) -> Value:
        return Value(f"trim({side} {_one_character(call, 1)} FROM {call.sql(0)})", STRING)

    return Function(1, 2, build)


def _pattern(call: Call, index: int, flags_at: int) -> str:
    """Return a regular expression with the flags of another argument inside it."""
    if not call.given(flags_at):
        return call.sql(index)
    flags = call.word(flags_at, "the flags")
    for flag in flags:
        if flag not in "icnm":
            raise UserError(f"{call.name}: '{flag}' is not a flag. Flags: i, c, n, m.")
    inline = "".join(FLAGS[f] for f in dict.fromkeys(flags) if f in "nm")
    # Of i and c, the one said last counts.
    if flags.rfind("i") > flags.rfind("c"):
        inline += "iu"
    return f"concat('(?{inline})', {call.sql(index)})" if inline else call.sql(index)


def _regexp_replace(call: Call) -> Value:
    sql = f"regexp_replace({call.sql(0)}, {_pattern(call, 1, 3)}, {call.sql(2)})"
    return Value(sql, STRING)


def _regexp_like(call: Call) -> Value:
    return Value(f"regexp_like({call.sql(0)}, {_pattern(call, 1, 2)})", BOOLEAN)


def _regexp_substr(call: Call) -> Value:
    """Take the text, pattern, position, occurrence, flags and group, all but two optional."""
    subject, pattern = call.sql(0), _pattern(call, 1, 4)
    if not any(call.given(i) for i in (2, 3, 5)):
        return Value(f"regexp_substr({subject}, {pattern})", STRING)
    if call.given(2):
        subject = f"substring({subject}, {call.sql(2)})"
    occurrence = call.sql(3) if call.given(3) else "1"
    group = call.sql(5) if call.given(5) else "0"
    found = f"regexp_extract_all({subject}, {pattern}, {group})"
    return Value(f"get({found}, {occurrence} - 1)", STRING)


def _replace(call: Call) -> Value:
    new = f"coalesce({call.sql(2)}, '')" if call.given(2) else "''"
    return Value(f"replace({call.sql(0)}, {call.sql(1)}, {new})", STRING)


def _soundex(call: Call) -> Value:
    # Spark looks at the first character whatever it is; H2 skips what is no letter.
    letters = f"regexp_replace({call.sql(0)}, '[^A-Za-z]', '')"
    return Value(f"if({letters} = '', '0000', soundex({letters}))", STRING)


def _substring(call: Call) -> Value:
    length = f", {call.sql(2)}" if call.given(2) else ""
    return Value(f"nullif(substring({call.sql(0)}, {call.sql(1)}{length}), '')", STRING)


def _translate(call: Call) -> Value:
    # Characters without a counterpart stay; Spark would remove them.
    subject, find, new = (a.sql for a in call.args)
    if call.args[2] == NULL:
        return Value(subject, STRING)
    return Value(f"translate({subject}, left({find}, length({new})), {new})", STRING)


def _split(call: Call) -> Value:
    """Split as Java does: no empty texts at the end, NULL for an empty text."""
    subject = call.sql(0)
    by = call.sql(1) if call.given(1) else "''"
    shorter = f"regexp_replace({subject}, concat('(?:', {by}, ')+$'), '')"
    parts = f"if({shorter} = '', cast(array() AS array<string>), split({shorter}, {by}))"
    return Value(f"if({subject} = '', NULL, {parts})", STRINGS)


def _to_base64(call: Call) -> Value:
    if call.kind(0) == "bytes":
        return Value(f"base64({call.sql(0)})", STRING)
    return Value(f"base64(cast({as_text(call.args[0], call.kind(0))} AS binary))", STRING)


TEXT = {
    "ASCII": Function(1, 1, _ascii),
    "BIT_LENGTH": template("cast(bit_length({0}) AS bigint)", type=BIGINT),
    "CHAR_LENGTH": template("cast(char_length({0}) AS bigint)", type=BIGINT),
    "LENGTH": template("cast(char_length({0}) AS bigint)", type=BIGINT),
    "OCTET_LENGTH": template("cast(octet_length({0}) AS bigint)", type=BIGINT),
    "CHAR": Function(1, 1, _char),
    "CHR": Function(1, 1, _char),
    "CONCAT": Function(1, None, concat),
    "CONCAT_WS": Function(2, None, _concat_ws),
    "HEXTORAW": Function(1, 1, _hextoraw),
    "RAWTOHEX": Function(1, 1, _rawtohex),
    "INSERT": Function(4, 4, _insert),
    "LOWER": template("lower({0})", type=STRING),
    "LCASE": template("lower({0})", type=STRING),
    "UPPER": template("upper({0})", type=STRING),
    "UCASE": template("upper({0})", type=STRING),
    "LEFT": template("left({0}, {1})", 2, STRING),
    "RIGHT": template("right({0}, {1})", 2, STRING),
    "LOCATE": Function(2, 3, _locate),
    "INSTR": Function(2, 3, _instr),
    "POSITION": template("coalesce(locate({0}, {1}), 0)", 2, INT),
    "LPAD": Function(2, 3, _pad),
    "RPAD": Function(2, 3, _pad),
    "LTRIM": _trim("LEADING"),
    "RTRIM": _trim("TRAILING"),
    "TRIM": _trim("BOTH"),
    "REGEXP_REPLACE": Function(3, 4, _regexp_replace),
    "REGEXP_LIKE": Function(2, 3, _regexp_like),
    "REGEXP_SUBSTR": Function(2, 6, _regexp_substr),
    "REPEAT": template("repeat({0}, {1})", 2, STRING),
    "REPLACE": Function(2, 3, _replace),
    "SOUNDEX": Function(1, 1, _soundex),
    "SPACE": template("space({0})", type=STRING),
    "SUBSTRING": Function(2, 3, _substring),
    "SUBSTR": Function(2, 3, _substring),
    "TRANSLATE": Function(3, 3, _translate),
    "SPLIT": Function(1, 2, _split),
    "TO_BASE64": Function(1, 1, _to_base64),
    "FROM_BASE64": template("cast(unbase64({0}) AS string)", type=STRING),
}
