"""Pairs of texts: what a Vietnamese cell says in Vietnamese and in English must be there, and be the same.

A pair is two columns of one table, ``x_en`` and ``x_vi``, so a table that comes to have a pair is checked
without a word here. The rules: L002 (a text is missing), L003 (numbers), L004 (language), L005 (working days).
"""

from __future__ import annotations

from regatta_tools.rules.findings import Finding
from regatta_tools.tables.package import Package, Record, TableSpec, table_specs
from regatta_tools.text import shown
from regatta_tools.validation.mentions import differences, plainly_same, working_days

# What stands between words and may be no ASCII either.
_NO_LETTERS = str.maketrans(dict.fromkeys("§“”‘’„–—…•·€£₫°0123456789.,;:()[]%", " "))
#: Shares of words with a letter beyond ASCII, as most syllables of Vietnamese have one. The texts of the package
#: have over .75 in Vietnamese and under .09 in English, where the law's own words are quoted ("vốn tự có").
LEAST_IN_VIETNAMESE = 0.5
MOST_IN_ENGLISH = 0.3
#: A name of a few words may have any letters.
SHORTEST = 5
#: Whether a duty is there in Vietnamese is rule L001, which is a query.
_DUTY = "duty_vi"


def check(package: Package) -> list[Finding]:
    """Findings on every pair of texts. Rows of a cell whose languages are not known are passed over."""
    languages = {cell.key: cell["languages"] for cell in package.table("cells")}
    findings: list[Finding] = []
    for name, spec in table_specs().items():
        for english, vietnamese in _pairs(spec):
            cell, en, vi = (spec.position[column] for column in ("cell", english, vietnamese))
            for index, row in enumerate(package.rows(name)):
                of_cell = languages.get(row[cell])
                # Nothing is wrong with most rows, which need not become records for that.
                if of_cell == "vi-en" and not _is_sound_pair(row[en], row[vi]):
                    findings += _check_pair(package.table(name)[index], english, vietnamese)
                elif of_cell == "en" and (row[vi] or not row[en].isascii()):
                    findings += _check_english(package.table(name)[index], english, vietnamese)
    return findings


def _pairs(spec: TableSpec) -> list[tuple[str, str]]:
    if "cell" not in spec.fields:
        return []
    stems = [c.removesuffix("_en") for c in spec.columns if c.endswith("_en")]
    return [(f"{stem}_en", f"{stem}_vi") for stem in stems if f"{stem}_vi" in spec.fields]


def _is_sound_pair(english: str, vietnamese: str) -> bool:
    """Whether nothing is wrong with a pair. What is wrong, :func:`_check_pair` says."""
    if not english or not vietnamese or _is_vietnamese(english) or _is_not_vietnamese(vietnamese):
        return False
    if plainly_same(english, vietnamese):
        return True
    if any(differences(english, vietnamese)):
        return False
    return working_days(english, "en") == working_days(vietnamese, "vi")


def _check_english(record: Record, english: str, vietnamese: str) -> list[Finding]:
    findings = [_foreign(record, english)] if _is_vietnamese(record[english]) else []
    if record[vietnamese] and vietnamese != _DUTY:
        findings.append(record.finding("L002", vietnamese, f"{vietnamese} is filled in a cell in English"))
    return findings


def _check_pair(record: Record, english: str, vietnamese: str) -> list[Finding]:
    en, vi = record[english], record[vietnamese]
    if not vi:
        missing = en and vietnamese != _DUTY
        what = f"{vietnamese} is empty in a Vietnamese cell"
        return [record.finding("L002", vietnamese, what)] if missing else []
    findings = [_foreign(record, english)] if _is_vietnamese(en) else []
    if _is_not_vietnamese(vi):
        findings.append(_foreign(record, vietnamese))
    if findings or not en:
        return findings
    only_english, only_vietnamese = differences(en, vi)
    sides = ((english, only_english), (vietnamese, only_vietnamese))
    parts = [f"only {name} has {_listed(values)}" for name, values in sides if values]
    if parts:
        findings.append(record.finding("L003", vietnamese, "; ".join(parts)))
    days, days_vi = working_days(en, "en"), working_days(vi, "vi")
    # A number that stands in one text alone has been told.
    odd = sorted((days ^ days_vi) - {*only_english, *only_vietnamese})
    if odd:
        side = english if odd[0] in days else vietnamese
        findings.append(record.finding("L005", vietnamese, f"only {side} counts {_listed(odd[:1])} in working days"))
    return findings


def _listed(values: list[str]) -> str:
    short = [v if len(v) <= 30 else v[:30] + "..." for v in values]
    return ", ".join(short[:10]) + (", ..." if len(short) > 10 else "")


def _foreign(record: Record, column: str) -> Finding:
    language = "Vietnamese" if column.endswith("_vi") else "English"
    return record.finding("L004", column, f"{column} does not look like {language}: {shown(record[column], 40)}")


def _marked_share(text: str) -> float | None:
    """The share of words with a letter beyond ASCII; ``None`` for a text too short to say."""
    words = text.translate(_NO_LETTERS).split()
    if len(words) < SHORTEST:
        return None
    return sum(not word.isascii() for word in words) / len(words)


def _is_vietnamese(text: str) -> bool:
    # Plain ASCII is the usual case, and quickly told.
    share = None if text.isascii() else _marked_share(text)
    return share is not None and share > MOST_IN_ENGLISH


def _is_not_vietnamese(text: str) -> bool:
    share = _marked_share(text)
    return share is not None and share < LEAST_IN_VIETNAMESE
