"""The sections of the report on what is learned, in their order. Pure."""

from midwatch_supervisor.report.learning.acceptance import acceptance, curve
from midwatch_supervisor.report.learning.knowledge import facts, guidelines
from midwatch_supervisor.report.learning.reading import LearningReading
from midwatch_supervisor.report.learning.usefulness import lessons
from midwatch_supervisor.report.learning.worth import comparison, effort
from midwatch_supervisor.report.section import Section


def learning_sections(reading: LearningReading) -> tuple[Section, ...]:
    """All of it; nothing where nothing was judged and nothing was learned."""
    figures = reading.figures
    if not figures:
        return ()
    return (
        acceptance(figures.acceptance),
        curve(figures.acceptance),
        lessons(figures.lessons, reading.lessons),
        comparison(figures.comparisons),
        effort(figures.efforts, figures.savings, figures.spending),
        facts(figures.facts),
        guidelines(figures.guidelines),
    )
