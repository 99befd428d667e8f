"""Words that sound translated become fewer and never more."""

import pytest

from tools.words import Word, count, sentences, words

WORDS = words()


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return count(WORDS)


@pytest.mark.parametrize("word", WORDS, ids=lambda w: w.text)
def test_no_word_comes_back(word: Word, counts: dict[str, int]) -> None:
    assert counts[word.text] <= word.ceiling, (
        f"'{word.text}' stands {counts[word.text]} times. Say: {word.instead}."
        f" To see where: python -m tools.words --where '{word.text}'"
    )


def test_ceilings_only_fall() -> None:
    assert all(word.ceiling <= word.first for word in WORDS)


def test_comments_and_sentences_are_read_and_plain_values_are_not() -> None:
    code = '# nobody waits\nx = "nobody"\ny = f"{x} tells nobody"\n'
    text = "\n".join(sentences(code))
    found = Word("nobody", 0, 0, "").pattern.findall(text)
    assert len(found) == 2


def test_a_phrase_is_found_over_a_line_break() -> None:
    assert Word("for ever", 0, 0, "").pattern.search("# kept for\n# ever, or so")
