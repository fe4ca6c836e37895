"""The ontology context of a cell as items in one language, and the seeded hold-out of rules.

An item is one role, metric, notion, rule, decision pattern or handoff. It is given to a generator whole or not at
all, so it is the unit of receipts. What it says of its sources (``source``, ``locator``) is for people who check it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from regatta_tools.errors import InputError
from regatta_tools.tables.package import Cell, Package, Record
from regatta_tools.text import sha256_json
from regatta_tools.validation.separation import RUN

#: Tables of items, in the order of receipts. ``role_metrics`` holds links, not items.
TABLES = ("roles", "rules", "concepts", "decisions", "handoffs")
KINDS = ("role", "rule", "metric", "notion", "decision", "handoff")
#: Columns by which an item needs another: without the one the other says nothing.
_NEEDS = ("role", "from_role", "to_role", "leans_on")
_KIND = {"roles": "role", "rules": "rule", "decisions": "decision", "handoffs": "handoff"}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Item:
    """One piece of the context. ``needs`` are the ids of the items without which it is not shown."""

    id: str
    kind: str
    record: Record
    needs: tuple[str, ...]

    def text(self, column: str, language: str) -> str:
        """A column in a language; empty where it has none."""
        return self.record.cells.get(f"{column}_{language}") or ""

    def texts(self, language: str) -> list[str]:
        """All texts of the item in a language, in the order of the columns."""
        return [text for column, text in self.record.cells.items() if column.endswith(f"_{language}") and text]


@dataclass(frozen=True)
class Context:
    """The items of a cell in table order, with ``measured``: (role, metric) pairs; ``language`` is that of prompts."""

    cell: Cell
    language: str
    items: tuple[Item, ...]
    measured: tuple[tuple[str, str], ...]

    @cached_property
    def by_id(self) -> dict[str, Item]:
        return {item.id: item for item in self.items}

    def of_kind(self, *kinds: str) -> list[Item]:
        return [item for item in self.items if item.kind in kinds]

    def name(self, item: str) -> str:
        """The name of an item in the language of the context."""
        return self.by_id[item].text("name", self.language)

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the records of all items and the links between them."""
        return sha256_json([[i.record.cells for i in self.items], [list(link) for link in self.measured]])


def context_of(package: Package, cell: str, language: str | None = None) -> Context:
    """The context of a cell, in the leading language of the cell unless another is asked for.

    Raises :class:`InputError`: U103 (no such cell), U230 (the cell has no context), U231 (not in this language).
    """
    found = package.cell(cell)
    languages = found.record["languages"].split("-")
    language = language or languages[0]
    if language not in languages:
        what = f"the cell {cell} is written in {' and '.join(languages)}, not in {language}"
        raise InputError(what, code="U231", mend="use one of: " + ", ".join(languages))
    items = []
    for table in TABLES:
        for record in package.cell_records(table, cell):
            kind = _KIND.get(table) or ("metric" if record["formula_en"] else "notion")
            needs = dict.fromkeys(record[c] for c in _NEEDS if record.cells.get(c) and (table, c) != ("rules", "role"))
            items.append(Item(record.key, kind, record, tuple(needs)))
    if not items:
        raise InputError(
            f"the cell {cell} has no ontology context",
            code="U230",
            place=f"instruments/{cell}/context",
            mend="write roles.csv, rules.csv, concepts.csv, decisions.csv and handoffs.csv there (docs/generation.md)",
        )
    measured = tuple((r["role"], r["concept"]) for r in package.cell_records("role_metrics", cell))
    return Context(found, language, tuple(items), measured)


# Hold-out


@dataclass(frozen=True)
class HoldOut:
    """What a hold-out took out: the rules, in the order in which they were drawn, and every item with its reason."""

    seed: str
    rules: tuple[str, ...] = ()
    removed: dict[str, str] = field(default_factory=dict)


def drawing_order(context: Context, seed: str) -> list[str]:
    """The rules of a context in the order in which a seed draws them: by SHA-256, so the same on every machine."""

    def place(rule: str) -> str:
        return hashlib.sha256(f"{seed}\0{context.cell.id}\0{rule}".encode()).hexdigest()

    return sorted((item.id for item in context.of_kind("rule")), key=place)


