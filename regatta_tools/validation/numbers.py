"""Does a text mention a number? Digits, and English number words up to ninety-nine.

Exact, not fuzzy: 15 is not found in 150 or 15.5, and "fifteen" is 15.
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


_WORDS = _spelt()
_WORD = re.compile("[a-z]+(?:-[a-z]+)*")
_NUMBER = re.compile(
    r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w]|[.,]\d)|(?<![\w.,])\d+(?:\.\d+)?(?:st|nd|rd|th)?(?![\w]|[.,]\d)"
)


@lru_cache(maxsize=4096)  # a duty is asked about once for each of its facts
def numbers_in(text: str) -> frozenset[Decimal]:
    """All numbers that a text mentions, in digits or English words."""
    found = {Decimal(re.sub(r"[a-z,]", "", m.group())) for m in _NUMBER.finditer(text)}
    for word in _WORD.findall(text.lower()):
        parts = word.split("-")
        while parts:
            # "twenty-five-day" is 25, and neither 20 nor 5.
            size = 2 if "-".join(parts[:2]) in _WORDS else 1
            value = _WORDS.get("-".join(parts[:size]))
            if value is not None:
                found.add(Decimal(value))
            del parts[:size]
    return frozenset(number.normalize() for number in found)


def mentions_number(text: str, value: str) -> bool:
    """Whether ``text`` mentions the decimal number ``value`` (false where ``value`` is no number)."""
    try:
        wanted = Decimal(value).normalize()
    except ArithmeticError:  # no number, or one out of range
        return False
    return wanted in numbers_in(text)
