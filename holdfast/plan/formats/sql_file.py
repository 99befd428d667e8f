"""SQL job files: `CREATE TABLE` names sources and sinks, `INSERT INTO ... SELECT` wires them.

    /* config
    env { parallelism = 1 }
    */
    CREATE TABLE a WITH ('connector' = 'FakeSource', 'type' = 'source', 'row.num' = '5');
    CREATE TABLE b AS SELECT id FROM a;
    CREATE TABLE c WITH ('connector' = 'Console', 'type' = 'sink');
    INSERT INTO c SELECT * FROM b;

`SELECT *` without more wires two tables directly; any other query becomes a Sql transform.
"""

import json
from dataclasses import dataclass, replace

from holdfast.errors import SourceLocation
from holdfast.model.job import Role
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.formats.hocon import Given, Warn, parse_hocon, parse_value
from holdfast.plan.formats.sql_tokens import Statement, Token, comments, statements
from holdfast.plan.shape import NAME
from holdfast.plan.syntax import At, LineIndex, Unreadable, merged

_CONFIG = "config"


@dataclass(frozen=True, slots=True)
class _Table:
    """A source or a sink; a transform has no block here, only its name is needed."""

    role: Role
    block: Block


def parse_sql(text: str, file: str, given: Given, warn: Warn) -> Block:
    """Return the tree of a SQL job file.  Raises Unreadable at the first mistake."""
    lines = LineIndex(file, text)
    config = _config(text, lines, given, warn)
    job = _Job(warn)
    others = [s for s in statements(text, lines) if not job.declare(s)]
    for statement in others:
        job.wire(statement)
    start = lines.at(0)
    sources = [t.block for t in job.tables.values() if t.role is Role.SOURCE]
    if not sources:
        raise Unreadable(
            start,
            "The file has no source. Write CREATE TABLE ... WITH ('connector' = ...,"
            " 'type' = 'source').",
        )
    if not job.sinks:
        raise Unreadable(start, "Nothing is written. Write INSERT INTO sink SELECT * FROM source.")
    parts = {"source": sources, "transform": job.transforms, "sink": job.sinks}
    entries = (Entry(key, Items(tuple(p), start), start) for key, p in parts.items())
    return Block((*config.entries, *entries), start)


def _config(text: str, lines: LineIndex, given: Given, warn: Warn) -> Block:
    """Return what the comments that start with the word `config` say, in HOCON."""
    found = Block((), lines.at(0))
    for start, inner in comments(text):
        word, *_ = inner.split(None, 1) or [""]
        if word != _CONFIG:
            continue
        # Blanks take the place of all before it, so that places in the comment are the file's.
        body = inner.replace(_CONFIG, " " * len(_CONFIG), 1)
        before = "".join(c if c == "\n" else " " for c in text[:start])
        block = parse_hocon(before + body, lines.file, None, given, warn)
        for entry in block.entries:
            if entry.key in tuple(Role):
                raise Unreadable(
                    entry.place, f"{entry.key} comes from CREATE TABLE here. Remove the block."
                )
        found = merged(found, block)
    return found


