"""Which answers are guidelines, and which leave those in force as they are."""

import pytest

from midwatch_agents.learning.cutting import word_count
from midwatch_agents.learning.document import Drafted, drafted

GOOD = """\
## Working style

- Run the failing test in `tests/test_totals.py` before you edit `totals.py`.
- After two edits without a new result, look at the whole file again.\
"""
SECRET = "gh" + "p_" + "a1B2c3D4e5" * 4


def reason(answer: str, current: str | None = None, *, max_words: int = 600) -> str:
    draft = drafted(answer, current, max_words=max_words)
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
        GOOD.replace("\n", "\r\n"),
    ],
)
def test_the_document_is_taken_out_of_its_wrapping(answer: str) -> None:
    assert drafted(answer, None, max_words=600) == Drafted(text=GOOD, words=word_count(GOOD))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "the answer is empty"),
        (" \n\n", "the answer is empty"),
        ("```markdown\n\n```", "the answer is empty"),
        ("I'm sorry, I cannot help with that.", "the answer is a refusal"),
        ("I\u2019m sorry, but " + GOOD, "the answer is a refusal"),
        ("Unfortunately, I have no way to write that.", "the answer is a refusal"),
        ("I cannot write guidelines for these agents.", "the answer is a refusal"),
        ('{"guidelines": "## Working style"}', "the answer is JSON instead of Markdown"),
        ('```json\n["Run the tests."]\n```', "the answer is JSON instead of Markdown"),
        ('{"guidelines": "## Working', "the answer is JSON instead of Markdown"),
        ("## Working style\n\nBe careful.", "the answer is too short: 5 words"),
    ],
)
def test_s26_what_is_no_document_changes_nothing(answer: str, why: str) -> None:
    assert reason(answer, GOOD) == why


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
    assert reason(other, GOOD) == "too little of the guidelines in force is left in it"
    assert reason(other) == ""


@pytest.mark.parametrize("same", [GOOD, f"{GOOD}\n", GOOD.replace("\n\n", "\n\n\n")])
def test_s50_the_same_document_again_is_nothing_new(same: str) -> None:
    assert reason(same, GOOD) == "there is nothing new"


def test_s46_a_long_answer_is_cut_within_the_limit_and_stays_markdown() -> None:
    items = [f"- Look at module_{n}.py, e.g. with grep, before you edit it." for n in range(200)]
    draft = drafted("\n".join(["## Known patterns", "", *items]), None, max_words=600)
    assert draft.text is not None
    lines = draft.text.split("\n")
    assert (lines[:2], lines[2:]) == (["## Known patterns", ""], items[: len(lines) - 2])
    assert (draft.words, 580 < word_count(draft.text) <= 600) == (2203, True)


def test_what_cannot_be_cut_is_refused() -> None:
    endless = "and then look at it again " * 200
    assert reason(endless) == "the answer is too long, and cannot be cut at a sound place"


def test_s50_what_is_cut_to_the_document_in_force_is_nothing_new() -> None:
    assert reason(f"{GOOD}\n- And more.", GOOD, max_words=word_count(GOOD)) == (
        "there is nothing new"
    )
