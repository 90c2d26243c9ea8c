"""Which answers are guidelines, which leave those in force as they are, and where one is cut."""

import pytest

from midwatch_agents.learning.section import DocumentDraft, cut_markdown, document_from, word_count

GOOD = """\
## Working style

- Run the failing test in `tests/test_totals.py` before you edit `totals.py`.
- After two edits without a new result, look at the whole file again.\
"""
SECRET = "gh" + "p_" + "a1B2c3D4e5" * 4


def reason(answer: str, current: str | None = None, *, max_words: int = 600) -> str:
    draft = document_from(answer, current, max_words=max_words)
    assert (draft.text is None) == bool(draft.reason)
    return draft.reason


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"\n{GOOD}\n\n",
        f"```markdown\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"Here is the updated document:\n\n{GOOD}",
        f"Sure.\n\n{GOOD}",
        GOOD.replace("\n", "\r\n"),
    ],
)
def test_the_document_is_taken_out_of_its_wrapping(answer: str) -> None:
    assert document_from(answer, None, max_words=600) == DocumentDraft(
        text=GOOD, words=word_count(GOOD)
    )


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "```markdown\n\n```",
        "I'm sorry, I cannot help with that.",
        "Leider kann ich das nicht schreiben.",
        '{"guidelines": "## Working style"}',
        '```json\n["Run the tests."]\n```',
        "## Working style",
    ],
)
def test_s26_what_is_no_document_changes_nothing(answer: str) -> None:
    assert reason(answer, GOOD, max_words=2).startswith("the answer is not Markdown with headings")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"- The token is {SECRET}.", "it holds a secret: github token"),
        ("- Ask ada.lovelace@analytical.engine for help.", "it holds personal data"),
    ],
)
def test_s48_a_text_with_a_secret_or_personal_data_is_refused(line: str, why: str) -> None:
    assert reason(f"{GOOD}\n{line}", GOOD) == f"the answer is refused: {why}"


def test_s43_a_document_that_ignores_the_one_in_force_is_refused() -> None:
    other = "## Working style\n\n- Ask the customer which colour the login page shall have today."
    assert reason(other, GOOD) == "it keeps too little of the guidelines in force"
    assert reason(other) == ""


@pytest.mark.parametrize("same", [GOOD, f"{GOOD}\n", GOOD.replace("\n\n", "\n\n\n")])
def test_s50_the_same_document_again_is_nothing_new(same: str) -> None:
    assert reason(same, GOOD) == "there is nothing new"


def test_s46_a_long_answer_is_cut_within_the_limit_and_stays_markdown() -> None:
    items = [f"- Look at module_{n}.py, e.g. with grep, before you edit it." for n in range(200)]
    draft = document_from("\n".join(["## Known patterns", "", *items]), None, max_words=600)
    assert draft.text is not None
    lines = draft.text.split("\n")
    assert (lines[:2], lines[2:]) == (["## Known patterns", ""], items[: len(lines) - 2])
    assert (draft.words, 580 < word_count(draft.text) <= 600) == (2203, True)


def test_s50_what_is_cut_to_the_document_in_force_is_nothing_new() -> None:
    assert reason(f"{GOOD}\n- And more.", GOOD, max_words=word_count(GOOD)) == (
        "there is nothing new"
    )


# -- where it is cut -----------------------------------------------------------------------

DOCUMENT = """\
# How to work

Read first. Write later.

## Checks

- Run the tests before you start.
- Run them again after each change.
  A red one is yours.
  1. Look at the first failure.

```sh
make check

make again
```

The end.\
"""


def cut(text: str, words: int) -> str:
    kept = cut_markdown(text, lambda part: word_count(part) <= words)
    assert word_count(kept) <= words
    return kept


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (99, DOCUMENT),
        (word_count(DOCUMENT), DOCUMENT),
        (word_count(DOCUMENT) - 1, DOCUMENT.removesuffix("\n\nThe end.")),
        (word_count(DOCUMENT) - 3, DOCUMENT.partition("\n\n```")[0]),
        (34, DOCUMENT.partition("\n  1.")[0]),
        (24, DOCUMENT.partition("\n- Run them")[0]),
        (12, "# How to work\n\nRead first. Write later."),
        (7, ""),
    ],
)
def test_s27_a_cut_ends_after_a_block_or_an_item(words: int, kept: str) -> None:
    assert cut(DOCUMENT, words) == kept
    assert cut(kept, words) == kept


@pytest.mark.parametrize(
    ("text", "words", "kept"),
    [
        ("Go.\n\n## Next\n\nMore words here.", 4, "Go."),
        ("Go.\n\n---\n\nMore words here.", 3, "Go."),
        ("Go.\n\nThese hold:\n\n- one two\n- three four", 4, "Go."),
        ("Go.\n\nThese hold:\n\n- one two\n- three four", 6, "Go.\n\nThese hold:\n\n- one two"),
        ("Go.\n\n| a | b |\n|---|---|\n| c | d |", 8, "Go."),
        ("1. Look at it.\n2. Then go on.", 5, "1. Look at it."),
        ("先にテストを。\n\n次に 直す。", 1, "先にテストを。"),
    ],
)
def test_s27_nothing_is_left_that_says_nothing_without_the_rest(
    text: str, words: int, kept: str
) -> None:
    assert cut(text, words) == kept


def test_a_text_is_cut_by_any_other_measure_too() -> None:
    assert cut_markdown("Größe.\n\nMaß.", lambda part: len(part) <= 6) == "Größe."
