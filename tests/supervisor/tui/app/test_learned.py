"""What was learned, read and marked in the console, against a journal."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from textual.widgets import Static

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Commit,
    Draft,
    FactAct,
    FactMark,
    Feedback,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    Hint,
    LessonAct,
    LessonMark,
    Recall,
)
from midwatch_supervisor.present.learning_text import NOTHING
from midwatch_supervisor.tui.learned.statistics import StatisticsPart
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog, TextDialog
from midwatch_supervisor.tui.widgets.scrolling_text import Detail
from midwatch_tests.console import ConsoleDriver, console_on

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


class Reader(ConsoleDriver[Journal]):
    """Somebody before the console, in the view of what was learned."""

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for the console, which reads what was learned whenever it is drawn."""

        def refresh_and_check() -> bool:
            self.app.refresh_panes()
            return happened()

        await super().until(refresh_and_check)

    @property
    def detail(self) -> str:
        """What the detail says."""
        return self.app.learned.query_one(Detail).text

    @property
    def place(self) -> tuple[str, str]:
        """The pane and the part on the screen."""
        return self.tab.removesuffix("-tab"), self.app.learned.tab


@asynccontextmanager
async def open_reader(journal: Journal) -> AsyncGenerator[Reader]:
    async with console_on(journal, size=(120, 40), now=lambda: NOW) as driver:
        reader = Reader(**vars(driver))
        await reader.press("5")
        await reader.until(lambda: "Reading" not in reader.text("#lessons-pane > .nothing"))
        yield reader


@pytest.fixture
async def writer(shop: Journal) -> AsyncGenerator[Reader]:
    """Somebody who writes."""
    async with open_reader(shop) as ui:
        await ui.until(lambda: bool(ui.app.learned.view.lessons))
        yield ui


@pytest.fixture(scope="module")
async def shared_reader(shop_to_read: Journal) -> AsyncGenerator[Reader]:
    async with open_reader(shop_to_read) as ui:
        await ui.until(lambda: bool(ui.app.learned.view.lessons))
        yield ui


@pytest.fixture
async def reader(shared_reader: Reader) -> Reader:
    """Somebody who only reads, at the first line of the first part, with nothing open."""
    await shared_reader.press("escape", "escape", "escape", "1", "g", "5", "f2", "g")
    shared_reader.app.noticed.clear()
    assert shared_reader.place == ("learned", "lessons")
    return shared_reader


@pytest.fixture
async def empty_reader(six_tasks: Journal) -> AsyncGenerator[Reader]:
    async with open_reader(six_tasks) as ui:
        yield ui


async def test_r9_r40_a_key_accepts_or_rejects_and_asks_what_went_wrong(writer: Reader) -> None:
    await writer.press("1", "j", "A", "enter", "R")
    asked = "Reject the result of discount#1: what went wrong? (optional)"
    assert str(writer.app.screen.query_one(".title", Static).content) == asked
    await writer.press(*"no", "enter")
    assert writer.app.noticed[-1] == "discount#1: result rejected; a lesson follows"
    await writer.press("enter", "A", *"ok", "enter")
    await writer.press("R", "enter")
    verdicts = (True, ""), (False, "no"), (True, "ok"), (False, "")
    assert [each for each in await writer.written() if isinstance(each, Feedback)] == [
        Feedback(accepted=accepted, comment=comment, author="ada") for accepted, comment in verdicts
    ]


async def test_r50_lessons_are_read_with_what_came_of_them(reader: Reader) -> None:
    (line,) = reader.words("lessons")
    assert line.startswith(">✎ 58m wrong_result Rounded before the discount;")
    await reader.press("enter")
    assert "what to do instead:\n- Round once, after the discount." in reader.detail
    assert "given to 1 attempt; 1 of them accepted, 0 rejected or failed" in reader.detail
    assert "task totals, attempt 1, in shop" in reader.detail
    await reader.press("o")
    assert reader.opened == "totals"


