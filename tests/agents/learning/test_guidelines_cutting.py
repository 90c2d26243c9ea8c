"""Markdown that is cut stays Markdown."""

import pytest

from midwatch_agents.learning import cutting
from midwatch_agents.learning.cutting import word_count


def cut_markdown(text: str, words: int) -> str:
    return cutting.cut_markdown(text, lambda part: word_count(part) <= words)


DOCUMENT = """\
# How to work

Read first. Write later.

## Checks

- Run the tests before you start.
- Run them again after each change. A red one is yours.
  1. Look at the first failure.
  2. Fix it.

```sh
make check
make again
```

The end.\
"""


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (99, DOCUMENT),
        (word_count(DOCUMENT), DOCUMENT),
        (word_count(DOCUMENT) - 1, DOCUMENT.removesuffix("\n\nThe end.")),
        (word_count(DOCUMENT) - 3, DOCUMENT.partition("\n\n```")[0]),
        (37, DOCUMENT.partition("\n  2.")[0]),
        (34, DOCUMENT.partition("\n  1.")[0]),
        (28, DOCUMENT.partition(" A red")[0]),
        (10, "# How to work\n\nRead first. Write later."),
        (6, "# How to work\n\nRead first."),
        (5, ""),
        (0, ""),
    ],
)
def test_s27_a_cut_ends_after_a_block_an_item_or_a_sentence(words: int, kept: str) -> None:
    assert cut_markdown(DOCUMENT, words=words) == kept
    assert word_count(kept) <= words


@pytest.mark.parametrize(
    ("text", "words", "kept"),
    [
        ("Use tools, e.g. grep or find. Then stop now.", 6, "Use tools, e.g. grep or find."),
        ("Use tools, e.g. Grep or find them all. Stop.", 4, ""),
        ("1. Look at it. Then go on.", 4, "1. Look at it."),
        ("1. Look at the failure first.", 3, ""),
        ("Run `a. B c` first. Then go.", 4, ""),
        ("Run `a. B c` first. Then go.", 5, "Run `a. B c` first."),
        ("Do **this. And that** now. Go on.", 3, ""),
        ("Read 3.5 first. Then 4.", 3, "Read 3.5 first."),
        ("Really? Yes! Good.", 2, "Really? Yes!"),
        ("先にテストを。次に直す。", 1, "先にテストを。次に直す。"),
    ],
)
def test_s27_a_number_or_an_abbreviation_ends_no_sentence(text: str, words: int, kept: str) -> None:
    assert cut_markdown(text, words=words) == kept


@pytest.mark.parametrize(
    ("text", "words", "kept"),
    [
        ("Go.\n\n## Next\n\nMore words here.", 4, "Go."),
        ("Go.\n\nNext\n----\n\nMore words here.", 4, "Go."),
        ("Go.\n\n---\n\nMore words here.", 3, "Go."),
        ("Go.\n\nThese hold:\n\n- one two\n- three four", 4, "Go."),
        ("Go.\n\nThese hold:\n\n- one two\n- three four", 6, "Go.\n\nThese hold:\n\n- one two"),
        ("Go.\n\n| a | b |\n|---|---|\n| c | d |", 8, "Go."),
        ("Go.\n\na | b\n---|---\nc | d. E", 6, "Go."),
        ("Go.\n\n<details>\nMore. Words.\n</details>", 3, "Go."),
        ("> Go on. Do it.\n> And more.", 3, "> Go on."),
    ],
)
def test_s27_nothing_is_left_that_says_nothing_without_the_rest(
    text: str, words: int, kept: str
) -> None:
    assert cut_markdown(text, words=words) == kept


def test_a_block_of_code_that_nobody_closed_is_closed() -> None:
    assert cut_markdown("Go.\n\n```\nmake\n", words=9) == "Go.\n\n```\nmake\n```"
    assert cut_markdown("Go.\n\n```\nmake it all\n", words=4) == "Go."


def test_a_text_is_cut_by_any_other_measure_too() -> None:
    assert cutting.cut_markdown("Größe. Maß.", lambda part: len(part) <= 6) == "Größe."


@pytest.mark.parametrize("words", range(0, 45, 3))
def test_a_cut_text_is_cut_no_further(words: int) -> None:
    once = cut_markdown(DOCUMENT, words=words)
    assert cut_markdown(once, words=words) == once
