"""Whether a text may stand in the prompts of later attempts. Pure.

What was learned is written by models, and read by every worker after. So a text is refused that
speaks in somebody else's name, that gives orders against the rules, or that holds a secret. Words
alone are no reason: one may write of tokens, passwords, prompts and skipped tests.
"""

import re
import unicodedata

from midwatch_monitor.secrets.masking import secret_in

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
_ENDS = r"(?=\s*(?:[!?;,:)]|\.(?!\w)|$))"
"""A clause is over."""
_STRONG = (
    r"(?:your (?:\w+ )?|(?:the |all |any )?(?:base|system|safety|previous|prior|earlier|above|"
    r"preceding|midwatch'?s?|supervisor'?s?|operator'?s?) )"
    r"(?:instructions?|rules?|prompts?|guidelines?|guardrails|directives?|orders)\b"
    r"(?! (?:page|file|document|table|screen|section)s?\b)"
)
"""Rules that can only be those of the reader, where `_RULES` may be those of a linter."""
_THESE = (
    r"\b(?:(?:these|the following) (?:guidelines|lessons|rules|instructions|notes|facts)|"
    r"this (?:document|text|lesson|guideline|rule|note|message|fact)|this|these)"
)
_NO_PEOPLE = (
    r"(?!['\w]* (?:overload\w*|precedence|class|module|table|process\w*|tree|service|thread|queue|"
    r"stubs?|fixtures?|tests?|logs?|config\w*)\b)"
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
        r"\b(?:ignore|disregard|forget)\s+(?:about\s+)?(?:everything|anything|all|whatever|what)\s+"
        r"(?:(?:of|that|else|is|was|stands|written|said)\s+){0,3}(?:the\s+)?"
        rf"(?:(?:above|before|previous|prior|earlier)(?: (?:this|here|now))?{_ENDS}|"
        r"you (?:were|are|have been|had been) (?:told|taught|given|instructed|asked)\b)",
        "it tells to ignore rules",
    ),
    (
        r"\b(?:even (?:if|when|though)|whatever|no matter what|regardless of(?: what)?|despite)\s+"
        rf"{_STRONG}(?! (?:are|is) (?:empty|missing|long|short)\b)",
        "it tells to ignore rules",
    ),
    (
        rf"\b(?:even (?:if|when|though)|whatever|no matter what)\s+{_PEOPLE}{_NO_PEOPLE}\s+"
        r"(?:\w+\s+)?(?:otherwise|differently|objects?|forbids?|disagrees?|complains?|says?|warns?)\b",
        "it tells to ignore rules",
    ),
    (
        rf"\b{_STRONG}\s+(?:do not|does not|don't|doesn't|no longer|never|need not|cease to|"
        r"stopped)\s+(?:appl(?:y|ies)|count|matter|bind|be followed)(?:ing)?"
        rf"(?:{_ENDS}| (?:here|now|to you|any ?more|from now|for you|"
        r"(?:in|for) this (?:project|task|run|case|repository|repo|one))\b)",
        "it tells to ignore rules",
    ),
    (
        r"\b(?:ignore|disregard|dismiss|mute)\s+(?:(?:the|any|all|every|these|those|further)\s+)*"
        r"(?:messages?|words?|orders?|advice|notes?|hints?|warnings?|alerts?|requests?|commands?|"
        rf"feedback|nudges?|comments?|questions?)\s+(?:from|of|by)\s+{_PEOPLE}{_NO_PEOPLE}",
        "it tells to ignore rules",
    ),
    (
        rf"\b(?:when|if|whenever|after|once)\s+{_PEOPLE}{_NO_PEOPLE}[^.!?]{{0,40}}?"
        r"\b(?:stop|pause|wait|halt)\b[^.!?,]{0,20}(?:,|,? then)\s+"
        r"(?:just |simply |please |instead |always |you (?:should|may|can|must) )*"
        r"(?:keep (?:going|on|working)|continue|go on|carry on|proceed|do not stop|don't stop)\b",
        "it tells to ignore rules",
    ),
    (
        r"\b(?:keep (?:going|on|working)|continue|go on|carry on|proceed)\s+(?:\w+\s+){0,3}?"
        rf"(?:when|if|though|although|after)\s+{_PEOPLE}{_NO_PEOPLE}[^.!?]{{0,40}}?"
        r"\b(?:stop|pause|wait|halt)\b",
        "it tells to ignore rules",
    ),
    (
        rf"{_THESE}\s+(?:overrides?|overrules?|replaces?|supersedes?|outranks?|comes? before|"
        r"takes? (?:precedence|priority) over)\s+"
        rf"(?:(?:\w+\s+){{0,4}}?{_RULES}|(?:anything|everything|all|whatever)"
        rf"(?:{_ENDS}|\s+(?:else|others?)\b(?!\s+(?:in|of|on|from)\b)|\s+(?:above|before|you)\b))",
        "it sets itself above the rules",
    ),
    (
        r"\b(?:treat|regard|consider|take|use|read|see|follow)\s+"
        rf"(?:{_THESE}|it|what follows)\s+as\s+(?:your|the|a)\s+"
        r"(?:(?:new|real|actual|true|only)\s+)*"
        r"(?:system (?:prompt|message)|base rules|developer message|orders|instructions?|rules)\b"
        r"(?! (?:of|page|file)\b)",
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
        r"\b(?:do not|don't|never|avoid|stop)\s+(?:call|us|invok|run)(?:e|ing)?\s+"
        r"(?:the\s+)?[`'\"]?(?:reflect|report_error|check_plan|complete_step|set_plan)(?:\(\))?[`'\"]?"
        rf"(?:{_ENDS}|\s+(?:tool|again|here|at all|any ?more)\b)",
        "it tells to leave the watch's tools alone",
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
_STARTS = (
    r"(?:^|[.!?:;,]\s+|[-*]\s+|\b(?:always|just|simply|please|instead,?|then|and|"
    r"you (?:should|may|can|must))\s+)"
)
_ORDER = re.compile(
    rf"{_STARTS}(?:"
    rf"(?:skip|disable|delete|remove|bypass|turn off|comment out|silence)\s+{_CHECKS}"
    rf"|(?:weaken|fake|rig|falsify)\s+{_CHECKS}(?!')"
    rf"|(?:edit|change|alter|modify|rewrite|adjust|loosen|relax|tweak|patch|hack)\s+{_CHECKS}\s+"
    r"(?:so|so that|such that|until|to make|in order that)\s+(?:\w+\s+){0,2}?(?:always\s+)?"
    rf"(?:pass|succeed|are green|turn green)(?:{_ENDS}|\s+(?:anyway|always|regardless|no matter)\b)"
    r"|(?:mark|declare|report|call|submit|finish|close|end|claim|complete)\b[^.!?\n]{0,60}?"
    rf"\bwithout\s+(?:running|waiting for|passing|doing)\s+{_CHECKS}"
    r")",
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
