"""Words to people and other agents: whether they are new, and who says them."""

import re
from collections.abc import Sequence, Set
from functools import lru_cache
from zlib import crc32

from midwatch_monitor.patterns import PatternSet
from midwatch_monitor.records import Step, StepKind
from midwatch_monitor.rules.memory import RecentSums

_WORDS = re.compile(r"[a-z]{2,}|\d+")
_MOST = 64
"""Largest number of distinct words of a turn that are considered."""
_ROOM = 80
"""Number of words remembered: about six short turns, or one long one."""
_LONGEST = 400
"""Characters of arguments and of an answer that are considered."""
_VOTE = 3
"""Fewest distinct words in a stale turn; one or two words are a vote or a nod."""
_POLITE = 4
"""A turn is a courtesy if at least one word in this many is a polite one."""
_STALE = 3
"""A turn is stale if fewer than one word in this many is new."""
_TALKS = re.compile(
    r"(?i)(?:^|[_.])(?:ask|dm|respond|reply|say|tell|message|chat|talk|delegate|hand_?off|transfer"
    r"|task|agent|call|vote|broadcast|announce|escalate|think(?:ing)?|thoughts?|reason(?:ing)?|scratchpad|speak)(?:_|$)"
)
_REQUEST = re.compile(r'"(?:instruction|task|prompt|request|question)s?"\s*:')
_NAMED_IN = 80
"""Characters of the arguments that are searched for such a name."""
_QUESTION = 12
"""Distinct words that a question needs to be judged by itself, without its answer."""
_TO_PEOPLE = re.compile(
    r"(?i)(?:^|[_.])(?:respond|reply|say|tell|think|thought|reason|scratchpad"
    r"|ask_(?:user|human|customer))"
)
"""Those tools whose answer is not a report of work."""
_REPORTED = 200
"""Characters of another agent's answer that are searched for a failure or a repetition."""
_DECLINES = PatternSet(
    r"(?i)\b(?:fail(?:s|ed|ure)?|unable|refus\w+|den(?:y|ied)|reject\w*|unfortunately|regrettably"
    r"|invalid|cannot|no (?:success|luck|access)|in vain|turned away|stopped (?:at|by)|blocked"
    r"|not (?:allowed|authori[sz]ed|permitted|possible|able|granted|available)"
    r"|unavailable|no longer|ran out|out of (?:budget|time|tokens)"
    r"|budget (?:ended|exceeded|exhausted|used up)"
    r"|(?:could|can|was|is|am|do|does|did)(?: not|n't) (?:be )?"
    r"(?:complete|find|do|allow|have|get|reach|access|succeed)\w*)\b"
    r"|(?i)\b(?:could|can) ?not[:;,.]",
)
_PUTS_OFF = PatternSet(
    r"(?i)\b(?:sorry|apologi[sz]e|unfortunately|regret(?:s|tably)?|afraid|cannot|can't|unable"
    r"|not (?:able|allowed|possible|permitted)|policy|terms|confirm(?:ation)?|agree to"
    r"|(?:may|shall|should) i|are you sure|do you want|would you like|wait(?:s|ing)?|as soon as"
    r"|once (?:i|you|we)|until|before (?:i|we)|ready to|about to|next step|going to"
    r"|i(?:'ll| will| need| should| must)|let(?:'s| me| us)"
    r"|moment|bear with|right away|at once|shortly|hold on|patience|look(?:ing)? into"
    r"|(?:back|over|returned|pass(?:ed|ing)? \w+|assign\w*) to \w+"
    r"|start(?:ing|ed) (?:now|on)|begin|after you|go first|no problem"
    r"|you(?:'d| would)? (?:choose|decide)|up to you"
    r"|(?:is|are|was|has|have|now|been|should be) (?:now |been |all )?"
    r"(?:fixed|resolved|corrected|addressed|solved)|works? now|everything works"
    r"|your (?:side|turn|responsibility)|hand(?:ing|ed)? \w+ (?:back|over))\b",
)
"""Words in place of an act: to refuse, ask for permission, wait, announce, pass on or claim."""
_SAID_BEFORE = PatternSet(
    r"(?i)\b(?:as (?:i |we |you )?(?:have )?(?:already )?"
    r"(?:said|stated|told|mentioned|written)"
    r"|like i said|i repeat|(?:i|we) told you|once (?:more|again)|yet again"
    r"|(?:already|just) (?:said|told|gave|answered|sent|have (?:it|that|this))"
    r"|(?:said|told|wrote|gave|sent|answered) (?:\w+ ){0,2}?(?:already|above|before|twice)"
    r"|(?:second|third|fourth|fifth|sixth|\d+th) time|scroll up"
    r"|same (?:remark|answer|question|point|reason|error|message|problem|issue|result)s?"
    r"|still (?:an?|no|not|there|the same|\d[\d,.]*|says?|fails?|failing|missing|too|wrong)"
    r"|(?:is|are) still|as before|not addressed|(?:nothing|not|haven't) changed|unchanged"
    r"|keep (?:saying|asking|telling)|(?:three|four|five|several|many) times"
    r"|(?:my|mine|the) (?:point|answer|position)? ?(?:stays|stands|remains))\b",
)
"""Words with which speakers say that they are repeating themselves."""
_SEARCHES = re.compile(r"(?i)(?:^|[\W_])(?:grep|rg|ag|find|search|glob|lookup)(?:[\W_]|$)")
_SEARCHED_IN = 80
"""Characters of a command that are searched."""
_PLANS = re.compile(r"(?i)todo|(?:^|_)(?:plans?|planner|ledger|roles?)(?:_|$)|(?-i:Plan)")
_PLAN_FILE = re.compile(r"(?i)(?:^|[/_-])(?:plan|todo|roadmap)s?\.(?:md|txt)$")
_THINKS = re.compile(
    r"(?i)think(?:ing)?(?:_|$)|(?:^|_)(?:thoughts?|scratchpad)(?:_|$)|^reason(?:ing)?$"
)
_COURTESY = frozenset(
    re.findall(
        r"\w+",
        "thank thanks thankful grateful welcome great good goodbye bye pleasure everyone teamwork"
        " wonderful lovely splendid delightful delighted inspiring kind praise likewise cheers"
        " well nice amazing fantastic excellent brilliant appreciate best luck happy glad enjoy"
        " proud perfect perfectly flawless beautiful beautifully deserved congratulations bravo"
        " agree agreed aligned indeed exactly absolutely totally precisely consent concur",
    )
)
"""Words of farewells, compliments and agreement."""
_HANDS_OVER = re.compile(
    r"(?i)(?:^|[_.])(?:hand_?(?:off|over)|transfer|(?:re)?route|forward|pass)"
    r"(?!_to_(?:human|user|customer))(?:_|$)"
)
_RECEIPT = 80
"""Longest receipt, in characters."""
_DELIVERED = re.compile(r"(?i)\W*(?:ok|done|sent|delivered|posted|queued|message sent)\b")
"""Start of a receipt for a message."""
_RAN_CODE = re.compile(r"(?:\[[^\]]{1,40}\] |[\w .-]{1,40}: )?\W{0,3}exitcode: \d")
_PERSONS = frozenset({"user", "customer", "client", "caller", "guest", "patient", "visitor"})
_SPEAKER = re.compile(
    r"\s*(?:\*\*|__)?@?(?:[\[<]([\w .'-]{1,40})[\]>]"
    r"|([A-Z][\w.'-]*(?: (?!says|to )[\w.'-]+){0,3}?)"
    r"(?: ?\([^)\n]{0,60}\)| ?(?:->|→|to) ?@?[\w .'-]{1,40})?(?:\*\*|__)?(?: says| said)? ?:)"
)


