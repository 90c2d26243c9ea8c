"""The Learned tab: four parts on tabs, with the detail of the selected line below."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import TabbedContent, TabPane

from midwatch_monitor.errors import JournalError, MidwatchError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Entry,
    Fact,
    FactMark,
    Guidelines,
    GuidelinesMark,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Lesson,
    LessonMark,
    Recall,
)
from midwatch_supervisor.operator.actions import (
    LearningMark,
    OperatorActions,
    marked_state,
    refusal,
)
from midwatch_supervisor.present.known_text import (
    Known,
    fact_detail,
    known_name,
    lesson_detail,
    version_detail,
)
from midwatch_supervisor.present.text_line import Parts, one_line, paragraphs
from midwatch_supervisor.tui.keys import LEARNED, MARKS
from midwatch_supervisor.tui.learned.lists import (
    facts_list,
    guidelines_list,
    lessons_list,
    question,
    rating_in,
)
from midwatch_supervisor.tui.learned.statistics import StatisticsPart
from midwatch_supervisor.tui.operator_command import Offer
from midwatch_supervisor.tui.operator_keys import STORING, RowChooser
from midwatch_supervisor.tui.state.learning import (
    LearningCounts,
    LearningView,
    read_learning,
)
from midwatch_supervisor.tui.widgets.detail_tabs import DetailTabs
from midwatch_supervisor.tui.widgets.dialogs import dialog
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import app_of
from midwatch_supervisor.tui.widgets.scrolling_text import Detail

_PAUSE = 0.3
"""Minimum seconds between two reads."""
_OLD = 5.0
"""Seconds after which shown data is read again, because other processes write, too."""
_OF_GUIDELINES = (Guidelines, GuidelinesMark)
_SHOWN = (*_OF_GUIDELINES, Lesson, LessonMark, Fact, FactMark, Recall)


class LearnedPane(Vertical, DetailTabs, RowChooser):
    """Lessons, facts, guidelines, statistics. Reading the journal never delays a key.

    It is read while it is shown, and whenever there may be new guidelines, because a proposed
    version waits for a person.
    """

    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in LEARNED]
    DEFAULT_CSS = """
    LearnedPane { height: 1fr; }
    LearnedPane > TabbedContent { height: 1fr; }
    """

    @dataclass
    class Read(Message):
        view: LearningView

    @dataclass
    class Wanted(Message):
        """Asks to show the attempt that something was learned from."""

        attempt: int

    def __init__(
        self,
        journal: Journal,
        counts: LearningCounts,
        actions: OperatorActions,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(id="learned-pane")
        self.view = LearningView()
        """The data read last."""
        self.problem = ""
        """Why the last read of the journal failed; empty if it succeeded."""
        self._learned = Learned(journal)
        self._actions = actions
        self._lessons = lessons_list(now)
        self._facts = facts_list(now)
        self._guidelines = guidelines_list(now)
        self._statistics = StatisticsPart(counts, now)
        self._parts = {
            "lessons": self._lessons,
            "facts": self._facts,
            "guidelines": self._guidelines,
            "statistics": self._statistics,
        }
        self._detail = Detail()
        self._tabs = TabbedContent(initial="lessons-tab", id="parts")
        self._stale = self._proposals_stale = True
        self._reading = False
        self._read_at = 0.0
        self._wanted: int | None = None

    def compose(self) -> ComposeResult:
        yield from self._compose_tabs()
        yield self._detail

    def on_mount(self) -> None:
        for part in (self._lessons, self._facts, self._guidelines):
            part.wait_for("Reading the journal…")
        # Look for proposals now, and then whenever there may be new ones.
        self.set_interval(0.5, self._look_for_proposals)
        self._look_for_proposals()

    @property
    def current(self) -> Known | None:
        return None if self.table is None else self.table.current

    def offers(self) -> tuple[Offer, ...]:
        known = self.current
        if known is None:
            return ()
        return tuple(
            Offer(key.id, key.short)
            for key in LEARNED
            if key.id in MARKS and not refusal(LearningMark(str(*parse(key.action)[2])), known)
        )

    def observe(self, entries: Iterable[Entry], *, again: bool = False) -> None:
        """Note whether new entries change what is shown; `again` after a lost connection."""
        self._stale = self._stale or again
        self._proposals_stale = self._proposals_stale or again
        for entry in entries:
            if isinstance(entry.record, _SHOWN):
                self._stale = True
                if isinstance(entry.record, _OF_GUIDELINES):
                    self._proposals_stale = True

    def refresh_board(self) -> None:
        """Show the current data, and read what may have changed. Called only while shown."""
        if self.tab == "statistics":
            self._statistics.refresh_board()
        elif self._stale or monotonic() - self._read_at > _OLD:
            self._start_reading()

    def _look_for_proposals(self) -> None:
        if self._proposals_stale:
            self._start_reading()

    def _start_reading(self) -> None:
        # Too early: the next batch, or the next second, will call this again.
        if self._reading or monotonic() - self._read_at < _PAUSE:
            return
        self._reading, self._stale, self._proposals_stale = True, False, False
        self._read_journal()

    @work(group="learned")
    async def _read_journal(self) -> None:
        problem = ""
        try:
            self.view = await read_learning(self._learned)
        except JournalError as error:
            problem = str(error)
            self._stale = self._proposals_stale = True
        self._reading, self._read_at = False, monotonic()
        if problem and problem != self.problem:
            said = one_line(problem)
            self.notify(said, title="Journal", severity="error", markup=False)
        self.problem = problem
        if not problem:
            for part in (self._lessons, self._facts, self._guidelines):
                part.wait_for("")
        self._show_view()

    def _show_view(self) -> None:
        self.post_message(self.Read(self.view))
        self._lessons.take(self.view.lessons)
        self._facts.take(self.view.facts)
        self._guidelines.take(self.view.guidelines)
        if self._wanted is not None:
            self._guidelines.see(self._wanted)
            self._wanted = None
        self._show_detail()

    def see_version(self, id: int) -> None:
        """Show a version of the guidelines, with its changes."""
        self._wanted = id
        self.action_tab("guidelines")
        self._guidelines.see(id)
        self._detail.open = True
        self._show_detail()

    def _show_detail(self) -> None:
        if self._detail.open:
            self._detail.show_detail(paragraphs(self._detail_parts()))

    def _detail_parts(self) -> Parts:
        match self.current:
            case KnownLesson() as lesson:
                return lesson_detail(lesson)
            case KnownFact() as fact:
                return fact_detail(fact, self.view.successor(fact), self.view.replaced_facts(fact))
            case KnownGuidelines() as version:
                return version_detail(version, self.view.before(version))
            case None:
                return ()

    def focus_lines(self) -> None:
        (self._statistics if self.table is None else self.table.list).focus()

    @on(TabbedContent.TabActivated, "#parts")
    def _after_tab(self, message: TabbedContent.TabActivated) -> None:
        message.stop()
        if self.tab == "statistics":
            self._detail.open = False
        if self._tabs.query_ancestor(TabPane).has_focus_within:
            self.focus_lines()
        self.refresh_board()
        self._show_detail()
        self.refresh_bindings()

    def action_detail(self) -> None:
        if self.table is not None:
            super().action_detail()

    @on(LineList.Opened)
    def _open_line(self, message: LineList.Opened) -> None:
        message.stop()
        if not self._detail.open:
            self.action_detail()

    def action_source(self) -> None:
        """Show the attempt that the cursor's line comes from."""
        match self.current:
            case KnownLesson() | KnownFact() as known:
                self.post_message(self.Wanted(known.attempt))
            case KnownGuidelines(guidelines=version) if version.sources:
                self.post_message(self.Wanted(max(version.sources)))
            case _:
                self._notify_line("no line is selected", good=False)

    def action_mark(self, name: str) -> None:
        """Begin a mark on the cursor's line, or say why it is impossible."""
        known, mark = self.current, LearningMark(name)
        if known is None:
            self._notify_line("no line is selected", good=False)
            return
        if why := refusal(mark, known):
            self._notify_line(f"{known_name(known)}: {why}", good=False)
            return
        asked = question(mark, known, self.view)
        if asked is None:
            self._store_mark(mark, known, "")
        else:
            app_of(self).push_screen(dialog(asked), lambda said: self._carry_out(mark, known, said))

    def _carry_out(self, mark: LearningMark, known: Known, said: str | bool | None) -> None:
        if said is None or said is False:
            return
        # The dialog may have been open for a long time.
        now = self.view.newest(known)
        if why := refusal(mark, now):
            self._notify_line(f"{known_name(now)}: {why}", good=False)
        else:
            self._store_mark(mark, now, "" if said is True else said)

    @work(group=STORING)
    async def _store_mark(self, mark: LearningMark, known: Known, words: str) -> bool:
        rating, comment = rating_in(words) if mark is LearningMark.RATE else (0, words)
        try:
            await self._actions.mark(mark, known, comment, rating=rating)
        except MidwatchError as error:
            said = one_line(f"{mark} for {known_name(known)} was not stored: {error}")
            self.notify(said, severity="error", markup=False)
            return False
        self._notify_line(f"{known_name(known)} is {marked_state(mark, known, rating)}")
        self._stale, self._read_at = True, 0.0
        self._start_reading()
        return True

    def _notify_line(self, text: str, *, good: bool = True) -> None:
        severity = "information" if good else "warning"
        self.notify(one_line(text), severity=severity, markup=False)
