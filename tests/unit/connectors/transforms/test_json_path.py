"""The JsonPath transform as a whole."""

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException

from holdfast.connect.rows import Rows
from holdfast.connectors.transforms.json_path import JsonPath
from holdfast.errors import UserError
from holdfast.model.types import Type, parse_type

LOOSE = (
    "{data:{c_string: this is a string,c_boolean: true,c_integer: 42,c_float: 3.14,"
    "c_double: 3.14,c_decimal: 10.55,c_date:'2023-10-29',c_datetime:\"16:12:43.459\"}}"
)
TYPES = {
    "c_string": ("string", "this is a string"),
    "c_boolean": ("boolean", True),
    "c_integer": ("int", 42),
    "c_double": ("double", 3.14),
    "c_decimal": ("decimal(4,2)", Decimal("10.55")),
    "c_date": ("date", dt.date(2023, 10, 29)),
    "c_datetime": ("time", dt.time(16, 12, 43, 459000)),
}


def column(path, dest="x", kind="string", src="data", **more):
    return {"src_field": src, "path": path, "dest_field": dest, "dest_type": kind, **more}


@pytest.fixture
def rows(frame):
    def made(*texts, ddl="data string"):
        return Rows.of("test.t", frame(ddl, *((t,) for t in texts)))

    return made


def shown(rows):
    return [tuple(r) for r in rows.frame.collect()]


def values(rows):
    return [r["x"] for r in rows.frame.collect()]


@pytest.mark.spark
def test_loose_json_gives_typed_columns(build, rows):
    columns = [column(f"$.data.{n}", n, kind) for n, (kind, _) in TYPES.items()]
    made = build(JsonPath, columns=columns).apply(rows(LOOSE))
    assert made.table.names == ("data", *TYPES)
    assert shown(made) == [(LOOSE, *(value for _, value in TYPES.values()))]
    assert made.table.column("c_decimal").type == parse_type("decimal(4,2)")
    assert made.table.column("c_datetime").type == Type("time")


@pytest.mark.spark
def test_one_entry_may_take_several_values(build, rows, frame):
    many = column(["$.a", "$.b"], ["a", "x"], ["string", "int"])
    made = build(JsonPath, columns=[many]).apply(rows('{"a":1,"b":2}'))
    assert shown(made) == [('{"a":1,"b":2}', "1", 2)]
    log = Rows.of("t", frame("data string, __kind string", ('{"a":1}', "DELETE")))
    made = build(JsonPath, columns=[column("$.a", "data", "int")]).apply(log)
    assert shown(made) == [(1, "DELETE")]


KINDS = [
    ("bigint", '"12"', 12),
    ("string", '{"z":1,"a":[2]}', '{"z":1,"a":[2]}'),
    ("string", "null", None),
    ("string", '"null"', "null"),
    ("bytes", '"YWJj"', b"abc"),
    ("timestamp", '"2023/10/29 10:11:12.5"', dt.datetime(2023, 10, 29, 10, 11, 12, 500000)),
    ("date", '"20231029"', dt.date(2023, 10, 29)),
    ("array<int>", '[1,"2",null]', [1, 2, None]),
    ("array<map<string, string>>", '[{"a":1,"b":{"c":2}}]', [{"a": "1", "b": '{"c":2}'}]),
    ("{a = int, b = array<date>}", '{"a":"1","b":["2023-10-29"]}', (1, [dt.date(2023, 10, 29)])),
]


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_each_type_is_read_from_numbers_and_text_alike(build, rows, mode):
    columns = [column(f"$.v{i}", f"x{i}", kind) for i, (kind, _, _) in enumerate(KINDS)]
    text = ",".join(f'"v{i}":{json}' for i, (_, json, _) in enumerate(KINDS))
    made = build(JsonPath, json=mode, columns=columns).apply(rows(f"{{{text}}}"))
    assert shown(made)[0][1:] == tuple(value for _, _, value in KINDS)


@pytest.mark.spark
def test_rows_arrays_maps_and_bytes_are_sources_too(build, frame):
    ddl = "r struct<a:int,b:array<int>,c:string>, l array<int>, m map<string,string>, b binary"
    source = frame(
        ddl,
        ({"a": None, "b": [1, 2], "c": "x"}, [7, 8], {"k": "v"}, b'{"q":5}'),
        (None, None, None, None),
    )
    columns = [
        column("$[2]", "c", src="r"),
        column("$[1][0]", "d", "int", src="r"),
        column("$[0]", "n", src="r"),
        column("$[1]", "e", "int", src="l"),
        column("$.k", "f", src="m"),
        column("$.q", "g", src="b"),
    ]
    for mode in ("lenient", "strict"):
        made = build(JsonPath, columns=columns, json=mode).apply(Rows.of("t", source))
        assert [tuple(r)[4:] for r in made.frame.collect()] == [
            ("x", 1, None, 8, "v", "5"),
            (None,) * 6,
        ]


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_errors_are_handled_as_asked(build, rows, mode):
    source = rows('{"a":1,"b":"x"}', '{"a":"?"}', '{"b":"y"}', "{", '{"a":null}', None)
    ints = column("$.a", kind="int")

    def made(row_way="FAIL", **more):
        given = {"json": mode, "row_error_handle_way": row_way, "columns": [ints | more]}
        return values(build(JsonPath, **given).apply(source))

    assert made(column_error_handle_way="SKIP") == [1, None, None, None, None, None]
    assert made(column_error_handle_way="SKIP_ROW") == [1, None, None]
    assert made(row_way="SKIP") == [1, None, None]
    assert made(row_way="SKIP", column_error_handle_way="SKIP")[1] is None
    with pytest.raises(PySparkException):
        made(row_way="SKIP", column_error_handle_way="FAIL")


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["lenient", "strict"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a":"4x"}', "'4x' is no int"),
        ('{"b":1}', "the path finds nothing"),
        ('{"a":', "it is not JSON"),
    ],
)
def test_a_failure_names_table_column_path_and_value(build, rows, mode, text, why):
    made = build(JsonPath, json=mode, columns=[column("$.a", kind="int")]).apply(rows(text))
    with pytest.raises(PySparkException) as error:
        made.frame.collect()
    assert (
        "Transform[0]-JsonPath: column 'x' of table test.t cannot be read from $.a of column"
        f" 'data': {why}"
    ) in str(error.value)


@pytest.mark.spark
def test_a_source_without_json_is_refused(build, rows):
    with pytest.raises(UserError, match=r"column 'data' of table test\.t is of type int, which"):
        build(JsonPath, columns=[column("$.a")]).apply(rows(1, ddl="data int"))
    with pytest.raises(UserError, match=r"no column 'dato'\. Did you mean 'data'"):
        build(JsonPath, columns=[column("$.a", src="dato")]).apply(rows("{}"))


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ({"columns": [column("$.a[")]}, "'$.a[' is not a JSON path"),
        ({"columns": [column(["$.a", "$.b"])]}, "2 paths for 1 columns. Give as many."),
        ({"columns": [column("$.a", kind="map<int, int>")]}, "Use map<string, int>"),
        ({"columns": [column("$.a"), column("$.b")]}, "'columns' names 'x' twice"),
        ({"columns": [column("$..a")], "json": "strict"}, "'$..a' is not a simple path"),
        ({"columns": [column("$.a", kind="inth")]}, "'inth' is not a type"),
        ({"columns": []}, "'columns' is empty"),
        ({}, "required option 'columns'"),
    ],
)
def test_mistakes_are_found_before_anything_runs(build, given, mistake):
    assert any(mistake in m for m in build.mistakes(JsonPath, **given))
