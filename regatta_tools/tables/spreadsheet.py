"""Texts that a spreadsheet would run: the rule, stated once (case A6).

A spreadsheet takes a cell for a formula, and runs it, where the text begins with ``= + - @``, their full-width
forms included, also behind white space or characters that nobody sees, which it strips; and where it begins with
a tab or a line end. A plain number such as ``-0.25`` begins so too and stays what it is.

The package itself holds no such text (R019) and goes in and out byte for byte. Files meant for people, which
somebody will open in a spreadsheet, are written through :func:`neutral`.
"""

from __future__ import annotations

import re

#: A character that may make a text a formula; nearly every text is settled by looking at its first.
FIRST = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n")
_STRIPPED = r"[\s\x00-\x1f\x7f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*"
_FORMULA = re.compile(rf"[\t\r\n]\s*\S|{_STRIPPED}[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"-[0-9]+(?:\.[0-9]+)?")
_MONTH_AND_DAY = re.compile(r"--[0-9]{2}-[0-9]{2}")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a text, or compute with it, when it opens a file that holds it."""
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def is_forbidden(text: str) -> bool:
    """Whether a text may not stand in the package: a formula, but for a date without a year (``--03-31``).

    That form is the tables' own. A spreadsheet computes with it and spoils it, and runs nothing foreign.
    """
    return is_formula(text) and _MONTH_AND_DAY.fullmatch(text) is None


def neutral(text: str) -> str:
    """A text that a spreadsheet shows as it is: an apostrophe in front of what it would run, else unchanged.

    A text that has the apostrophe already gets one more, so that :func:`restored` undoes it without loss.
    """
    return f"'{text}" if is_formula(text.lstrip("'")) else text


def restored(text: str) -> str:
    """The text of which :func:`neutral` made ``text``."""
    return text[1:] if text.startswith("'") and is_formula(text.lstrip("'")) else text
