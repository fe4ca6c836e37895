"""The ways of counting in which US law labels its paragraphs, and the order of sections.

A label does not say its way of counting: (i) comes after (h), or before (ii). So order is asked of two labels at once.
"""

from __future__ import annotations

import re
from functools import lru_cache

Key = tuple[tuple[int, int, str], ...]
_FORM = re.compile(r"([0-9]{1,4}|[a-z]{1,7}|[A-Z]{1,7})(?:([-.])([0-9]{1,3}|[a-z]{1,2}|[A-Z]{1,2}))?")
_SECTION_PART = re.compile(r"[0-9]+|[A-Za-z]+|[^0-9A-Za-z]+")


def _roman(number: int) -> str:
    out = ""
    for value, sign in ((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")):
        count, number = divmod(number, value)
        out += sign * count
    return out


_ROMAN = {_roman(n): n for n in range(1, 90)}


@lru_cache(maxsize=4096)
def counts(label: str) -> dict[str, tuple[int, Key]]:
    """The ways of counting to which a label (without its brackets) can belong, with its place in each.

    Numbers, letters (a ... z, aa ... zz, aaa ...), pairs of letters, and Roman numerals; a label inserted later
    (1-a, a-1, 2.5) stands after the one that it hangs on. Empty for what is no label.
    """
    match = _FORM.fullmatch(label)
    if match is None:
        return {}
    base, sign, added = match.groups()
    behind = _key(added, False) if sign else ()
    if base.isdigit():
        return {"number": (int(base), behind)} if base == str(int(base)) else {}
    case = "lower" if base.islower() else "upper"
    low = base.lower()
    out = {}
    if low in _ROMAN:
        out[f"{case} roman"] = (_ROMAN[low], behind)
    place = ord(low[0]) - ord("a") + 1
    if len(low) <= 3 and low == low[0] * len(low):
        out[f"{case} letter"] = (26 * (len(low) - 1) + place, behind)
    if len(low) == 2:
        out[f"{case} pair"] = (26 * place + ord(low[1]) - ord("a") + 1, behind)
    return out


def follows(first: str, second: str) -> bool:
    """Whether the label ``second`` comes after ``first`` in a way of counting that has both."""
    one, two = counts(first), counts(second)
    for way in one.keys() & two.keys():
        # (ii) and (xx) are letters only where letters have been doubled already.
        doubled = way.endswith("letter") and len(second) == 2 and second.lower() in _ROMAN and len(first) == 1
        if one[way] < two[way] and not doubled:
            return True
    return False


def _key(text: str, decimal: bool) -> Key:
    key: list[tuple[int, int, str]] = []
    before = ""
    for part in _SECTION_PART.findall(text):
        if part.isdigit():
            # 790.03 stands before 790.1 in codes that count in decimals, and 1005.6 before 1005.10 elsewhere.
            key.append((1, 0, part) if decimal and before == "." else (1, int(part), ""))
        elif part.isalpha():
            key.append((2, len(part), part.lower()))
        before = part
    return tuple(key)


@lru_cache(maxsize=4096)
def section_key(section: str, decimal: bool = False) -> Key:
    """The place of a section number among those of its code. Equal keys do not make equal sections: compare texts."""
    return _key(section, decimal)
