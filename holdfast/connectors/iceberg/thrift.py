"""As much of Thrift's compact protocol as it takes to change the schema in a Parquet footer.

A footer is a struct whose second field is the list of schema elements.  Those are read and written
again; every other byte stays what it was, whatever a later version of Parquet may put there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)
VARINTS = (I16, I32, I64)
LONG_LIST = 15
SCHEMA = 2
"""The field of a footer that has the schema elements."""

NAME, CHILDREN, FIELD_ID = 4, 5, 9
"""Fields of a schema element."""


@dataclass
class Element:
    """A schema element: the type and the bytes of each of its fields."""

    fields: dict[int, tuple[int, bytes]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the element is called."""
        data = self.fields[NAME][1]
        return data[_varint(data, 0)[1] :].decode()

    @property
    def children(self) -> int:
        """How many of the elements that follow are its own."""
        return _number(self.fields[CHILDREN][1]) if CHILDREN in self.fields else 0

    @property
    def field_id(self) -> int | None:
        """The number that readers may find a column by."""
        return _number(self.fields[FIELD_ID][1]) if FIELD_ID in self.fields else None

    @field_id.setter
    def field_id(self, number: int) -> None:
        self.fields[FIELD_ID] = (I32, _varint_of(number << 1))

    def written(self) -> bytes:
        """Return the element as a footer has it."""
        out, before = bytearray(), 0
        for number, (kind, data) in sorted(self.fields.items()):
            step = number - before
            short = 0 < step < LONG_LIST
            out += bytes([step << 4 | kind]) if short else bytes([kind]) + _varint_of(number << 1)
            out += data
            before = number
        return bytes(out) + b"\0"


def split_footer(footer: bytes) -> tuple[bytes, list[Element], bytes]:
    """Return what is before the schema elements of a footer, these, and what is behind them."""
    for number, kind, start, end in _fields(footer, 0):
        if number == SCHEMA and kind == LIST:
            count, of, at = _list(footer, start)
            if of != STRUCT:
                break
            elements = []
            for _ in range(count):
                fields = list(_fields(footer, at))
                elements.append(Element({n: (k, footer[s:e]) for n, k, s, e in fields}))
                at = (fields[-1][3] if fields else at) + 1
            return footer[:start], elements, footer[end:]
    raise ValueError("The footer has no schema.")


def list_of(elements: list[Element]) -> bytes:
    """Return schema elements as a footer has them."""
    count = len(elements)
    head = bytes([count << 4 | STRUCT]) if count < LONG_LIST else b"\xfc" + _varint_of(count)
    return head + b"".join(element.written() for element in elements)


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield number and type of each field of a struct, and where its value begins and ends."""
    number = 0
    while (head := data[at]) != STOP:
        step, kind = head >> 4, head & 15
        at += 1
        if step:
            number += step
        else:
            raw, at = _varint(data, at)
            number = raw >> 1 ^ -(raw & 1)
        # The value of a truth is its type.
        end = at if kind in (TRUE, FALSE) else _end(data, at, kind)
        yield number, kind, at, end
        at = end


def _end(data: bytes, at: int, kind: int) -> int:
    """Return where a value ends that begins here."""
    if kind in (TRUE, FALSE, BYTE):  # a truth in a list has a byte of its own
        return at + 1
    if kind in VARINTS:
        return _varint(data, at)[1]
    if kind == DOUBLE:
        return at + 8
    if kind == UUID:
        return at + 16
    if kind == BINARY:
        size, at = _varint(data, at)
        return at + size
    if kind in (LIST, SET):
        count, of, at = _list(data, at)
        for _ in range(count):
            at = _end(data, at, of)
        return at
    if kind == STRUCT:
        return max((end for _, _, _, end in _fields(data, at)), default=at) + 1
    if kind == MAP:
        count, at = _varint(data, at)
        if not count:
            return at
        kinds, at = data[at], at + 1
        for _ in range(count):
            at = _end(data, _end(data, at, kinds >> 4), kinds & 15)
        return at
    raise ValueError(f"Thrift has no type {kind}.")


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """Return how many values a list has, their type, and where the first one begins."""
    count, kind, at = data[at] >> 4, data[at] & 15, at + 1
    if count == LONG_LIST:
        count, at = _varint(data, at)
    return count, kind, at


def _number(data: bytes) -> int:
    raw = _varint(data, 0)[0]
    return raw >> 1 ^ -(raw & 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint_of(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