@lru_cache(maxsize=512)
def talks(tool: str) -> bool:
    """Whether a tool's name says that it is for words to a person, an agent or oneself."""
    return _TALKS.search(tool) is not None


@lru_cache(maxsize=512)
def to_oneself(tool: str) -> bool:
    """Whether a tool's name says that it notes plans or thoughts, whose numbers only count them."""
    return _notes_plans(tool) or _THINKS.search(tool) is not None


@lru_cache(maxsize=512)
def to_people(tool: str) -> bool:
    """Whether a tool's name says that it is for words to a person or to oneself."""
    return _TO_PEOPLE.search(tool) is not None


@lru_cache(maxsize=512)
def _notes_plans(tool: str) -> bool:
    return _PLANS.search(tool) is not None


def plans(step: Step) -> bool:
    """Whether a step notes a plan, judging by the name of its tool or of its only file."""
    if step.edits:
        return len(step.edits) == 1 and _PLAN_FILE.search(step.edits[0].path) is not None
    return _notes_plans(step.tool)


def puts_off(step: Step) -> bool:
    """Whether words refuse, ask for permission, wait, announce, pass on, or claim success."""
    said = step.text if step.kind is StepKind.MESSAGE else step.args
    return _PUTS_OFF.anywhere(said[:_LONGEST])


