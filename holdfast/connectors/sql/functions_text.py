"""Text functions: SeaTunnel's (after H2) on the left, Spark's on the right.

They differ in more than names: CONCAT skips NULL, pads and trims take one character, positions
may count from the end, an empty SUBSTRING is NULL, and lengths are bigint.
"""

from holdfast.connectors.sql.casts import as_text, shown
from holdfast.connectors.sql.jvm_functions import GROUP
from holdfast.connectors.sql.values import (
    BIGINT,
    BOOLEAN,
    INT,
    NULL,
    STRING,
    Function,
    FunctionCall,
    SqlValue,
    literal,
    template,
)
from holdfast.errors import UserError
from holdfast.model.types import Type

FLAGS = {"i": "i", "n": "s", "m": "m"}
STRINGS = Type("array", parts=(STRING,))

BASE64 = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?\z"
"""What Java's decoder takes: the padding at the end may be missing, and nothing else."""


def concat(call: FunctionCall) -> SqlValue:
    """Join all that is not NULL; nothing at all gives an empty text."""
    parts = ", ".join(as_text(a, call.kind(i), call.scope) for i, a in enumerate(call.args))
    return SqlValue(f"concat_ws('', {parts})", STRING)


def _concat_ws(call: FunctionCall) -> SqlValue:
    """Join with a separator; an array is one part, an empty text where it holds nothing."""
    by = f"coalesce({call.sql(0)}, '')"
    parts = []
    for i, value in enumerate(call.args[1:], start=1):
        if call.kind(i) == "array":
            parts.append(f"array_join(cast({value.sql} AS array<string>), {by})")
        else:
            parts.append(as_text(value, call.kind(i), call.scope))
    return SqlValue(f"concat_ws({by}, {', '.join(parts)})", STRING)


def _ascii(call: FunctionCall) -> SqlValue:
    return SqlValue(f"if({call.sql(0)} = '', NULL, ascii({call.sql(0)}))", INT)


def _char(call: FunctionCall) -> SqlValue:
    # Spark's chr stops at 255; SeaTunnel's covers all of UTF-16.
    code = f"lpad(hex(cast({call.sql(0)} AS int) & 65535), 4, '0')"
    return SqlValue(f"decode(unhex({code}), 'UTF-16BE')", STRING)


def _hextoraw(call: FunctionCall) -> SqlValue:
    sql = call.sql(0)
    rule = "' has not four digits for each character.'"
    wrong = call.scope.fail("'HEXTORAW: '", shown(sql), rule)
    good = f"decode(to_binary({sql}, 'hex'), 'UTF-16BE')"
    return SqlValue(f"if(length({sql}) % 4 <> 0, cast({wrong} AS string), {good})", STRING)


def _rawtohex(call: FunctionCall) -> SqlValue:
    if call.kind(0) == "bytes":
        return SqlValue(f"lower(hex({call.sql(0)}))", STRING)
    return SqlValue(
        f"lower(hex(encode({as_text(call.args[0], call.kind(0), call.scope)}, 'UTF-16BE')))", STRING
    )


def _insert(call: FunctionCall) -> SqlValue:
    old, start, length, new = (a.sql for a in call.args)
    return SqlValue(
        f"CASE WHEN {old} IS NULL THEN {new} WHEN {new} IS NULL THEN {old}"
        f" WHEN {start} < 1 OR {length} <= 0 OR {new} = '' OR {start} > length({old}) + 1"
        f" THEN {old}"
        f" ELSE concat(left({old}, {start} - 1), {new}, substring({old}, {start} + {length})) END",
        STRING,
    )


def position(search: str, within: str, start: SqlValue | None = None) -> SqlValue:
    """Return where a text begins in another, from 1; 0 where it does not, or there is no text.

    A negative start looks for the last place at or before that many characters from the end.
    """
    if start is None:
        return SqlValue(f"coalesce(locate({search}, {within}), 0)", INT)
    from_place = f"greatest({start.sql}, 1)"
    nothing = f"least({from_place}, length({within}) + 1)"
    forward = f"locate({search}, {within}, {from_place})"
    # An empty text is found where the search begins; Spark always finds it at the first place.
    forward = f"coalesce(if({search} = '', {nothing}, {forward}), 0)"
    part = f"left({within}, length({within}) + {start.sql} + length({search}))"
    found = f"locate(reverse({search}), reverse({part}))"
    place = f"length({part}) - {found} - length({search}) + 2"
    backward = f"coalesce(if({found} = 0 OR length({within}) + {start.sql} < 0, 0, {place}), 0)"
    if isinstance(start.literal, int):
        return SqlValue(backward if start.literal < 0 else forward, INT)
    return SqlValue(f"if({start.sql} < 0, {backward}, {forward})", INT)


def _locate(call: FunctionCall) -> SqlValue:
    return position(call.sql(0), call.sql(1), call.args[2] if call.given(2) else None)


def _instr(call: FunctionCall) -> SqlValue:
    return position(call.sql(1), call.sql(0), call.args[2] if call.given(2) else None)


def _one_character(call: FunctionCall, index: int) -> str:
    """Return the character to pad or trim with: the first of an argument, else a space."""
    if not call.given(index):
        return "' '"
    value = call.args[index]
    if isinstance(value.literal, str):
        return literal(value.literal[:1] or " ")
    return f"coalesce(nullif(left({value.sql}, 1), ''), ' ')"


