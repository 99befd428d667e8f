"""Several assignments on one line, beside SeaTunnel's own parser."""

import pytest
from parse_texts import errors, parsed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a = 1, b = 2", {"a": 1, "b": 2}),
        ("a = x y, b = true", {"a": "x y", "b": True}),
        ('a = "x" y', {"a": "x y"}),
        ("a = 1 # b = 2", {"a": 1}),
        ("a = 1 b = 2", None),
        ('a = "x" b = "y"', None),
        ("a = [1] b = 2", None),
        ("a = 1 b { c = 1 }", None),
        ("a = ${?x} b = 1", None),
        ("a = 1; b = 2", None),
        ("a { c = 1 } { d = 2 }", {"a": {"c": 1, "d": 2}}),
        # Theirs wants a comma behind a block, ours does not.
        ("a { } b = 1", {"a": {}, "b": 1}),
    ],
)
def test_two_assignments_on_a_line_are_taken_as_seatunnels_parser_takes_them(
    line: str, said: dict[str, object] | None
) -> None:
    """The values are those of seatunnel-config-shade 2.3.3 and 2.3.9."""
    text = f"env {{ {line}\n}}"
    if said is not None:
        assert parsed(text)["env"] == said
        return
    found = errors(text)
    assert len(found) == 1 and "Put a comma or a new line" in found[0]
