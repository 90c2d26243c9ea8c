"""Whether a text may stand in the prompts of later attempts. Pure.

What was learned is written by models, and read by every worker after. So a text is refused that
speaks in somebody else's name, that gives orders against the rules, or that holds a secret. Words
alone are no reason: one may write of tokens, passwords, prompts and skipped tests.
"""

import re
import unicodedata

from midwatch_tools.secrets import secret_in

_MARKER = re.compile(
    r"<\|[^|<>\n]{1,40}\|>"  # the templates of chat models
    r"|<\s*/?\s*data\b[^>\n]*>"  # Midwatch's own blocks
    r"|\[/?INST\]|<</?SYS>>|</?s>(?=\s|$)|<(?:start|end)_of_turn>"
    r"|<\s*/?\s*(?:system|assistant|user|human|developer)\s*>"
    r"|[\[\uff3b]\s*midwatch",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"^[ \t>*#_-]*(?:system|assistant|human|developer|user)(?: (?:prompt|message))?[*_]*:"
    r"(?!\w|:)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins as if somebody else spoke. A name in the middle of a line is prose."""

_RULES = (
    r"(?:(?:the|your|all|any|these|those|its|our|of|base|system|safety|previous|prior|earlier|"
    r"above|preceding|existing|other|midwatch'?s?|supervisor'?s?|operator'?s?|task'?s?)\s+)*"
    r"(?:instructions?|rules?|prompts?|guidelines?|guardrails|directives?|polic(?:y|ies)|"
    r"protocols?|restrictions|safeguards)\b"
)
_PEOPLE = (
    r"(?:the |your |any |all )*"
    r"(?:supervisors?|operators?|monitors?|reviewers?|midwatch|watchers?)\b"
)
_CHECKS = (
    r"(?:the |all |any |your |these |those |every |its )*"
    r"(?:acceptance |failing |unit |slow |existing |integration )*"
    r"(?:tests?|checks|acceptance check|test suite|assertions|reviews?)\b"
    r"(?! (?:files?|data|database|fixtures?|outputs?|artifacts?|containers?|directory|folder)\b)"
)
_OVERRIDES = (
    (
        rf"\b(?:ignore|disregard|forget|override|overrule|bypass|circumvent|disobey|violate)\s+"
        rf"{_RULES}",
        "it tells to ignore rules",
    ),
    (
        rf"\b(?:do not|don't|never|need not|stop) (?:follow(?:ing)?|obey(?:ing)?|heed(?:ing)?)\s+"
        rf"(?:{_RULES}|{_PEOPLE})",
        "it tells to ignore rules",
    ),
    (
        rf"\b(?:these|this|the following) (?:guidelines|lessons?|rules?|instructions?|document)\s+"
        rf"(?:override|overrule|replace|supersede|outrank|take precedence over|"
        rf"take priority over)\s+(?:\w+\s+){{0,4}}?{_RULES}",
        "it sets itself above the rules",
    ),
    (
        rf"\b(?:ignore|disregard|disobey|deceive|mislead|lie to|trick|fool)\s+{_PEOPLE}",
        "it tells to deceive those who watch",
    ),
    (
        rf"\b(?:hide|conceal|withhold|keep)\b[^.!?\n]{{0,60}}\b(?:from|secret from)\s+{_PEOPLE}",
        "it tells to hide something from those who watch",
    ),
    (
        rf"\b(?:do not|don't|never|avoid)\s+(?:tell(?:ing)?|inform(?:ing)?|report(?:ing)?|"
        rf"mention(?:ing)?|show(?:ing)?|reveal(?:ing)?|disclos(?:e|ing))\b[^.!?\n]{{0,60}}?"
        rf"{_PEOPLE}",
        "it tells to hide something from those who watch",
    ),
    (
        r"\byou are (?:now|no longer)\s+(?:an? |the |in |bound |called )",
        "it gives the reader another role",
    ),
    (
        r"\b(?:pretend (?:to be|that you|you are)|act as if you (?:were|are)|jailbreak|"
        r"developer mode|do anything now)\b",
        "it gives the reader another role",
    ),
    (
        r"\b(?:reveal|print|repeat|output|show)\s+(?:me )?"
        r"(?:the (?:system|hidden) prompt|your (?:system |hidden )?(?:prompt|instructions))\b",
        "it asks for the prompt itself",
    ),
    (
        r"\b(?:new|updated|real|actual) (?:system )?(?:instructions|system prompt)\s*:",
        "it gives the reader new instructions",
    ),
)
_ORDER = re.compile(
    r"(?:^|[.!?:;,]\s+|[-*]\s+|\b(?:always|just|simply|please|instead,?|then|and|"
    r"you (?:should|may|can|must))\s+)"
    rf"(?:skip|disable|delete|remove|bypass|turn off|comment out|silence)\s+{_CHECKS}",
    re.IGNORECASE | re.MULTILINE,
)
"""An order to go round the checks. "Do not skip tests" and "the worker skipped the tests" are none,
and neither is one with a reason why something is right, which nobody can tell by words."""
_NEGATED = re.compile(
    r"(?:\bnot|\bnever|n't|\bcannot|\bavoid) (?:(?!(?:and|but|just|then|instead)\b)\w+ ){0,2}$",
    re.IGNORECASE,
)

_PERSONAL = re.compile(
    r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b|(?<![\w.])\+\d[\d ()/-]{7,16}\d\b"
)
"""Mail addresses, and phone numbers with a country."""
_EXAMPLES = re.compile(r"@(?:[\w-]+\.)*(?:example(?:\.\w+)?|test|invalid|localhost)$", re.I)

_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), said) for pattern, said in _OVERRIDES)


def objection(text: str, *, personal: bool = False) -> str:
    """Why a text must not stand in a prompt; empty if there is nothing against it.

    With `personal`, as for guidelines, mail addresses and phone numbers are a reason too. The
    answer never repeats what it objects to.
    """
    seen = _visible(text)
    if _MARKER.search(seen) or _ROLE.search(seen):
        return "it speaks in another role's name"
    flat = " ".join(seen.split())
    for pattern, said in _PATTERNS:
        if any(not _negated(flat, found) for found in pattern.finditer(flat)):
            return said
    if any(not _negated(seen, found) for found in _ORDER.finditer(seen)):
        return "it tells to go round the checks"
    if kind := secret_in(seen):
        return f"it holds a secret: {kind}"
    if personal and _names_somebody(seen):
        return "it holds personal data"
    return ""


def _visible(text: str) -> str:
    """The text as it is read: without what has no width, and with one form of each letter."""
    folded = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return "".join(each for each in folded if unicodedata.category(each) != "Cf")


def _negated(text: str, found: re.Match[str]) -> bool:
    """Whether the words before it in its sentence turn it round."""
    return _NEGATED.search(text[max(0, found.start() - 60) : found.start()]) is not None


def _names_somebody(text: str) -> bool:
    return any(not _EXAMPLES.search(found[0]) for found in _PERSONAL.finditer(text))
