"""The numbers and dates that an English or a Vietnamese text mentions, in one form for both.

The two texts of a pair say the same only if they say the same numbers. :func:`mentions` undoes what differs
between the languages: separators (``1,000.5`` and ``1.000,5``), scales ("500 million", "500 triệu"), number
words ("twenty-one", "hai mươi mốt"), dates (``2027-01-01`` and ``ngày 01/01/2027``) and times of day.

What it cannot see is listed in docs/faults.md, where authors read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from regatta_tools.validation.numbers import WORDS


@dataclass(frozen=True)
class Mention:
    """One number or date in a text.

    ``value`` is a plain decimal ("400000000", "0.5"), a date as in the tables ("2027-01-01", "--03-31") or a
    month ("2027-01"). ``end`` is the offset at which the mention ends. ``sure`` is false where the words may
    mean no number at all ("one of them", "hai bên", a name): such a mention can answer for a number of the
    other text and demands none from it.
    """

    value: str
    end: int
    sure: bool = True


@lru_cache(maxsize=4096)  # a text is asked for its numbers, and then for its days
def mentions(text: str, language: str) -> tuple[Mention, ...]:
    """The numbers and dates of a text in the language ``en`` or ``vi``.

    Dates are looked for first, then times of day, digits and words, each in what the others left over, so
    that the 1 of ``2027-01-01`` is no number of its own.
    """
    found: list[Mention] = []
    rest = text
    for sign, pattern, read in _PATTERNS[language]:
        if not sign.search(rest):
            continue
        parts, at = [], 0
        for match in pattern.finditer(rest):
            if values := read(match):
                found += values
                parts += [rest[at : match.start()], "\0" * (match.end() - match.start())]
                at = match.end()
        rest = "".join([*parts, rest[at:]])
    return (*found, *_in_words(rest, language))


def differences(english: str, vietnamese: str) -> tuple[list[str], list[str]]:
    """Values that only the English text mentions, and those that only the Vietnamese one does, each sorted."""
    in_english, in_vietnamese = mentions(english, "en"), mentions(vietnamese, "vi")

    def missing(here: tuple[Mention, ...], there: tuple[Mention, ...]) -> list[str]:
        return sorted({m.value for m in here if m.sure} - {m.value for m in there})

    return missing(in_english, in_vietnamese), missing(in_vietnamese, in_english)


_WORKING = {"en": re.compile(r"(?:working|business)[- ]days?\b", re.I), "vi": re.compile(r"ngày làm việc\b", re.I)}


def working_days(text: str, language: str) -> frozenset[str]:
    """The numbers that a text counts in working or business days, but 1 ("a working day" has no number)."""
    unit = _WORKING[language]
    if not unit.search(text):
        return frozenset()
    counted = (m for m in mentions(text, language) if m.value != "1" and text[m.end : m.end + 1] in ("-", " "))
    return frozenset(m.value for m in counted if unit.match(text, m.end + 1))


# Dates and times of day

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH_NAMES = "|".join(_MONTHS)
_MONTH = f"(?P<m>{_MONTH_NAMES})"
_YEAR = r"(?P<y>\d{4})\b"
_DAY = r"(?P<d>\d{1,2})"
_FIRST = r"(?<![\w.,:/-])"  # the digits begin here
_HOUR = r"(?P<hour>\d{1,2})"
_HALF = r"(?P<half>[aApP])\.?[mM]\b\.?"  # of the day


def _date(match: re.Match[str]) -> list[Mention]:
    """A date of the calendar, or of any year; nothing where the digits are none."""
    parts = match.groupdict()
    month = _MONTHS.index(parts["m"]) + 1 if parts["m"] in _MONTHS else int(parts["m"])
    day, year = parts.get("d"), parts.get("y")
    if not 1 <= month <= 12 or (day and not 1 <= int(day) <= 31):
        return []
    return [Mention(f"{year or '-'}-{month:02}" + (f"-{int(day):02}" if day else ""), match.end())]


def _time(match: re.Match[str]) -> list[Mention]:
    """The hour of a time of day, and the minutes where there are any."""
    hour, minutes, half = (match.groupdict().get(name) for name in ("hour", "minutes", "half"))
    hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
    return [Mention(str(n), match.end()) for n in (hours, int(minutes or 0)) if n or n is hours]


# Forms

_Reader = Callable[[re.Match[str]], list[Mention]]
_Form = tuple[re.Pattern[str], re.Pattern[str], _Reader]


def _form(sign: str, pattern: str, read: _Reader) -> _Form:
    """A form of numbers with a sign that all of it bear. A sign begins with a digit or capital, which is soon found."""
    return re.compile(sign), re.compile(pattern), read


# Digits

_SCALES = {
    "en": {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12},
    "vi": {"nghìn": 10**3, "ngàn": 10**3, "vạn": 10**4, "triệu": 10**6, "tỷ": 10**9, "tỉ": 10**9},
}


def _digits(group: str, language: str) -> _Form:
    """The reader of numbers in digits, with the sign that a language puts between thousands.

    Either sign is taken for that of decimals where it cannot stand between thousands: ``0.5`` in a
    Vietnamese text can mean one thing only.
    """
    scales = _SCALES[language]
    # The first digit is looked back from, because a search that begins with a digit skips words.
    pattern = (
        rf"(?P<whole>\d(?<![\w.,]\d)(?:\d{{0,2}}(?:\{group}\d{{3}})+|\d*))(?:[.,](?P<part>\d+))?(?:st|nd|rd|th|đ)?"
        rf"(?![\w]|[.,]\d)(?P<scales>(?: (?:{'|'.join(scales)})\b)*)"
    )

    def read(match: re.Match[str]) -> list[Mention]:
        value = Decimal(f"{match['whole'].replace(group, '')}.{match['part'] or 0}")
        for word in match["scales"].split():
            value *= scales[word]
        return [Mention(_plain(value), match.end())]

    return _form(r"\d", pattern, read)


def _plain(value: Decimal) -> str:
    return format(value.normalize() + 0, "f")


def _bare_month(match: re.Match[str]) -> list[Mention]:
    """ "tháng 3" is March, for which English has a word and no number."""
    return [Mention(match["n"].lstrip("0") or "0", match.end(), sure=False)]


_PATTERNS: dict[str, list[_Form]] = {
    "en": [
        _form(r"\d-\d", rf"{_FIRST}(?P<y>\d{{4}})-(?P<m>\d{{2}})-(?P<d>\d{{2}})(?![\d-])", _date),
        _form(_MONTH_NAMES, rf"{_FIRST}{_DAY}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b(?:,? {_YEAR})?", _date),
        _form(_MONTH_NAMES, rf"\b{_MONTH} {_DAY}(?:st|nd|rd|th)?\b(?:,? {_YEAR})?", _date),
        _form(_MONTH_NAMES, rf"\b{_MONTH},? {_YEAR}", _date),
        _form(r"\d:\d", rf"{_FIRST}{_HOUR}:(?P<minutes>\d\d)(?![\d:])(?: ?{_HALF})?", _time),
        _form(r"\d ?[aApP]\.?[mM]", rf"{_FIRST}{_HOUR} ?{_HALF}", _time),
        _digits(",", "en"),
    ],
    "vi": [
        _form(r"\d-\d", rf"{_FIRST}(?P<y>\d{{4}})-(?P<m>\d{{2}})-(?P<d>\d{{2}})(?![\d-])", _date),
        _form(r"\d[/.-]\d", rf"{_FIRST}{_DAY}(?P<sign>[/.-])(?P<m>\d{{1,2}})(?P=sign){_YEAR}(?!/)", _date),
        _form(r"\d tháng", rf"(?i:\b(?:ngày|mùng|mồng)) {_DAY} tháng (?P<m>\d{{1,2}})\b(?: năm {_YEAR})?", _date),
        _form(r"\d[/-]\d", rf"(?i:\b(?:ngày|mùng|mồng)) {_DAY}[/-](?P<m>\d{{1,2}})(?![\d/-])", _date),
        _form(r"\d(?: năm |[/-])\d", rf"(?i:\btháng) (?P<m>\d{{1,2}})(?: năm |[/-]){_YEAR}", _date),
        _form(r"\d(?:[:hg]| giờ )\d", rf"{_FIRST}{_HOUR}(?:[:hg]| giờ )(?P<minutes>\d\d)(?: phút)?\b(?!:)", _time),
        _form(r"\d[hg]", rf"{_FIRST}{_HOUR}[hg]\b", _time),
        _form(r"\d(?<=[gG] \d)", r"(?i:\btháng) (?P<n>\d{1,2})(?![\w/]|[.,]\d)", _bare_month),
        _digits(".", "vi"),
    ],
}  # fmt: skip


# Words

_WORD = re.compile(r"[^\W\d_]+")
_CHAIN = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+)*")
_DIGIT_WORDS = {
    "một": 1, "hai": 2, "ba": 3, "bốn": 4, "sáu": 6, "bảy": 7, "bẩy": 7, "tám": 8, "chín": 9, "mười": 10,
}  # fmt: skip
#: Digits that stand after tens only: "hai mươi mốt", "hai mươi tư", "mười lăm".
_AFTER_TENS = {"mốt": 1, "tư": 4, "lăm": 5, "nhăm": 5}
#: "năm" is five before these, and the year elsewhere.
_AFTER_FIVE = {"mươi", "trăm", *_SCALES["vi"]}
#: Before these "năm" may be either: "trong năm ngày".
_COUNTED = {"ngày", "tháng", "năm", "giờ", "phút", "tuần", "quý", "lần", "phần"}
#: Words that are numbers and other things too.
_DOUBTFUL = {
    "en": {"zero", "one", "first", "once", "two", "second", "twice", "third"},
    "vi": {"một", "hai"},
}
#: Words that are no numbers and may answer for one.
_LIKE_NUMBERS = {"en": {"both": "2", "single": "1", "half": "0.5"}, "vi": {"nửa": "0.5", "đầu": "1", "nhất": "1"}}
#: Words with which a number can begin, or what is like one. Nearly all words of a text are others.
_BEGINS = {
    "en": frozenset({*WORDS, *_LIKE_NUMBERS["en"], "năm", "tư"}),
    "vi": frozenset({"năm", *_DIGIT_WORDS, *_AFTER_TENS, *_LIKE_NUMBERS["vi"]}),
}


def _in_words(text: str, language: str) -> Iterator[Mention]:
    begins = _BEGINS[language]
    for chain in _chains(text, begins):
        words = [match.group().lower() for match in chain]
        at = 0
        while at < len(words):
            if words[at] not in begins:
                at += 1
                continue
            value, size = _number_at(words, at, language)
            if size:
                alone = size == 1 and (words[at] in _DOUBTFUL[language] or words[max(0, at - 1)] == "thứ")
                sure = not alone and not _is_name(text, chain[at])
                yield Mention(str(value), chain[at + size - 1].end(), sure)
            elif like := _like_a_number(words, at, language):
                yield Mention(like, chain[at].end(), sure=False)
            at += size or 1


def _chains(text: str, begins: frozenset[str]) -> Iterator[list[re.Match[str]]]:
    """The words of a text, those together that only a space or a hyphen parts, where one of them is in ``begins``."""
    for chain in _CHAIN.finditer(text):
        if not begins.isdisjoint(chain.group().lower().replace("-", " ").split(" ")):
            yield list(_WORD.finditer(text, chain.start(), chain.end()))


def _number_at(words: list[str], at: int, language: str) -> tuple[int, int]:
    """The number in words that begins at a word, and of how many words it is (0 where there is none).

    ``digit`` waits to be multiplied ("hai" before "mươi", "three" before "hundred"), ``group`` is what lies
    below a thousand, ``total`` what scales have closed.
    """
    total = group = digit = 0
    scales = _SCALES[language]
    end, rounded = at, False  # after a round number "and", "linh", "lẻ" lead on to the rest of it
    while end < len(words):
        word = words[end]
        value = _value(words, end, language)
        if word in scales and total + group + digit:
            total = total + (group + digit) * scales[word] if group + digit else total * scales[word]
            group, digit, rounded = 0, 0, True
        elif word in ("hundred", "trăm") and digit:
            group, digit, rounded = group + digit * 100, 0, True
        elif word == "mươi" and digit:
            group, digit, rounded = group + digit * 10, 0, False
        elif word in ("and", "linh", "lẻ") and rounded and _value(words, end + 1, language) is not None:
            rounded = False
        elif value is not None and not digit and group % (10 if value < 10 else 100) == 0:
            digit, group, rounded = (value, group, False) if value < 10 else (0, group + value, False)
            if value == 0:
                return 0, end + 1 - at if end == at else end - at
        else:
            break
        end += 1
    return total + group + digit, end - at


def _value(words: list[str], at: int, language: str) -> int | None:
    """The value of one word as part of a number below a hundred."""
    if at >= len(words):
        return None
    word, before, after = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if language == "en":
        return WORDS.get(word)
    if word == "năm":
        return 5 if after in _AFTER_FIVE or before in ("linh", "lẻ") else None
    if word in _AFTER_TENS:
        return _AFTER_TENS[word] if before in ("mươi", "mười") else None
    return _DIGIT_WORDS.get(word)


def _like_a_number(words: list[str], at: int, language: str) -> str | None:
    word, before, after = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if word == "năm" and (before == "thứ" or after in _COUNTED):
        return "5"
    if word == "tư" and before == "thứ":
        return "4"
    return _LIKE_NUMBERS[language].get(word)


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Whether a word with a capital does not begin a sentence: "Ba" in a name is no three."""
    if not match.group()[0].isupper():
        return False
    before = text[: match.start()].rstrip(" \n\"'“‘(")
    return bool(before) and before[-1] not in ".!?:;"


