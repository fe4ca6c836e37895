"""Does an English text mention a number? Digits, and number words up to ninety-nine.

Exact, not fuzzy: 15 is not found in 150 or 15.5, and "fifteen" is 15. Vietnamese texts, dates and scales are
read by :mod:`regatta_tools.validation.mentions`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ODD_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip


def _ordinal(word: str) -> str:
    return _ODD_ORDINALS.get(word) or (f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th")


def _spelt() -> dict[str, int]:
    words = {"once": 1, "twice": 2}
    for value in range(100):
        tens, units = divmod(value, 10)
        if value < 20 or not units:
            word = _UNITS[value] if value < 20 else _TENS[tens - 2]
            forms = [word, _ordinal(word)]
        else:
            forms = [f"{_TENS[tens - 2]}-{word}" for word in (_UNITS[units], _ordinal(_UNITS[units]))]
        words |= dict.fromkeys(forms, value)
    return words


#: Number words up to ninety-nine, ordinals among them; those of two parts with a hyphen.
WORDS = _spelt()
_DECIMALS = {word: Decimal(value) for word, value in WORDS.items()}
_WORD = re.compile("[a-z]+(?:-[a-z]+)*")
# The digit stands first and what may not stand before it second, for a search that begins with a digit skips words.
_NUMBER = re.compile(
    r"\d(?<![\w.,]\d)(?:\d{0,2}(?:,\d{3})+(?:\.\d+)?(?![\w]|[.,]\d)|\d*(?:\.\d+)?(?:st|nd|rd|th)?(?![\w]|[.,]\d))"
)
_NO_DIGIT = re.compile("[a-z,]")
# The same in parts, for a number that is known: the whole, what may stand before it, and what may not behind.
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ENDS = re.compile(r"[^\w.,]")
_GOES_ON = re.compile(r"\w|[.,]\d")


@lru_cache(maxsize=4096)  # a duty is asked about once for each of its facts
def numbers_in(text: str) -> frozenset[Decimal]:
    """All numbers that a text mentions, in digits or English words."""
    found = {Decimal(_NO_DIGIT.sub("", number)) for number in _NUMBER.findall(text)}
    words = set(_WORD.findall(text.lower()))
    found.update(_DECIMALS[word] for word in words & WORDS.keys())
    for word in words:
        if "-" not in word:
            continue
        parts = word.split("-")
        while parts:
            # "twenty-five-day" is 25, and neither 20 nor 5.
            size = 2 if "-".join(parts[:2]) in WORDS else 1
            value = WORDS.get("-".join(parts[:size]))
            if value is not None:
                found.add(Decimal(value))
            del parts[:size]
    return frozenset(number.normalize() for number in found)


@lru_cache(maxsize=4096)
def _decimal(value: str) -> Decimal | None:
    try:
        return Decimal(value).normalize()
    except ArithmeticError:  # no number, or one out of range
        return None


def mentions_number(text: str, value: str) -> bool:
    """Whether ``text`` mentions the decimal number ``value`` (false where ``value`` is no number)."""
    if _stands_in(text, value):
        return True
    wanted = _decimal(value)
    return wanted is not None and wanted in numbers_in(text)


def _stands_in(text: str, value: str) -> bool:
    """Whether a number stands in a text as it is typed, with nothing before or behind it that makes it another.

    Most numbers of the law do, and this is told many times faster than what all numbers of the text are.
    """
    if not _PLAIN.fullmatch(value):
        return False
    at = text.find(value)
    while at >= 0:
        if (not at or _ENDS.match(text, at - 1)) and not _GOES_ON.match(text, at + len(value)):
            return True
        at = text.find(value, at + 1)
    return False


_IN_DIGITS = re.compile(r"\d(?:[\w.,]*\w)?")
# "within" and "no later than" are not among them: "no later than 3 hours before" is at least three hours.
_BOUNDS = {
    "at-least": ("at least", "no less than", "not less than", "no fewer than", "not fewer than", "not below"),
    "at-most": ("at most", "no more than", "not more than", "not exceed", "not pass", "not above", "up to"),
}
_CURRENCIES = ("vnd ", "usd ", "$")


#: What an English text must not say of a value with this comparator.
_OPPOSITE = {"at-most": "at-least", "less-than": "at-least", "at-least": "at-most", "more-than": "at-most"}


def opposite_bound(text: str, value: str, comparator: str) -> str | None:
    """``at-least`` or ``at-most`` where an English text says so of ``value`` and ``comparator`` says the opposite.

    The text has to say it directly before each mention of the number, which stands in digits. Where it is also
    mentioned without a bound, or with the other one, the words alone do not decide, and the answer is ``None``.
    """
    opposite = _OPPOSITE.get(comparator)
    if opposite is None:
        return None
    bounded, rest = _bounds(text)
    if all(bound != opposite for _, bound in bounded):
        return None
    stated = {bound for number, bound in bounded if mentions_number(number, value)}
    return opposite if stated == {opposite} and not mentions_number(rest, value) else None


@lru_cache(maxsize=4096)  # a duty is asked about once for each of its facts
def _bounds(text: str) -> tuple[list[tuple[str, str]], str]:
    """The numbers of a text that follow a bound, as written, each with its bound; and the text without them."""
    bounded, rest, at = [], [], 0
    for number in _IN_DIGITS.finditer(text):
        before = text[max(0, number.start() - 25) : number.start()].lower()
        for currency in _CURRENCIES:
            before = before.removesuffix(currency)
        bound = next((name for name, words in _BOUNDS.items() if before.rstrip(" ").endswith(words)), None)
        if bound:
            bounded.append((number.group(), bound))
            rest.append(text[at : number.start()])
            at = number.end()
    return bounded, " ".join([*rest, text[at:]]) if bounded else text