def hold_out(context: Context, count: int, seed: str = "0") -> tuple[Context, HoldOut]:
    """The context without ``count`` of its rules and without all that leans on them or mentions them.

    Raises :class:`InputError` (U233) where there are not so many rules.
    """
    order = drawing_order(context, seed)
    if not 0 <= count <= len(order):
        what = f"{count} rules cannot be held out: the context of {context.cell.id} has {len(order)}"
        raise InputError(what, code="U233", mend=f"give a number from 0 to {len(order)}")
    return without(context, order[:count], seed)


def without(context: Context, rules: Iterable[str], seed: str = "") -> tuple[Context, HoldOut]:
    """The context without the rules that are named; see :func:`hold_out`."""
    rules = tuple(rules)
    removed = dict.fromkeys(rules, "held out")
    while True:
        kept = [item for item in context.items if item.id not in removed]
        marks = _marks(context, [context.by_id[r] for r in removed if context.by_id[r].kind == "rule"], kept)
        found: dict[str, str] = {}
        for item in kept:
            leaning = next((need for need in item.needs if need in removed), None)
            mentioned = next((mark for mark in marks if mark.stands_in(_shown_text(context, item))), None)
            if leaning is not None:
                found[item.id] = f"needs {leaning}, which is held out"
            elif mentioned is not None:
                found[item.id] = f"mentions {mentioned.rule}, which is held out"
        if not found:
            break
        removed |= found
    links = tuple((r, m) for r, m in context.measured if r not in removed and m not in removed)
    return replace(context, items=tuple(kept), measured=links), HoldOut(seed, rules, removed)


class _Mark(NamedTuple):
    """Words by which a rule is known: its id, a name, or the name or number of its source."""

    rule: str
    words: str

    def stands_in(self, text: str) -> bool:
        return f" {self.words} " in f" {_words(text)} "


def _marks(context: Context, rules: list[Item], kept: list[Item]) -> list[_Mark]:
    """Marks of rules that are held out. What a rule that stays has too (its source) marks no rule."""
    still_cited = {item.record["source"] for item in kept}
    marks = []
    for rule in rules:
        texts = [rule.id, rule.record["name_en"], rule.record["name_vi"]]
        source = context.cell.package.by_id.get(rule.record["source"])
        if source is not None and source.key not in still_cited:
            texts += [source.key, source["number"], source["title"], source["title_vi"]]
            texts += re.findall(r"\(([^)]{6,})\)", source["title"])  # the short name: (Regulation E)
        marks += [_Mark(rule.id, words) for words in map(_words, texts) if words]
    return marks


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _record_text(item: Item) -> str:
    """Everything that a record says, its links and its source too."""
    return " | ".join(text for text in item.record.cells.values() if text)


def _shown_text(context: Context, item: Item) -> str:
    """What :func:`_record_text` says, and the title of the source, which prompts show."""
    source = context.cell.package.by_id.get(item.record.cells.get("source") or "")
    titles = [source["title"], source["title_vi"]] if source is not None else []
    return " | ".join(text for text in (_record_text(item), *titles) if text)


def traces(before: Context, rules: Iterable[str], texts: Iterable[str]) -> list[str]:
    """What texts still tell of rules that were held out: ids, names, sources, or words in a row.

    ``texts`` are prompts, or the records of a context (:func:`record_texts`). The list is empty where the
    hold-out is whole. Unlike :func:`without`, it knows no links: it only reads.
    """
    texts = list(texts)
    read = [f" {_words(text)} " for text in texts]
    held = [before.by_id[r] for r in rules]
    kept = [item for item in before.items if item.kind == "rule" and item not in held]
    found = []
    for mark in _marks(before, held, kept):
        found += [f"{mark.rule}: {mark.words}" for text in texts if mark.stands_in(text)]
    for rule in held:
        for language, length in RUN.items():
            words = _WORD.findall(rule.text("statement", language).lower())
            runs = {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
            found += [f"{rule.id}: {run}" for run in sorted(runs) for text in read if f" {run} " in text]
    return found


def record_texts(context: Context) -> Iterator[str]:
    """All that the records of a context say, in every language, and its links."""
    for item in context.items:
        yield _record_text(item)
    for role, metric in context.measured:
        yield f"{role} {metric}"
