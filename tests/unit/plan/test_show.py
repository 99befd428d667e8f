"""What a plan looks like."""

import json
from typing import Any

from plan_trees import checked, plugin, registry, tree

from holdfast.connect.registry import Registry
from holdfast.model.job import JobPlan
from holdfast.model.table import Column, Key, Table, TablePath
from holdfast.model.tree import Block
from holdfast.model.types import parse_type
from holdfast.plan.masking import masked, masked_text
from holdfast.plan.show import draw_mermaid, draw_text, plan_data, plan_json

ORDERS = Table(
    TablePath.parse("shop.public.orders"),
    tuple(
        Column(name, parse_type(kind))
        for name, kind in {
            "id": "bigint",
            "customer": "string",
            "amount": "decimal(10,2)",
            "lines": "array<{sku = string, count = int}>",
            "created_at": "timestamp",
            "tags": "map<string, string>",
        }.items()
    ),
    Key("pk", ("id",)),
)
TABLES = {"Source[0]-Rows": [ORDERS], "Source[1]-Rows": [Table(TablePath("users"))]}


def shop() -> JobPlan:
    return checked(
        tree(
            {
                "env": {
                    "job.name": "shop",
                    "job.mode": "BATCH",
                    "checkpoint.interval": 10000,
                    "tag_filter": {"zone": "a"},
                    "read_limit.rows_per_second": 5,
                },
                "source": [
                    plugin("Rows", _out="orders", parallelism=4, count=9, pin="1234"),
                    plugin("Rows", _out="users"),
                    plugin("Rows", _out="log"),
                ],
                "transform": [
                    plugin("Join", _in="orders,users", _out="joined"),
                    plugin("Rename", to="x" * 80, _in="joined", _out="clean"),
                ],
                "sink": [
                    plugin("Print", _in="clean"),
                    plugin("Both", _in=["joined", "log"]),
                    plugin("Print", _in="log"),
                ],
            }
        )
    )


def small(**env: Any) -> JobPlan:
    return checked(tree({"env": env, "source": [plugin("Rows")], "sink": [plugin("Print")]}))


SHOP = """\
shop (job.conf)
  BATCH, parallelism 1
  a checkpoint every 10 s
  a failed pipeline starts again up to 3 times, after 3 s
  each reader takes at most 5 rows a second
  on workers tagged zone = a

Pipeline 1: 3 sources, 2 transforms, 3 sinks, 2 tasks
  Task p1-t1
  ├─ Source[0]-Rows, as orders, parallelism 4
  │  │  count = 9, pin = ******
  │  │  shop.public.orders: id bigint (key), customer string, amount decimal(10,2),
  │  │    lines array<{sku = string, count = int}>, created_at timestamp, tags map<string, string>
  │  └─ Transform[0]-Join, as joined, parallelism 4
  │     ├─ Transform[1]-Rename, as clean, parallelism 4
  │     │  │  to = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
  │     │  └─ Sink[0]-Print, parallelism 4, at-least-once
  │     └─ Sink[1]-Both, parallelism 4, exactly-once
  └─ Source[1]-Rows, as users
     │  users: columns not known yet
     └─ Transform[0]-Join (drawn above)
  Task p1-t2
  └─ Source[2]-Rows, as log
     ├─ Sink[1]-Both, parallelism 4, exactly-once
     └─ Sink[2]-Print, at-least-once
"""

SMALL = """\
SeaTunnel_Job (job.conf)
  BATCH, parallelism 1
  one checkpoint, at the end
  a failed pipeline fails the job

Pipeline 1: 1 source, 1 sink, 1 task
  Task p1-t1
  └─ Source[0]-Rows
     └─ Sink[0]-Print, at-least-once
"""

