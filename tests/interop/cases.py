"""Every type with the values at its edges, as Spark SQL, and predicates made from them.

A row has one value of each column; there are as many rows as the longest list has values, and one
without any.  Predicates are made from the same table: each asks for a value at an edge.
"""

from collections.abc import Iterator

LONG = "repeat('żółw 🐢 ', 60)"

VALUES: dict[str, tuple[str, tuple[str, ...]]] = {
    # column: its type and its values
    "f": ("BOOLEAN", ("true", "false")),
    "i8": ("TINYINT", ("-128", "127", "0")),
    "i16": ("SMALLINT", ("-32768", "32767", "1")),
    "i32": ("INT", ("-2147483648", "2147483647", "0", "7")),
    "i64": ("BIGINT", ("-9223372036854775808", "9223372036854775807", "0", "4294967297")),
    "r32": ("FLOAT", ("'-Infinity'", "-1.5", "'-0.0'", "0.0", "1.4E-45", "3.4028235E38",
                      "'Infinity'", "'NaN'")),
    "r64": ("DOUBLE", ("'-Infinity'", "-1.7976931348623157E308", "'-0.0'", "0.0", "4.9E-324",
                       "0.1", "1.7", "'Infinity'", "'NaN'")),
    "d5": ("DECIMAL(5,2)", ("-999.99", "0.01", "0.00", "999.99")),
    "d18": ("DECIMAL(18,4)", ("-99999999999999.9999", "0.0001", "99999999999999.9999")),
    "d38": ("DECIMAL(38,18)", ("-99999999999999999999.999999999999999999", "0.000000000000000001",
                               "12345678901234567890.123456789012345678")),
    "s": ("STRING", ("''", "'a'", "'ż 😀'", LONG, "'\"\\'\\\\\\n\\t%'", "'null'",
                     "'__HIVE_DEFAULT_PARTITION__'")),
    "b": ("BINARY", ("X''", "X'00'", "X'FF00FF'", "X'80'")),
    "day": ("DATE", ("'0001-01-01'", "'1582-10-10'", "'1969-12-31'", "'2024-02-29'",
                     "'9999-12-31'")),
    "at": ("TIMESTAMP", ("'0001-01-01 00:00:00Z'", "'1969-12-31 23:59:59.999999Z'",
                         "'2024-03-10 07:30:00.123456Z'", "'9999-12-31 23:59:59.999999Z'")),
    "wall": ("TIMESTAMP_NTZ", ("'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'",
                               "'2024-03-10 02:30:00.123456'", "'9999-12-31 23:59:59.999999'")),
}  # fmt: skip
"""Two instants and wall clocks are in the hour that New York skips."""

NESTED = {
    "many": "array(CAST(NULL AS STRING), '', 'x{n}')",
    "pairs": "map('', NULL, 'k{n}', CAST({n} AS DECIMAL(20,5)))",
    "box": "named_struct('a', {n}, 'deep', array(named_struct('m', map({n}, array(1.5D)))))",
}
NO_ROW = {
    "many": "CAST(NULL AS ARRAY<STRING>)", "pairs": "CAST(NULL AS MAP<STRING,DECIMAL(20,5)>)",
    "box": "CAST(NULL AS STRUCT<a: INT, deep: ARRAY<STRUCT<m: MAP<INT, ARRAY<DOUBLE>>>>>)",
}  # fmt: skip

NULLS_ASKED = ("f", "r64", "s", "at")

ROWS = max(len(values) for _, values in VALUES.values()) + 1


def rows_sql(columns: list[str] | None = None, *, nested: bool = True) -> str:
    """Return a query for all rows: some columns, with an id, each in the order of its values."""
    chosen = columns if columns is not None else list(VALUES)
    lines = []
    for number in range(ROWS):
        fields = [f"CAST({number} AS BIGINT) AS id"]
        for name in chosen:
            kind, values = VALUES[name]
            value = values[number] if number < len(values) else "NULL"
            fields.append(f"CAST({value} AS {kind}) AS {name}")
        for name, value in NESTED.items() if nested else ():
            said = NO_ROW[name] if number == ROWS - 1 else value.format(n=number)
            fields.append(f"{said} AS {name}")
        lines.append(f"SELECT {', '.join(fields)}")
    return " UNION ALL ".join(lines)


def predicates(columns: list[str] | None = None) -> Iterator[str]:
    """Yield predicates for each column: at, above and below values at the edges."""
    for name in columns if columns is not None else VALUES:
        kind, values = VALUES[name]
        first, middle, last = (f"CAST({values[n]} AS {kind})" for n in (0, len(values) // 2, -1))
        yield f"{name} = {last}"
        yield f"{name} > {middle}"
        yield f"{name} <= {first}"
        if name in NULLS_ASKED:
            yield f"{name} IS NULL"
    if columns is None:
        yield "r64 > 1.7D AND r64 < CAST('Infinity' AS DOUBLE)"
        yield "NOT (i32 < 7)"
        yield "s LIKE 'ż%'"
        yield "s IN ('a', '', 'null')"


def read_sql(names: list[str]) -> str:
    """Return what is selected of a table: days and instants as numbers, columns by their names."""
    said = []
    for name in sorted(names):
        kind = VALUES[name][0] if name in VALUES else ""
        if kind == "DATE":
            said.append(f"unix_date({name}) AS {name}")
        elif kind == "TIMESTAMP":
            said.append(f"unix_micros({name}) AS {name}")
        else:
            said.append(name)
    return ", ".join(said)
