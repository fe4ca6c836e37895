"""How much of the judging rules stands in the ontology context, measured against stated thresholds.

Rule O001 of ``regatta validate`` finds ids and long runs of words. This measures what is below that: short runs
(word n-grams, the containment of Broder 1997) and the numbers of the law. A generator that is handed either writes
its suite from the answer sheet (protocol, section 2). Neither sees a paraphrase: that is for readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from itertools import permutations

from regatta_tools.generation.context import Context, Item, context_of
from regatta_tools.provenance.quantities import quantities
from regatta_tools.tables.package import Package
from regatta_tools.validation.separation import JUDGING

#: Words of an n-gram. Vietnamese is written in syllables, of which a word has one or two.
GRAM = {"en": 4, "vi": 6}
#: The most that is allowed. ``item`` and ``cell`` are shares of the n-grams of one item and of all items of a cell
#: that stand in a judging text of the cell; ``numbers`` is the share of the cell's different legal values (number
#: with unit) that items state. Set between what cells on different law share by chance and what cells share that
#: state the same law (:func:`between_cells`; docs/generation.md has the measurement).
THRESHOLDS = {"item": 0.15, "cell": 0.02, "numbers": 0.05}
_WORD = re.compile(r"\w+")

Gram = tuple[str, ...]


@dataclass(frozen=True)
class Overlap:
    """What was measured for one cell; shares from 0 to 1.

    ``item`` is the share of the worst item, which is ``worst``; ``numbers_found`` are legal values that items state,
    as ``(item, value and unit)``.
    """

    cell: str
    items: int
    item: float
    worst: str
    whole: float
    numbers: float
    numbers_found: tuple[tuple[str, str], ...]

    def beyond(self) -> list[str]:
        """The measures that are above their threshold, by name."""
        found = {"item": self.item, "cell": self.whole, "numbers": self.numbers}
        return [name for name, share in found.items() if share > THRESHOLDS[name]]

    def as_dict(self) -> dict[str, object]:
        return asdict(self) | {"thresholds": THRESHOLDS, "beyond": self.beyond()}


def grams(text: str, language: str) -> set[Gram]:
    """The n-grams of a text in small letters."""
    words = _WORD.findall(text.lower())
    size = GRAM[language]
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}


def overlap(package: Package, cell: str) -> Overlap:
    """Measure the context of a cell against its judging rules, in every language of the cell."""
    context = context_of(package, cell)
    languages = context.cell.record["languages"].split("-")
    worst, highest = "", 0.0
    shared = of_all = 0
    for language in languages:
        judging = {gram for text in judging_texts(package, cell, language) for gram in grams(text, language)}
        for item in context.items:
            own = {gram for text in item.texts(language) for gram in grams(text, language)}
            both = len(own & judging)
            shared, of_all = shared + both, of_all + len(own)
            if own and both / len(own) > highest:
                worst, highest = item.id, both / len(own)
    values = legal_values(package, cell)
    told = tuple(sorted({(i.id, shown) for i in context.items for shown in _stated(context, i) if shown in values}))
    numbers = len({shown for _, shown in told}) / len(values) if values else 0.0
    return Overlap(cell, len(context.items), highest, worst, shared / of_all if of_all else 0.0, numbers, told)


def judging_texts(package: Package, cell: str, language: str) -> Iterator[str]:
    """The judging texts of a cell in a language. Columns without a language are in English."""
    for table, columns in JUDGING.items():
        for record in package.cell_records(table, cell):
            yield from (record[c] for c in columns if c.endswith("_vi") == (language == "vi") and record[c])


def between_cells(package: Package) -> Iterator[tuple[str, str, str, float, float]]:
    """What texts share that were not taken from one another: duties of one cell, judging texts of another.

    One row for each language and ordered pair of cells: language, cell, other cell, mean share over the duties, and
    the share below which 95 % of them lie.
    """
    cells = [(c.key, c["languages"].split("-")) for c in package.table("cells")]
    for language in GRAM:
        names = [name for name, languages in cells if language in languages]
        judging = {n: {g for t in judging_texts(package, n, language) for g in grams(t, language)} for n in names}
        for name, other in permutations(names, 2):
            duties = (grams(r[f"duty_{language}"], language) for r in package.cell_records("requirements", name))
            shares = sorted(len(duty & judging[other]) / len(duty) for duty in duties if duty)
            if shares:
                yield language, name, other, sum(shares) / len(shares), shares[int(0.95 * (len(shares) - 1))]


def legal_values(package: Package, cell: str) -> set[str]:
    """The different values of the facts of a cell that are a number with a unit, such as ``10 day``."""
    found = set()
    for fact in package.cell_records("facts", cell):
        try:
            found.add(_shown(Decimal(fact["value"]), fact["unit"]))
        except InvalidOperation:
            continue
    return found - {""}


def _stated(context: Context, item: Item) -> Iterator[str]:
    for language in context.cell.record["languages"].split("-"):
        for text in item.texts(language):
            yield from (_shown(q.value, q.unit) for q in quantities(text, language) if q.unit)
    # The range of a metric has its unit in a column of its own.
    if item.record.cells.get("unit"):
        for text in (item.text("healthy_range", "en"), item.text("healthy_range", "vi")):
            yield from (_shown(q.value, item.record["unit"]) for q in quantities(text, "en") if not q.unit)


def _shown(value: Decimal, unit: str) -> str:
    return f"{value.normalize():f} {unit}" if unit else ""