# Plain texts, of which a package may have a hundred thousand

_EDGES = "()[].,;:!?%$\"'“”‘’"
_PLAIN = {
    "en": re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"),
    "vi": re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"),
}
_DIGIT = re.compile(r"\d")
#: Part of what ``_WORKING`` is looking for, and sooner found.
_OF_WORKING = {"en": "day", "vi": "ngày l"}
_TO_POINT = {"en": str.maketrans("", "", ","), "vi": str.maketrans(",", ".", ".")}

#: Words with which a number may be more than its digits.
_NOT_PLAIN = {
    "en": {*WORDS, *_SCALES["en"], "hundred", "am", "pm"} - _DOUBTFUL["en"],
    "vi": {*_DIGIT_WORDS, *_SCALES["vi"], "mươi", "trăm", "giờ", "tháng"} - _DOUBTFUL["vi"],
}


def plainly_same(english: str, vietnamese: str) -> bool:
    """Whether two texts mention the same numbers and working days, all in plain digits.

    True only where :func:`differences` finds none and :func:`working_days` none either; many times faster than both.
    """
    plain = _plain_numbers(english, "en")
    return plain is not None and plain == _plain_numbers(vietnamese, "vi")


def _plain_numbers(text: str, language: str) -> tuple[set[str], set[str]] | None:
    """The numbers of a text, and those that count working days.

    ``None`` where digits and the words next to them have to be read with care.
    """
    lower = text.lower()
    if not _NOT_PLAIN[language].isdisjoint(_WORD.findall(lower)) or any(month in text for month in _MONTHS):
        return None
    numbers, working = set(), set()
    left = len(_WORKING[language].findall(text)) if _OF_WORKING[language] in lower else 0
    end = 0
    for digit in _DIGIT.finditer(text):
        if digit.start() < end:
            continue
        # What stands between spaces.
        space = text.find(" ", digit.start())
        end = len(text) if space < 0 else space
        piece = text[text.rfind(" ", 0, digit.start()) + 1 : end]
        number = piece.strip(_EDGES)
        if not _PLAIN[language].fullmatch(number):
            return None
        whole, _, part = number.translate(_TO_POINT[language]).partition(".")
        part = part.rstrip("0")
        value = (whole.lstrip("0") or "0") + (f".{part}" if part else "")
        numbers.add(value)
        if left and _WORKING[language].match(text, end + 1):
            if not piece.endswith(number):
                return None
            left -= 1
            working.add(value)
    # Where working days stand without digits before them, words may count them.
    return None if left else (numbers, working - {"1"})