MERMAID = """\
flowchart LR
  subgraph pipeline1["Pipeline 1"]
    source0[("Source[0]-Rows<br/>parallelism 4<br/>shop.public.orders")]
    source1[("Source[1]-Rows<br/>users")]
    transform3["Transform[0]-Join<br/>parallelism 4"]
    transform4["Transform[1]-Rename<br/>parallelism 4"]
    sink5[("Sink[0]-Print<br/>parallelism 4<br/>at-least-once")]
    sink6[("Sink[1]-Both<br/>parallelism 4<br/>exactly-once")]
    source2[("Source[2]-Rows")]
    sink7[("Sink[2]-Print<br/>at-least-once")]
  end
  source0 -->|"orders"| transform3
  source1 -->|"users"| transform3
  transform3 -->|"joined"| transform4
  transform4 -->|"clean"| sink5
  transform3 -->|"joined"| sink6
  source2 -->|"log"| sink6
  source2 -->|"log"| sink7
"""


def test_a_job_is_drawn_as_a_tree() -> None:
    assert draw_text(shop(), registry(), TABLES) == SHOP


def test_a_small_job_needs_nothing_else() -> None:
    assert draw_text(small(**{"job.retry.times": 0}), registry()) == SMALL


def test_settings_are_said_in_words() -> None:
    job = small(
        **{
            "checkpoint.interval": 1500,
            "job.retry.times": 1,
            "read_limit.bytes_per_second": 7,
        }
    )
    assert draw_text(job, registry()).splitlines()[2:5] == [
        "  a checkpoint every 1500 ms",
        "  a failed pipeline starts again once, after 3 s",
        "  each reader takes at most 7 bytes a second",
    ]


def test_a_job_is_drawn_as_a_flowchart() -> None:
    assert draw_mermaid(shop(), registry(), TABLES) == MERMAID


def test_names_cannot_break_out_of_a_flowchart() -> None:
    sources = [plugin("Rows", _out='"] --> x & <b>')]
    job = checked(tree({"source": sources, "sink": [plugin("Print")]}))
    assert '-->|"#quot;] --> x #amp; #lt;b>"|' in draw_mermaid(job, registry())


def test_a_job_as_data_has_stages_and_pipelines() -> None:
    shown: Any = json.loads(plan_json(shop(), registry(), TABLES))
    assert shown["stages"][0] == {
        "id": "Source[0]-Rows",
        "role": "source",
        "plugin": "Rows",
        "inputs": [],
        "output": "orders",
        "parallelism": 4,
        "line": 9,
        "options": {"plugin_output": "orders", "parallelism": 4, "count": 9, "pin": "******"},
        "tables": [
            {
                "path": "shop.public.orders",
                "columns": [
                    {"name": c.name, "type": str(c.type), "nullable": True} for c in ORDERS.columns
                ],
                "primary_key": ["id"],
                "partitions": [],
                "changelog": False,
                "comment": "",
            }
        ],
    }
    assert shown["stages"][6]["guarantee"] == "exactly-once"
    assert shown["pipelines"] == [
        {
            "id": 1,
            "tasks": [
                {
                    "id": "p1-t1",
                    "stages": [
                        "Source[0]-Rows",
                        "Source[1]-Rows",
                        "Transform[0]-Join",
                        "Transform[1]-Rename",
                        "Sink[0]-Print",
                        "Sink[1]-Both",
                    ],
                },
                {"id": "p1-t2", "stages": ["Source[2]-Rows", "Sink[1]-Both", "Sink[2]-Print"]},
            ],
        }
    ]


def test_options_of_a_plugin_that_is_not_here_are_not_shown() -> None:
    shown: Any = plan_data(shop(), Registry())
    assert shown["stages"][0]["options"] == dict.fromkeys(
        ("plugin_output", "parallelism", "count", "pin"), "******"
    )


def test_what_looks_like_a_credential_is_masked_wherever_it_stands() -> None:
    block: Block = tree(
        {
            "url": "jdbc:x://joe:hunter2@db/shop?user=joe&password=hunter2&ssl=true",
            "options": {"fs.s3a.secret.key": "hunter2", "db_password": "hunter2", "path": "/x"},
            "list": [{"api_key": "hunter2", "rows": 3}],
        }
    )
    assert masked(block, None) == {
        "url": "jdbc:x://joe:******@db/shop?user=joe&password=******&ssl=true",
        "options": {"fs.s3a.secret.key": "******", "db_password": "******", "path": "/x"},
        "list": [{"api_key": "******", "rows": 3}],
    }
    assert masked_text("select 1") == "select 1"