class _Job:
    """What the statements read so far define."""

    def __init__(self, warn: Warn) -> None:
        self.warn = warn
        self.tables: dict[str, _Table] = {}
        self.transforms: list[Block] = []
        self.sinks: list[Block] = []
        self.queries = 0

    def declare(self, statement: Statement) -> bool:
        """Take a CREATE TABLE ... WITH; say whether it was one."""
        if not (statement.starts("CREATE", "TABLE") and statement.has("WITH")):
            return False
        name = self._new_name(statement)
        if statement.peek("("):
            self.warn(statement.place, f"The columns of {name.text} are not used. Remove them.")
            statement.skip_parentheses()
        statement.expect("WITH")
        statement.expect("(")
        options = []
        while not statement.peek(")"):
            options.append(read_option(statement))
            if not statement.take(","):
                break
        statement.expect(")")
        statement.expect_end()
        self.tables[name.text] = _table(name, options)
        return True

    def wire(self, statement: Statement) -> None:
        """Take a CREATE TABLE ... AS SELECT or an INSERT INTO ... SELECT."""
        if statement.starts("CREATE", "TABLE"):
            name = self._new_name(statement)
            if not statement.take("AS"):
                raise Unreadable(
                    statement.place,
                    f"Found {statement.shown} where WITH (...) or AS SELECT should stand.",
                )
            self._transform(statement, name.text, self._from(statement))
            self.tables[name.text] = _Table(Role.TRANSFORM, Block((), name.place))
        elif statement.starts("INSERT", "INTO"):
            self._insert(statement)
        else:
            raise Unreadable(
                statement.place,
                f"Found {statement.shown}. Only CREATE TABLE and INSERT INTO may stand here.",
            )

    def _new_name(self, statement: Statement) -> Token:
        if statement.take("IF"):
            statement.expect("NOT")
            statement.expect("EXISTS")
        name = statement.name()
        if name.text in self.tables:
            raise Unreadable(name.place, f"The table {name.text} occurs twice. Rename one.")
        return name

    def _insert(self, statement: Statement) -> None:
        name = statement.name()
        sink = self.tables.get(name.text)
        if sink is None or sink.role is not Role.SINK:
            raise Unreadable(name.place, f"There is no sink {name.text}.{self._known(Role.SINK)}")
        if statement.peek("("):
            raise Unreadable(
                statement.place, "INSERT INTO takes no columns. Name them in the SELECT."
            )
        table = self._from(statement)
        output = table.text
        if not statement.is_direct:
            self.queries += 1
            output = f"{table.text}__temp{self.queries}"
            self._transform(statement, output, table)
        wired = Entry("plugin_input", Scalar(output, output, table.place), table.place)
        self.sinks.append(replace(sink.block, entries=(*sink.block.entries, wired)))

    def _from(self, statement: Statement) -> Token:
        """Return the table that a SELECT reads, which must be a source or a transform."""
        table = statement.read_from()
        known = self.tables.get(table.text)
        if known is None or known.role is Role.SINK:
            hint = self._known(Role.SOURCE, Role.TRANSFORM)
            raise Unreadable(table.place, f"There is no table {table.text} to read.{hint}")
        return table

    def _transform(self, statement: Statement, output: str, table: Token) -> None:
        place = statement.place
        values = {
            NAME: Scalar("Sql", "Sql", place),
            "plugin_input": Scalar(table.text, table.text, table.place),
            "plugin_output": Scalar(output, output, place),
            "query": Scalar(statement.query, statement.query, place),
        }
        entries = (Entry(key, node, node.place) for key, node in values.items())
        self.transforms.append(Block(tuple(entries), place))

    def _known(self, *roles: Role) -> str:
        names = [name for name, table in self.tables.items() if table.role in roles]
        return f" Known: {', '.join(names)}." if names else " Create it WITH (...)."


def _table(name: Token, options: list[Entry]) -> _Table:
    """Return the plug-in that the options of a CREATE TABLE describe."""
    given = {e.key: e for e in options}
    connector, kind = given.pop("connector", None), given.pop("type", None)
    if connector is None or not _text(connector.node):
        raise Unreadable(
            name.place, f"{name.text} needs a 'connector' = '...' that names its kind."
        )
    role = _text(kind.node).lower() if kind else ""
    if role not in (Role.SOURCE, Role.SINK):
        place: SourceLocation = kind.node.place if kind else name.place
        raise Unreadable(place, f"{name.text} needs 'type' = 'source' or 'type' = 'sink'.")
    # The tables are wired by INSERT alone; what an option says of it would contradict.
    given.pop("plugin_input", None)
    given.pop("plugin_output", None)
    entries = [Entry(NAME, connector.node, connector.place), *given.values()]
    if role == Role.SOURCE:
        output = Scalar(name.text, name.text, name.place)
        entries.append(Entry("plugin_output", output, name.place))
    return _Table(Role(role), Block(tuple(entries), name.place))


def _text(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else ""


def read_option(statement: Statement) -> Entry:
    """Take one option; a value in braces or brackets becomes a block or a list."""
    key = statement.string("an option's name")
    statement.expect("=")
    value = statement.string(f"the value of '{key.text}'")
    return Entry(key.text, _node(value, _at(statement, value)), key.place)


def _node(value: Token, at: At) -> Node:
    inner = value.text.strip()
    if (inner[:1], inner[-1:]) in (("{", "}"), ("[", "]")):
        return parse_value(value.text, at)
    text = _unescaped(value.text)
    return Scalar(text, text, value.place)


def _unescaped(text: str) -> str:
    r"""Return text with `\t`, `\n` and other escapes replaced, as SeaTunnel does.

    Text that is no proper escape, such as a regular expression, stays as it is.
    """
    if "\\" not in text or '"' in text:
        return text
    try:
        made: str = json.loads(f'"{text}"', strict=False)
        made.encode()
    except (json.JSONDecodeError, UnicodeEncodeError):
        return text
    return made


def _at(statement: Statement, value: Token) -> At:
    """Return how to find a place in a string: a doubled quote in the file is one in the text."""
    places = [value.start + 1]
    raw = statement.text[value.start + 1 : value.end - 1]
    offset = 0
    while offset < len(raw):
        offset += 2 if raw.startswith("''", offset) else 1
        places.append(value.start + 1 + offset)
    return lambda i: statement.lines.at(places[min(i, len(places) - 1)])
