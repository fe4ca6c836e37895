"""Numbers of a legal text with unit, place and bound: "not later than the 15th business day", "không quá 13%".

Exact and positional: a number is read in digits, words, fractions or per cent, in English or Vietnamese; its unit is
the word that it counts; what bounds it are the words right before and after it. Numbers that name a place in the law
(sections, Điều, dates, labels of paragraphs) are no quantities. Nothing here guesses: what has no unit says so, and
what has no bounding words has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import ClassVar


@dataclass(frozen=True)
class Quantity:
    """One number of a text.

    ``unit`` is a value of the schema's ``Unit`` (``item`` is never given here: things counted have the unit ``""``),
    ``day_count`` which days are counted, for days. ``start`` and ``end`` are the place of the number in the text, in
    characters. ``bound`` is the comparator that the words around it give, or ``""``.
    """

    value: Decimal
    unit: str
    day_count: str
    start: int
    end: int
    bound: str


@dataclass(frozen=True)
class DateMention:
    """A date of a text in the form of the tables: ``2027-01-01``, or ``--01-01`` without a year."""

    value: str
    start: int
    end: int


def quantities(text: str, language: str) -> tuple[Quantity, ...]:
    """All quantities of a normalised text in ``en`` or ``vi``, in order of place."""
    return _quantities(text, language)


@lru_cache(maxsize=2048)
def _quantities(text: str, language: str) -> tuple[Quantity, ...]:
    grammar = _VI if language == "vi" else _EN
    masked = grammar.mask(text)
    tokens = [(m.group().lower(), m.start(), m.end()) for m in _TOKEN.finditer(masked)]
    found = []
    before = 0  # where the last quantity ends: words before it bound that one, not the next
    for value, unit, days, start, end, after in _read(tokens, grammar):
        found.append(Quantity(value, unit, days, start, end, grammar.bound(masked, before, start, after)))
        before = end
    return tuple(found)


# What follows a cue that bounds a number right behind it: "up to a total of 24".
_NUMBER_NEXT = re.compile(r"\W*(?:(?:a|the|total|of)\s+)*[0-9]")
_TOKEN = re.compile(r"[0-9]+(?:[.,/][0-9]+)*|[^\W\d_]+|[½¼¾⅓⅔⅛⅜⅝⅞]|[^\s\w]")
_GLYPHS = {
    "½": "0.5", "¼": "0.25", "¾": "0.75", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625", "⅞": "0.875",
}  # fmt: skip
Token = tuple[str, int, int]


def _read(tokens: list[Token], grammar: _Grammar) -> Iterator[tuple[Decimal, str, str, int, int, int]]:
    """Value, unit, kind of days, start and end of the number, end of the phrase, for each number."""
    at = 0
    while at < len(tokens):
        number = grammar.number(tokens, at)
        if number is None:
            at += 1
            continue
        value, after = number
        unit, days, end = grammar.unit(tokens, at, after)
        yield value, unit, days, tokens[at][1], tokens[after - 1][2], tokens[end - 1][2]
        at = after


class _Grammar:
    """What a language brings: masks, number words, units, bounds."""

    masks: tuple[re.Pattern[str], ...]
    before: tuple[tuple[str, re.Pattern[str]], ...]
    behind: tuple[tuple[str, re.Pattern[str]], ...]
    weak: re.Pattern[str]
    earlier: re.Pattern[str]
    each: re.Pattern[str]
    negation: re.Pattern[str]

    def mask(self, text: str) -> str:
        """The text with places of the law and dates blanked out, letter by letter, so that offsets stay."""
        for pattern in self.masks:
            text = pattern.sub(lambda m: " " * len(m.group()), text)
        return text

    def bound(self, text: str, earliest: int, start: int, end: int) -> str:
        """The comparator of the words around a number: right behind it, else the last ones before it in its clause.

        ``earliest`` is where the number before it ends, ``end`` where the phrase with its unit does.
        """
        behind = text[end : end + 40]
        for name, pattern in self.behind:
            if pattern.match(behind):
                return name
        clause = re.split(r"[;:]|\.\s", text[max(earliest, start - 160) : start])[-1]
        name, cue, ends = self._last_cue(clause)
        if not name:
            return self._of_the_list(text[max(0, start - 600) : start])
        if name == "at-least" and self.each.search(clause, ends):
            return "at-most"  # at least every 90 days: not more than 90 days apart
        if name == "at-most" and self.earlier.match(behind):
            return "at-least"  # not later than 3 hours before: three hours or more
        if name in ("more-than", "less-than") and self.negation.search(clause[:cue]):
            # "shall not be more than", but also "if not paid for more than": position does not tell them apart.
            return ""
        return name

    def _last_cue(self, clause: str, *, unused: bool = False) -> tuple[str, int, int]:
        """The bounding words nearest to the end of a clause: their comparator, start and end; else an empty name.

        With ``unused``, those that bound no number of the clause itself: "the following limits, up to 24 hours".
        """
        last = ("", -1, -1)
        for name, pattern in self.before:
            for match in pattern.finditer(clause):
                if self.weak.fullmatch(match.group()) and len(clause) - match.end() > 14:
                    continue  # "từ ngày ... là 12%", "over the counter ... 30 days": it speaks of something else
                if unused and _NUMBER_NEXT.match(clause, match.end()):
                    continue
                # "not more than" holds "more than": the one that ends last, and of those the longer.
                if (match.end(), -match.start()) > (last[2], -last[1]) or last[2] < 0:
                    last = (name, match.start(), match.end())
        return last

    def _of_the_list(self, before: str) -> str:
        """The bound in the words that lead to a list: "may not pass the following rates: (a) 13 percent; ..."."""
        sentence = re.split(r"\.\s", before)[-1]
        for colon in reversed([m.start() for m in re.finditer(":", sentence)]):
            lead = re.split(r"[;:]", sentence[:colon])[-1]
            name, cue, ends = self._last_cue(lead)
            plain = not self.weak.fullmatch(lead[cue:ends]) and not any(c.isdigit() for c in lead[ends:])
            if not plain and "following" in lead:
                name, cue, ends = self._last_cue(lead, unused=True)
                plain = lead[cue:].startswith("following")
            if name in ("at-most", "at-least") and plain and len(lead) - ends <= 60:
                return name
        return ""

    def number(self, tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        raise NotImplementedError

    def unit(self, tokens: list[Token], at: int, after: int) -> tuple[str, str, int]:
        raise NotImplementedError


def _bounds(**patterns: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name.replace("_", "-"), re.compile(rf"(?<!\w)(?:{p})(?!\w)", re.I)) for name, p in patterns.items())


# English

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
    "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "twelfth": 12, "fifteenth": 15, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "sixtieth": 60,
    "ninetieth": 90,
}  # fmt: skip
_SMALL = {w: n for n, w in enumerate(_ONES)} | {w: 10 * n for n, w in enumerate(_TENS, 2)} | _ORDINALS
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_PARTS = {
    "half": 2,
    "third": 3,
    "thirds": 3,
    "fourth": 4,
    "fourths": 4,
    "quarter": 4,
    "quarters": 4,
    "eighth": 8,
    "eighths": 8,
}


class _English(_Grammar):
    masks = (
        # Names of places in the law: § 1005.6(b)(1), section 15, 12 CFR part 1005, paragraph (b)(1), Pub. L. 93-495.
        re.compile(
            r"(?:§+|\b(?:sections?|secs?\.|parts?|subparts?|title|chapter|paragraphs?|clauses?|subsections?|"
            r"subdivisions?|appendix|Pub\. ?L\.|Stat\.|schedule|form|table|article)(?:\s+No\.)?)"
            r"\s*\d[\w.\-]*(?:\(\w{1,5}\))*"
            r"(?:(?:,|\s+(?:and|or|to|through)|,\s*(?:and|or))\s+(?:§+\s*)?\d+[\w.\-]*(?:\(\w{1,5}\))+)*",
            re.I,
        ),
        re.compile(
            r"\b\d+\s+(?:CFR|C\.F\.R\.|U\.S\.C\.|USC|CCR|FR|NYCRR|ILCS|Stat\.)\s*(?:§+\s*|part\s+)?\d*[\w.\-]*(?:\(\w{1,5}\))*"
        ),
        re.compile(
            r"\b\d{1,2}(?:st|nd|rd|th)?\s+(?:January|February|March|April|May|June|July|August|September|October|November|"
            r"December)(?:,?\s+\d{4})?\b"
        ),
        re.compile(
            r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\s+\d{1,2}(?:,\s*\d{4})?"
        ),
        re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}:\d{2}\b"),
        # Places in Vietnamese law keep their names in English texts.
        re.compile(r"\b(?:Điều|khoản|điểm|Chương|Mục|Phần|Phụ lục)\s+\d+[a-zđ]?", re.I),
        re.compile(r"\b(?:19|20)\d{2}\b(?!\s*(?:days?|hours?|percent|%))"),
        # Labels of paragraphs; a number that repeats its words, as in fifteen (15), says nothing new.
        re.compile(r"\(\w{1,5}(?:-\w)?\)"),
    )
    before = _bounds(
        at_most=r"in no (?:event|case)(?: \w+){0,5} (?:later|more) than|"
        # A limit by name, a span that ends with a day, and leave to do something so many times.
        r"following (?:limits|limitations|maximums|ceilings)|until midnight (?:of|on) the|"
        r"may be (?:extended|renewed|repeated|prolonged|postponed)(?: only)?|"
        r"(?:may|shall|must) not(?: [\w-]+){1,8} (?:(?:more|greater) than|in excess of)|until|only|every|"
        r"not later than|no later than|within|(?:not|no) more than|(?:not|never) (?:to )?exceed(?:ing)?|up to|"
        r"at most|"
        r"(?:a )?maximum(?: of)?|not to be more than|not over|no longer than|not longer than|no greater than|"
        r"not greater than|by the|before the",
        at_least=r"at least|(?:not|no) less than|(?:not|no) fewer than|(?:a )?minimum(?: of)?|not earlier than|"
        r"no earlier than|(?:greater|more) than or equal to|equal to or (?:greater|more) than|equals or exceeds|"
        r"equal or exceed|not sooner than|no sooner than",
        more_than=r"more than|exceeds?|exceeding|greater than|in excess of|over|longer than|above",
        less_than=r"less than|fewer than|under|below|lower than|shorter than",
    )
    behind = _bounds(
        at_least=r"\s*(?:of age )?(?:or|and) (?:more|greater|longer|over|above|older)",
        at_most=r"\s*or (?:less|fewer|under|below)",
    )
    weak = re.compile(
        r"over|under|above|below|by the|before the|within|minimum|maximum|until|only|every|may be .*", re.I
    )
    earlier = re.compile(r"\s*(?:prior to|before|in advance)", re.I)
    each = re.compile(r"\b(?:every|each|once)\b", re.I)
    negation = re.compile(r"\b(?:no|not|nor|never|neither)\b", re.I)
    units: ClassVar[dict[str, str]] = {
        "hour": "hour", "day": "day", "week": "week", "month": "month", "year": "year", "minute": "minute",
        "percent": "percent", "percentage": "percent", "per": "percent", "dollar": "USD", "usd": "USD", "dong": "VND",
        "vnd": "VND", "times": "times",
    }  # fmt: skip
    kinds: ClassVar[dict[str, str]] = {
        "calendar": "calendar",
        "business": "business",
        "working": "working",
        "work": "working",
        "banking": "business",
    }

    def number(self, tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        word = tokens[at][0]
        if word[0].isdigit():
            return self._digits(tokens, at)
        if word in _GLYPHS:
            return Decimal(_GLYPHS[word]), at + 1
        if word not in _SMALL and word not in ("once", "twice"):
            return None
        if word in ("once", "twice"):
            return Decimal(1 if word == "once" else 2), at + 1
        return self._words(tokens, at)

    @staticmethod
    def _digits(tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        word = tokens[at][0]
        after = at + 1
        if re.fullmatch(r"\d+/\d+", word):
            top, bottom = word.split("/")
            return (Decimal(top) / Decimal(bottom), after) if int(bottom) else None
        if not re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?|\d+(\.\d+)?", word):
            return None
        value = Decimal(word.replace(",", ""))
        if after < len(tokens) and tokens[after][1] == tokens[at][2] and tokens[after][0] in ("st", "nd", "rd", "th"):
            after += 1
        if after < len(tokens) and tokens[after][0] in _SCALES and tokens[after][0] != "hundred":
            value, after = value * _SCALES[tokens[after][0]], after + 1
        if after < len(tokens) and tokens[after][0] in _GLYPHS:
            value, after = value + Decimal(_GLYPHS[tokens[after][0]]), after + 1
        return value, after

    @staticmethod
    def _words(tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        total, current, after, last = 0, 0, at, 0
        while after < len(tokens):
            word = tokens[after][0]
            if word == "-" and after > at and after + 1 < len(tokens) and tokens[after + 1][0] in _SMALL:
                after += 1
                continue
            if word in _SMALL:
                if after > at and not (20 <= last <= 90 and _SMALL[word] < 10) and last < 100:
                    break
                current += _SMALL[word]
                last = _SMALL[word]
            elif word in _SCALES and after > at:
                if word == "hundred":
                    current *= 100
                else:
                    total, current = total + current * _SCALES[word], 0
                last = _SCALES[word]
            else:
                break
            after += 1
        value = Decimal(total + current)
        rest = [t[0] for t in tokens[after : after + 2]]
        if rest[:1] == ["-"] and rest[1:] and rest[1] in _PARTS:
            return value / _PARTS[rest[1]], after + 2
        if rest[:1] and rest[0] in _PARTS and rest[0] not in _ORDINALS and tokens[at][0] in _ONES:
            return value / _PARTS[rest[0]], after + 1
        return value, after

    def unit(self, tokens: list[Token], at: int, after: int) -> tuple[str, str, int]:
        if at and tokens[at - 1][0] == "$":
            return "USD", "", after
        days, i, joined = "", after, False
        for _ in range(8):
            if i >= len(tokens):
                break
            word = tokens[i][0]
            base = word.removesuffix("s") if word != "times" else word
            if word == "%" or (base in self.units and word != "per") or (word == "per" and self._cent(tokens, i)):
                unit = "percent" if word in ("%", "per") else self.units[base]
                if base == "percentage" and not self._point(tokens, i):
                    break
                return unit, (days or "unspecified") if unit == "day" else "", i + 1 + (word == "per")
            if word in self.kinds:
                days = self.kinds[word]
            elif word in ("or", "to", "of", "-"):
                joined = True
            elif word in ("more", "fewer", "less", "additional", "consecutive", "full"):
                pass
            elif joined and (number := self.number(tokens, i)) is not None:
                # 30 or 45 days: the unit of the later number is that of the earlier.
                i, joined = number[1], False
                continue
            else:
                break
            i += 1
        return "", "", after

    @staticmethod
    def _cent(tokens: list[Token], i: int) -> bool:
        return i + 1 < len(tokens) and tokens[i + 1][0] in ("cent", "centum")

    @staticmethod
    def _point(tokens: list[Token], i: int) -> bool:
        return i + 1 < len(tokens) and tokens[i + 1][0].startswith("point")


# Vietnamese

_VI_ONES = {
    "không": 0, "một": 1, "mốt": 1, "hai": 2, "ba": 3, "bốn": 4, "tư": 4, "năm": 5, "lăm": 5, "sáu": 6, "bảy": 7,
    "bẩy": 7, "tám": 8, "chín": 9,
}  # fmt: skip
_VI_SCALES = {"nghìn": 1000, "ngàn": 1000, "triệu": 10**6, "tỷ": 10**9, "tỉ": 10**9}


# không is "not" far more often than zero, and tư stands in Thông tư (circular); mốt and lăm only follow mươi.
_VI_NEVER_FIRST = frozenset({"không", "tư", "mốt", "lăm"})
_VI_NUMBER = {*_VI_ONES, *_VI_SCALES, "mười", "mươi", "trăm", "linh", "lẻ"}


class _Vietnamese(_Grammar):
    masks = (
        re.compile(
            r"\b(?:Điều|khoản|điểm|Chương|Mục|Phần|Phụ lục|Mẫu|Bảng)\s+(?:số\s+)?\d+[a-zđ]?"
            r"(?:\s*(?:,|và|hoặc|đến|-)\s*(?:khoản\s+)?\d+[a-zđ]?(?=\s*(?:,|và|Điều|khoản|của|này|hoặc)))*",
            re.I,
        ),
        re.compile(r"\b\d{1,3}/\d{4}/[A-ZĐ0-9\-]+|\bsố\s+\d+[\w/\-]*", re.I),
        re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}:\d{2}\b"),
        re.compile(r"\bngày\s+\d{1,2}\s+tháng\s+\d{1,2}(?:\s+năm\s+\d{4})?", re.I),
        re.compile(r"\b(?:ngày\s+)?\d{1,2}/\d{1,2}(?:/\d{4})?\b", re.I),
        re.compile(r"\b(?:năm|tháng)\s+\d{4}\b", re.I),
        re.compile(r"(?:^|(?<=\s))(?:\d{1,2}\.|\(\d{1,2}\)|[a-zđ]\d?\))(?=\s)"),
    )
    before = _bounds(
        at_most=r"không (?:vượt )?quá|không được (?:vượt )?quá|tối đa|trong (?:thời hạn|thời gian|vòng)|chậm nhất|"
        r"muộn nhất|không lớn hơn|không nhiều hơn|không cao hơn|không dài hơn|trước|đến|tới",
        at_least=r"ít nhất|tối thiểu|không thấp hơn|không ít hơn|không dưới|không nhỏ hơn|không ngắn hơn|"
        r"bằng hoặc lớn hơn|"
        r"từ đủ|từ|đủ",
        more_than=r"trên|lớn hơn|vượt quá|vượt|cao hơn|hơn|quá(?! hạn)",
        less_than=r"dưới|nhỏ hơn|thấp hơn|ít hơn|chưa đủ",
    )
    behind = _bounds(at_least=r"\s*(?:\S+ ){0,3}?trở lên", at_most=r"\s*(?:\S+ ){0,3}?trở xuống")
    weak = re.compile(r"từ|đến|tới|trước|quá|hơn|vượt|trên|dưới|đủ|từ đủ|cao hơn|thấp hơn|trong thời gian", re.I)
    earlier = re.compile(r"\s*trước", re.I)
    each = re.compile(r"\b(?:mỗi|cứ)\b", re.I)
    negation = re.compile(r"\b(?:không|chưa)\b", re.I)
    units: ClassVar[dict[str, str]] = {
        "ngày": "day", "giờ": "hour", "tuần": "week", "tháng": "month", "năm": "year", "phút": "minute", "đồng": "VND",
        "vnd": "VND", "lần": "times", "%": "percent", "tuổi": "year",
    }  # fmt: skip

    def number(self, tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        word = tokens[at][0]
        if word[0].isdigit():
            return self._digits(tokens, at)
        if word in _VI_NEVER_FIRST or (word not in _VI_ONES and word != "mười"):
            return None
        if word == "năm" and not self._counts_something(tokens, at):
            return None
        return self._words(tokens, at)

    def _counts_something(self, tokens: list[Token], at: int) -> bool:
        """Whether năm is five and no year: only where a unit follows and no number stands before it."""
        before = tokens[at - 1][0] if at else ""
        after = [t[0] for t in tokens[at + 1 : at + 3]]
        return not before[:1].isdigit() and before not in _VI_ONES and after[:1] != [] and (
            after[0] in self.units or after[0] in ("mươi", "trăm", "nghìn", "triệu", "tỷ") or after == ["phần", "trăm"]
        )  # fmt: skip

    @staticmethod
    def _digits(tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        word, after = tokens[at][0], at + 1
        if re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?|\d+,\d+", word):
            value = Decimal(word.replace(".", "").replace(",", "."))
        elif re.fullmatch(r"\d+", word):
            value = Decimal(word)
        else:
            return None
        if [t[0] for t in tokens[after : after + 1]] == ["("]:
            # 100 (một trăm) triệu: the words repeat the number, what follows them counts.
            close = next((i for i in range(after, min(after + 8, len(tokens))) if tokens[i][0] == ")"), None)
            if close and all(t[0] in _VI_NUMBER for t in tokens[after + 1 : close]):
                after = close + 1
        while after < len(tokens) and tokens[after][0] in _VI_SCALES:
            value, after = value * _VI_SCALES[tokens[after][0]], after + 1
        return value, after

    @staticmethod
    def _words(tokens: list[Token], at: int) -> tuple[Decimal, int] | None:
        total, current, after = 0, 0, at
        while after < len(tokens):
            word = tokens[after][0]
            if word == "mười" and current == 0:
                current = 10
            elif word == "mươi" and 0 < current < 10:
                current *= 10
            elif word == "trăm" and 0 < current < 10:
                current *= 100
            elif word in _VI_ONES and (after == at or (current % 10 == 0 and current)):
                if word == "năm" and after > at:
                    break  # mười năm is ten years; fifteen is mười lăm
                current += _VI_ONES[word]
            elif word in _VI_SCALES and current:
                total, current = total + current * _VI_SCALES[word], 0
            else:
                break
            after += 1
        return Decimal(total + current), after

    def unit(self, tokens: list[Token], at: int, after: int) -> tuple[str, str, int]:
        i, joined = after, False
        for _ in range(8):
            if i >= len(tokens):
                break
            word = tokens[i][0]
            if [t[0] for t in tokens[i : i + 2]] == ["đô", "la"]:
                return "USD", "", i + 2
            if word in self.units:
                unit = self.units[word]
                if unit != "day":
                    return unit, "", i + 1
                rest = [t[0] for t in tokens[i + 1 : i + 3]]
                if rest == ["làm", "việc"]:
                    return unit, "working", i + 3
                return unit, "calendar" if rest[:1] in (["lịch"], ["dương"]) else "unspecified", i + 1
            if word == "phần" and i + 1 < len(tokens) and tokens[i + 1][0] == "trăm":
                return "percent", "", i + 2
            if word in ("hoặc", "đến", "-", "(", ")"):
                i, joined = i + 1, True
            elif joined and (number := self.number(tokens, i)) is not None:
                i, joined = number[1], False
            else:
                break
        return "", "", after


_EN, _VI = _English(), _Vietnamese()


# Dates

_NAMES = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip
_MONTHS = {name: n for n, name in enumerate(_NAMES, 1)}
# January 1, 2027 and 1 January 2027.
_EN_DATE = re.compile(
    rf"\b({'|'.join(_MONTHS)})\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s*((?:19|20)\d{{2}}))?(?!\d)"
    rf"|(?<![\d,.])(\d{{1,2}})(?:st|nd|rd|th)?\s+({'|'.join(_MONTHS)})(?:,?\s+((?:19|20)\d{{2}}))?(?!\d)",
    re.I,
)
_VI_DATE = re.compile(
    r"\b(?:ngày\s+)?(\d{1,2})\s+tháng\s+(\d{1,2})(?:\s+năm\s+(\d{4}))?|\b(\d{1,2})/(\d{1,2})(?:/(\d{4}))?(?!\d|/)", re.I
)


def dates(text: str, language: str) -> tuple[DateMention, ...]:
    """All dates of a text in ``en`` or ``vi``, in order of place."""
    found = []
    for match in (_VI_DATE if language == "vi" else _EN_DATE).finditer(text):
        if language == "vi":
            day, month, year = match.groups()[:3] if match.group(1) else match.groups()[3:]
        else:
            first, last, year, day, named, late = match.groups()
            named, day, year = (first, last, year) if first else (named, day, late)
            month = str(_MONTHS[named.lower()])
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
            found.append(DateMention(f"{year or '-'}-{int(month):02d}-{int(day):02d}", *match.span()))
    return tuple(found)
