"""The list of verbs: what a newcomer reads first."""

from typer.testing import CliRunner

from holdfast.cli.main import FUNCTIONS, PANELS, SAME, VERBS, build


def test_every_verb_is_below_a_heading_with_words_of_its_own() -> None:
    assert PANELS.keys() | SAME.keys() | FUNCTIONS.keys() <= VERBS.keys()
    app = build([])
    said = [
        (c.name, c.help or (c.callback and c.callback.__doc__)) for c in app.registered_commands
    ]
    assert [name for name, _ in said] == list(VERBS)
    assert all(words for _, words in said) and len(dict(said)) == len({w for _, w in said})
    assert all(c.rich_help_panel for c in app.registered_commands)


def test_the_help_comes_without_a_word_and_a_verb_has_its_own() -> None:
    everything = CliRunner().invoke(build([]), [])
    assert all(title in everything.output for title in PANELS.values())
    one = CliRunner().invoke(build(["restart"]), ["--help"])
    assert one.exit_code == 0 and "from what it has left" in one.output
