"""What is said, to people and to other agents: whether it says anything new, and who says it."""

import re
from functools import lru_cache
from zlib import crc32

from midwatch_monitor.records import Step, StepKind
from midwatch_monitor.rules.memory import Memory

_WORDS = re.compile(r"[a-z]{2,}|\d+")
_MOST = 64
"""Different words of a turn that are looked at."""
_ROOM = 128
"""Words that are remembered: those of the last ten short turns, or the last two long ones."""
_LONGEST = 400
"""Characters of arguments and of an answer that are looked at."""
_SPREAD = 0x9E3779B97F4A7C15
_BITS = (1 << 64) - 1
_STALE = 3
"""A turn is stale in which fewer than one word in so many is new."""
_TALKS = re.compile(
    r"(?i)(?:^|_)(?:ask|respond|reply|say|tell|message|chat|talk|delegate|hand_?off|transfer|assign"
    r"|task|agent|call|think|thought|speak)(?:_|$)"
)
_REQUEST = re.compile(r'"(?:instruction|task|prompt|request|question)s?"\s*:')
_NAMED_IN = 80
"""Characters of arguments in which such a name stands."""
_QUESTION = 12
"""Different words from which on a question tells by itself whether it is a new one."""
_TO_PEOPLE = re.compile(
    r"(?i)(?:^|_)(?:respond|reply|say|tell|think|thought|ask_(?:user|human|customer))"
)
"""Of these the tools whose answer is no report of work."""
_REPORTED = 200
"""Characters in which another agent says that it did not succeed."""
_DECLINES = re.compile(
    r"(?i)\b(?:fail(?:s|ed|ure)?|unable|refus\w+|den(?:y|ied)|reject\w*|unfortunately|regrettably"
    r"|invalid|cannot|no success|not (?:allowed|authori[sz]ed|permitted|possible|able)"
    r"|(?:could|can|was|is|am|do|does|did)(?: not|n't) (?:be )?"
    r"(?:complete|find|do|allow|have|get|reach|access|succeed)\w*)\b"
)
_SEARCHES = re.compile(r"(?i)(?:^|[\W_])(?:grep|rg|ag|find|search|glob|lookup)(?:[\W_]|$)")
_SEARCHED_IN = 80
"""Characters of a command that are looked at."""
_SPEAKER = re.compile(
    r"\s*(?:\[([\w .-]{1,40})\]"
    r"|([A-Z][\w.-]*(?: [\w.-]+){0,3})(?: \([^)\n]{0,60}\))?:)"
)


@lru_cache(maxsize=512)
def talks(tool: str) -> bool:
    """Whether a tool, by its name, is for words: to a person, to another agent, to oneself."""
    return _TALKS.search(tool) is not None


def asks(step: Step) -> bool:
    """Whether a call gives another agent its task, by the name of its argument."""
    return step.args.startswith("{") and _REQUEST.search(step.args, 0, _NAMED_IN) is not None


def speaks(step: Step) -> bool:
    """Whether a step is words: a turn without an act, or a call of a tool for words."""
    return step.kind is StepKind.MESSAGE or ((talks(step.tool) or asks(step)) and not step.edits)


def declines(step: Step) -> bool:
    """Whether another agent says, in its own words, that it did not do what it was asked."""
    if not (talks(step.tool) or asks(step)) or _TO_PEOPLE.search(step.tool):
        return False
    return _DECLINES.search(step.output[:_REPORTED]) is not None


def searches(step: Step) -> bool:
    """Whether a step looks for something, by its tool or its command."""
    return _SEARCHES.search(f"{step.tool} {step.args[:_SEARCHED_IN]}") is not None


def speaker(text: str) -> str:
    """Who says a turn of a conversation, where its first words tell; empty for the worker."""
    match = _SPEAKER.match(text)
    return (match[1] or match[2]) if match else ""


def _words(said: str) -> list[str]:
    """The first different words of what is said."""
    return list(dict.fromkeys(_WORDS.findall(said.lower())))[:_MOST]


class Heard:
    """Remembers the words of the last turns. It takes room only once there are turns."""

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words: Memory | None = None

    def stale(self, step: Step) -> bool:
        """Whether a turn says what was said: hardly a new word, no new number. It is learned."""
        if step.kind is StepKind.MESSAGE:
            words = _words(step.text[: 2 * _LONGEST])
        else:
            words = _words(step.args[:_LONGEST])
            # What is found may be new each time, and a long question the same.
            if len(words) < _QUESTION or not asks(step):
                words = _words(f"{step.args[:_LONGEST]} {step.output[:_LONGEST]}")
        if self._words is None:
            self._words = Memory(_ROOM)
        put, new, number = self._words.put, 0, False
        for word in words:
            if put(crc32(word.encode()) * _SPREAD & _BITS, 1) is None:
                new += 1
                number = number or word.isdigit()
        return bool(words) and not number and new * _STALE < len(words)