def _pad(call: FunctionCall) -> SqlValue:
    sql = f"{call.name.lower()}({call.sql(0)}, {call.sql(1)}, {_one_character(call, 2)})"
    return SqlValue(sql, STRING)


def _trim(side: str) -> Function:
    def build(call: FunctionCall) -> SqlValue:
        return SqlValue(f"trim({side} {_one_character(call, 1)} FROM {call.sql(0)})", STRING)

    return Function(1, 2, build)


def _pattern(call: FunctionCall, index: int, flags_at: int) -> str:
    """Return a regular expression with the flags of another argument inside it.

    Where case does not matter, that of every letter does not, as SeaTunnel asks of Java.
    """
    inline = "u" if "(?" in str(call.args[index].literal or "(?") else ""
    if call.given(flags_at):
        flags = call.word(flags_at, "the flags")
        for flag in flags:
            if flag not in "icnm":
                raise UserError(f"{call.name}: '{flag}' is not a flag. Flags: i, c, n, m.")
        inline += "".join(FLAGS[f] for f in dict.fromkeys(flags) if f in "nm")
        # Of i and c, the one said last counts.
        if flags.rfind("i") > flags.rfind("c"):
            inline = f"iu{inline}".replace("uu", "u")
    return f"concat('(?{inline})', {call.sql(index)})" if inline else call.sql(index)


def _regexp_replace(call: FunctionCall) -> SqlValue:
    sql = f"regexp_replace({call.sql(0)}, {_pattern(call, 1, 3)}, {call.sql(2)})"
    return SqlValue(sql, STRING)


def _regexp_like(call: FunctionCall) -> SqlValue:
    return SqlValue(f"regexp_like({call.sql(0)}, {_pattern(call, 1, 2)})", BOOLEAN)


def _regexp_substr(call: FunctionCall) -> SqlValue:
    """Take the text and pattern, or also position, occurrence, flags and group."""
    if 2 < len(call) < 6:
        return SqlValue("cast(NULL AS string)", STRING)
    for index, what in ((2, "the position"), (3, "the occurrence")):
        at = call.whole(index) if call.given(index) else 1
        if at is not None and at < 1:
            raise UserError(f"{call.name}: {what} counts from 1, so it cannot be {at}.")
    start, number = (call.sql(i) if call.given(i) else "1" for i in (2, 3))
    group = call.sql(5) if call.given(5) else "0"
    counts = ", ".join(f"cast({sql} AS int)" for sql in (start, number, group))
    return SqlValue(f"{GROUP}({call.sql(0)}, {_pattern(call, 1, 4)}, {counts})", STRING)


def _replace(call: FunctionCall) -> SqlValue:
    new = f"coalesce({call.sql(2)}, '')" if call.given(2) else "''"
    return SqlValue(f"replace({call.sql(0)}, {call.sql(1)}, {new})", STRING)


def _soundex(call: FunctionCall) -> SqlValue:
    # Spark looks at the first character whatever it is; H2 skips what is no letter.
    letters = f"regexp_replace({call.sql(0)}, '[^A-Za-z]', '')"
    return SqlValue(f"if({letters} = '', '0000', soundex({letters}))", STRING)


def _substring(call: FunctionCall) -> SqlValue:
    length = f", {call.sql(2)}" if call.given(2) else ""
    return SqlValue(f"nullif(substring({call.sql(0)}, {call.sql(1)}{length}), '')", STRING)


def _translate(call: FunctionCall) -> SqlValue:
    # Characters without a counterpart stay; Spark would remove them.
    subject, find, new = (a.sql for a in call.args)
    if call.args[2] == NULL:
        return SqlValue(subject, STRING)
    if not call.args[2].written:
        new = f"coalesce({new}, '')"
    return SqlValue(f"translate({subject}, left({find}, length({new})), {new})", STRING)


def _split(call: FunctionCall) -> SqlValue:
    """Split as Java does: no empty texts at the end, NULL for an empty text."""
    subject = call.sql(0)
    by = call.sql(1) if call.given(1) else "''"
    # The inner function is Spark's way to give the parts a name.
    last = "coalesce(array_max(transform(p, (x, i) -> if(x = '', 0, i + 1))), 0)"
    parts = f"transform(array(split({subject}, {by})), p -> slice(p, 1, {last}))[0]"
    return SqlValue(f"if({subject} = '', NULL, {parts})", STRINGS)


def _to_base64(call: FunctionCall) -> SqlValue:
    value = call.sql(0)
    if call.kind(0) != "bytes":
        value = f"cast({as_text(call.args[0], call.kind(0), call.scope)} AS binary)"
    # Spark breaks the line after 76 characters.
    return SqlValue(f"replace(base64({value}), '\\r\\n', '')", STRING)


def _from_base64(call: FunctionCall) -> SqlValue:
    """Decode what is base64 by the letter; Spark would skip whatever is not."""
    value = call.sql(0)
    decoded = f"make_valid_utf8(cast(unbase64({value}) AS string))"
    rule = "' is not base64: A to Z, a to z, 0 to 9, + and /, four to a group, = at the end.'"
    checked = f"if({value} RLIKE {literal(BASE64)}, {decoded}, NULL)"
    said = ("'FROM_BASE64: '", shown(value), rule)
    return SqlValue(call.scope.checked(checked, f"{value} IS NULL", STRING, *said), STRING)


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
    "FROM_BASE64": Function(1, 1, _from_base64),
}