async def test_r58_a_person_rates_a_lesson_with_a_comment(writer: Reader) -> None:
    (lesson,) = writer.app.learned.view.lessons
    await writer.press("s", *"9", "enter")
    assert isinstance(writer.app.screen, TextDialog)
    await writer.press("backspace", "4", "ctrl+j", *"ok", "enter")
    assert await writer.written() == [
        LessonMark(lesson=lesson.id, act=LessonAct.RATED, rating=4, author="ada", comment="ok")
    ]
    await writer.until(lambda: "4/5" in writer.words("lessons")[0])


async def test_a_retired_lesson_can_be_brought_back_as_the_footer_says(writer: Reader) -> None:
    def offered_acts() -> set[str]:
        words = ("Approve", "Reject", "Roll back", "Rate", "Retire", "Restore")
        return {each for each in words if each in writer.footer}

    (lesson,) = writer.app.learned.view.lessons
    assert offered_acts() == {"Rate", "Retire"}
    await writer.press("u", "x", "enter")
    await writer.until(lambda: writer.words("lessons")[0].startswith(">⊘"))
    assert offered_acts() == {"Rate", "Restore"}
    await writer.press("u")
    await writer.until(lambda: writer.words("lessons")[0].startswith(">✎"))
    assert writer.app.noticed == [
        f"lesson {lesson.id}: it is already in use",
        f"lesson {lesson.id} is retired: it is no longer given to attempts",
        f"lesson {lesson.id} is back",
    ]
    await writer.press("f5")
    assert offered_acts() == set()


async def test_v11_a_conflict_is_shown_with_both_sides(reader: Reader) -> None:
    new, old = [fact.id for fact in reader.app.learned.view.facts[1:]]
    await reader.press("f3", "G", "space")
    assert f"replaced by:\n{new}: Tests run with python3 -m unittest." in reader.detail
    assert "because:\nsetup.cfg names unittest" in reader.detail
    await reader.press("k")
    assert f"replaces:\n{old}: Tests run with [b]nose[/b]." in reader.detail


async def test_the_detail_is_of_the_line_that_the_filter_of_a_part_leaves(reader: Reader) -> None:
    await reader.press("f3", "space", "slash", *"unittest", "enter")
    assert "Tests run with python3 -m unittest." in reader.detail
    assert (len(reader.words("facts")), len(reader.words("lessons"))) == (1, 1)
    await reader.press("space", "escape")
    assert len(reader.words("facts")) == 3


async def test_a_fact_is_retired_and_a_version_rejected_with_the_reason(writer: Reader) -> None:
    view = writer.app.learned.view
    fact, proposed = view.facts[0].id, view.guidelines[0].id
    for keys in ("f3 x n o enter", "f4 r n o enter"):
        await writer.press(*keys.split())
    rejected = GuidelinesAct.REJECTED
    assert await writer.written() == [
        FactMark(fact=fact, act=FactAct.RETIRED, reason="no", author="ada"),
        GuidelinesMark(guidelines=proposed, act=rejected, author="ada", comment="no"),
    ]


async def test_c5_approving_a_version_makes_it_live(writer: Reader, shop: Journal) -> None:
    proposed, before = writer.app.learned.view.guidelines
    await writer.press("f4", "a")
    assert isinstance(writer.app.screen, ConfirmDialog)
    await writer.press("y")
    live = await Learned(shop).live_guidelines("shop")
    assert live is not None
    assert (live.id, live.author) == (proposed.id, "ada")
    learned = writer.app.learned
    await writer.until(lambda: learned.view.newest(before) != before)
    assert [each.state for each in learned.view.guidelines] == [
        GuidelinesState.LIVE,
        GuidelinesState.FORMER,
    ]


async def test_s37_a_version_is_not_live_until_approved(reader: Reader, shop: Journal) -> None:
    await reader.press("f4", "enter")
    assert "-- Run the checks before each edit." in reader.detail
    assert "+- Run the checks after each edit." in reader.detail
    live = await Learned(shop).live_guidelines("shop")
    assert live is not None
    assert live.guidelines.version == 1


async def test_the_version_in_force_is_rolled_back(writer: Reader, shop: Journal) -> None:
    await writer.press("f4", "b")
    assert writer.app.noticed == ["version 2 of the guidelines: it is not in force; it is proposed"]
    await writer.press("j", "b", "enter")
    assert await Learned(shop).live_guidelines("shop") is None