def said_before(step: Step) -> bool:
    """Whether a turn, or the answer to one, says that it repeats something."""
    said = step.text if step.kind is StepKind.MESSAGE else step.output
    return _SAID_BEFORE.anywhere(said[:_REPORTED])


def ran_code(step: Step) -> bool:
    """Whether a turn is the result of running another turn's code, as AutoGen reports it."""
    return _RAN_CODE.match(step.text) is not None


def is_receipt(step: Step) -> bool:
    """Whether an answer only confirms that something was received."""
    return len(step.output) <= _RECEIPT and _DELIVERED.match(step.output) is not None


def hands_over(step: Step) -> bool:
    """Whether a call passes the work on, judging by its tool's name, and returns only a receipt."""
    return _HANDS_OVER.search(step.tool) is not None and len(step.output) <= _RECEIPT


def is_question(step: Step) -> bool:
    """Whether a turn ends with a question."""
    return step.kind is StepKind.MESSAGE and step.text.rstrip().endswith("?")


def asks(step: Step) -> bool:
    """Whether a call gives another agent a task, judging by the name of its argument."""
    return step.args.startswith("{") and _REQUEST.search(step.args, 0, _NAMED_IN) is not None


def speaks(step: Step) -> bool:
    """Whether a step is words: a turn without an act, or a call of a tool for words."""
    if step.kind is StepKind.MESSAGE:
        return True
    return plans(step) or ((talks(step.tool) or asks(step)) and not step.edits)


def declines(step: Step) -> bool:
    """Whether another agent says that it did not do what it was asked to do."""
    if not (talks(step.tool) or asks(step)) or to_people(step.tool):
        return False
    return _DECLINES.anywhere(step.output[:_REPORTED])


def searches(step: Step) -> bool:
    """Whether a step is a search, judging by its tool or command."""
    return _SEARCHES.search(f"{step.tool} {step.args[:_SEARCHED_IN]}") is not None


def speaker(text: str) -> str:
    """Return the speaker of a turn, if its first words name one; empty for the worker."""
    match = _SPEAKER.match(text)
    return (match[1] or match[2]) if match else ""


def is_person(name: str) -> bool:
    """Whether a speaker's name is that of a person whom the workers serve."""
    return name.lower() in _PERSONS


def _distinct_words(said: str) -> list[str]:
    """Return the first distinct words of a text."""
    return list(dict.fromkeys(_WORDS.findall(said.lower())))[:_MOST]


_NO_WORDS: Set[str] = frozenset()


class RecentWords:
    """Remembers the words of recent turns."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known = RecentSums(_ROOM)

    def stale(self, step: Step) -> bool:
        """Learn a turn; return whether it says nothing new: hardly a new word, no new number."""
        if step.kind is StepKind.MESSAGE:
            text = step.text[: 2 * _LONGEST]
            match = _SPEAKER.match(text)
            return self._adds_nothing(_distinct_words(text[match.end() :] if match else text))
        said = _distinct_words(step.args[:_LONGEST])
        answered = [] if is_receipt(step) else _distinct_words(step.output[:_LONGEST])
        if to_oneself(step.tool) or plans(step):
            return self._adds_nothing(said, numbers=False)
        short = len(step.output) <= _RECEIPT
        both = frozenset(said).intersection(answered) if short else _NO_WORDS
        if len(said) >= _QUESTION and (asks(step) or to_people(step.tool)):
            return self._adds_nothing(said, both)  # the answer may be new each time
        # A question about part 4 is new, even if the number 4 was in earlier answers.
        asked = [f"#{word}" if word.isdigit() else word for word in said]
        return self._adds_nothing(list(dict.fromkeys((*asked, *answered)))[:_MOST], both)

    def _adds_nothing(
        self, words: Sequence[str], answered: Set[str] = _NO_WORDS, *, numbers: bool = True
    ) -> bool:
        """Whether hardly any of the words is new, or most are courtesies.

        A new word in both question and answer means that they are about one of many items.
        """
        sums = {crc32(word.encode()): word for word in words}
        new = self._known.learn({*sums})
        number = numbers and any(sums[each].lstrip("#").isdigit() for each in new)
        if any(sums[each] in answered for each in new):
            return False
        if words and sum(word in _COURTESY for word in words) * _POLITE >= len(words):
            return True
        return len(words) >= _VOTE and not number and len(new) * _STALE < len(words)