async def test_what_was_settled_while_the_dialog_stood_open_is_left_alone(
    writer: Reader, shop: Journal
) -> None:
    proposed = writer.app.learned.view.guidelines[0]
    await writer.press("f4", "a")
    mark = GuidelinesMark(guidelines=proposed.id, act=GuidelinesAct.REJECTED, author="eve")
    entry = (await shop.entries(proposed.id - 1, limit=1))[0]
    draft = Draft(record=mark, at=NOW, task=entry.task)
    (stored,) = await shop.commit(Commit(drafts=(draft,)))
    writer.bus.publish(Hint(entry=stored.id, kind="guidelines_mark", task=entry.task))
    await writer.until(lambda: not writer.app.learned.view.proposed)
    await writer.press("y")
    assert await writer.written() == [mark]
    assert writer.app.noticed[-1] == (
        "version 2 of the guidelines: it is not proposed; it is rejected"
    )


async def test_r20_r73_statistics_tell_verdicts_by_origin_and_newest_first(reader: Reader) -> None:
    await reader.press("f5")
    part = reader.app.query_one(StatisticsPart)
    await reader.until(lambda: bool(part.text))
    lines = [" ".join(line.split()) for line in part.text.splitlines()]
    assert "explicit 0% 0 of 1 ▁" in lines
    history = lines[lines.index("Verdicts, newest first") + 1 :]
    assert [line.partition(" ")[2] for line in history if line] == [
        "discount#1 accepted by eve (implied: kept)",
        "totals#1 rejected by ada: Discounts come out wrong.",
    ]


async def test_proposed_guidelines_wait_in_the_attention_queue(reader: Reader) -> None:
    for keys in (("1", "n"), ("3", "enter")):
        await reader.press(*keys)
        assert reader.place == ("learned", "guidelines")
    assert "+- Keep amounts as integers." in reader.detail


async def test_r20_an_attempt_tells_what_it_was_given_and_every_verdict_on_it(
    reader: Reader,
) -> None:
    reader.before = 0  # it need not wait for what other attempts said
    reader.attempts |= {row.name: row.state.attempt for row in reader.app.board.rows.values()}
    timeline = (await reader.open_attempt("discount")).timeline
    place = next(n for n, item in enumerate(timeline.items) if isinstance(item.record, Recall))
    await reader.until(lambda: timeline.items[place].given != NOTHING)
    told = timeline.items[place]
    assert told.told.text == "1 lesson, 1 fact, guidelines v1, 240 tokens"
    assert "(found by tags, fits 75 %) Rounded before the discount;" in told.detail
    assert "Tests run with python3 -m unittest." in told.detail
    await reader.first_screen()
    screen = await reader.open_attempt("totals")
    await reader.until(lambda: bool(screen.timeline.verdicts))
    header = str(screen.query_one("#waiting", Static).render())
    assert "✗ result rejected by ada: Discounts come out wrong." in header
    await reader.press("f8")
    (said, *_) = reader.words("checks")
    assert said == ">✗ reject result rejected by ada Discounts come out wrong."


async def test_an_empty_part_says_what_would_fill_it_and_nothing_is_marked(
    empty_reader: Reader,
) -> None:
    for part, key in (("lessons", "f2"), ("facts", "f3"), ("guidelines", "f4")):
        await empty_reader.press(key, *"saxo")
        assert empty_reader.app.learned.query_one(f"#{part}-pane").has_class("empty")
        assert empty_reader.app.noticed == ["no line is selected"] * 4
        empty_reader.app.noticed.clear()
    assert await empty_reader.written() == []


async def test_a_journal_opened_to_be_read_shows_all_and_refuses_marks(shop: Journal) -> None:
    async with await Journal.open_to_read(shop.name) as closed, open_reader(closed) as reader:
        await reader.until(lambda: bool(reader.words("lessons")))
        assert reader.app.offers() == ()
        await reader.press("x", "enter")
        (told,) = reader.app.noticed
        assert told.endswith("is open for reading only")
        assert await reader.written() == []
