"""Does the audit see? Spoil clean requirements in known ways and count what the machine checks catch.

    python bench/audit_mutations.py [--texts DIR] [--cell CELL ...] [--seed N] [--write]

With ``--write`` the figures are put into docs/audit.md and docs/audit-benchmark.md, each between its two marks; only
for all cells and the seed of the file.

Each operator changes one requirement consistently: a number changes in the fact *and* in the duties, so that nothing
but the text of the law contradicts it. The edits are made on records in memory; no file changes. Two settings are
counted: ``recorded``, as shipped, with the hashes of passages and the places where readers found the facts; and
``bare``, with neither, so that only the words of the law speak.

Written before the checks were tuned on it (see the history of this file). Operators, choices and seeds are fixed here.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from regatta_tools.measures.agreement import clopper_pearson
from regatta_tools.provenance import checks, passages
from regatta_tools.provenance.citations import country
from regatta_tools.provenance.corpus import Corpus, read_corpus
from regatta_tools.provenance.locators import targets_of
from regatta_tools.provenance.quantities import quantities
from regatta_tools.tables.package import Package, Record, read

ROOT = Path(__file__).resolve().parents[1]
PITFALLS = ROOT / "bench" / "audit_pitfalls"
SEED = 20261130
#: The shares that are aimed at: of the pitfalls, and of each other operator.
AIMS = {"pitfall": 0.9}
MECHANICAL_AIM = 0.98
Edit = tuple[str, str, str]  # key of the record, column, new value


@dataclass(frozen=True)
class Mutation:
    """A spoilt requirement: the operator, what was done in words, and the edits."""

    operator: str
    requirement: str
    what: str
    edits: tuple[Edit, ...]


class Bench:
    """The clean package with what operators need to choose from."""

    def __init__(self, package: Package, corpus: Corpus, day: date) -> None:
        self.package, self.corpus, self.day = package, corpus, day
        self.index = checks.Index(package)
        self.keyed = {r.key: r for r in package}
        self.clean = {r.key: checks.check(self.index, r, corpus, day) for r in package.table("requirements")}

    def spoilt(self, mutation: Mutation, bare: bool) -> checks.Checked:
        """The check of the mutation's requirement on a copy of the package with its edits."""
        edited: dict[str, dict[str, str]] = defaultdict(dict)
        for key, column, value in mutation.edits:
            edited[key][column] = value
        records = {
            table: [self._copy(r, edited.get(r.key), bare) for r in rows if not (bare and table == "audit")]
            for table, rows in self.package.records.items()
        }
        other = Package(self.package.root, self.package.descriptor, records)
        requirement = next(r for r in other.table("requirements") if r.key == mutation.requirement)
        return checks.check(checks.Index(other), requirement, self.corpus, self.day)

    @staticmethod
    def _copy(record: Record, edits: dict[str, str] | None, bare: bool) -> Record:
        bare = bare and record.spec.name == "citations"
        if not edits and not bare:
            return record
        cells = dict(record.cells) | (edits or {})
        if bare:
            cells = cells | {"passage_hash": "", "normalisation": ""}
        return Record(record.spec, cells, record.table, record.row)

    def passage(self, citation: str) -> str:
        for result in self.clean.values():
            for r in result.reads:
                if r.citation.key == citation and r.passage is not None:
                    return r.passage.normal
        return ""


# Numbers in texts


def _language(requirement: str) -> str:
    return "vi" if requirement.split("-r")[0].endswith("-vn") else "en"


def _restated(bench: Bench, requirement: str, fact: Record, value: str) -> list[Edit]:
    """Edits that put another number for a fact into the duties and conditions of its requirement."""
    record = bench.keyed[requirement]
    edits = []
    for column in ("duty_en", "duty_vi", "applies_when"):
        text = record[column]
        language = "vi" if column == "duty_vi" else "en"
        found = [q for q in quantities(text, language) if q.value == Decimal(fact["value"])]
        if fact["unit"] not in ("item", "decimal-place"):
            found = [q for q in found if q.unit == fact["unit"] or not q.unit]
        for q in reversed(found):
            shown = value.replace(".", ",") if language == "vi" else value
            text = text[: q.start] + shown + text[q.end :]
        if text != record[column]:
            edits.append((requirement, column, text))
    return edits


def _numeric(bench: Bench) -> Iterator[tuple[str, Record]]:
    for requirement, result in bench.clean.items():
        for fact in bench.index.facts.get(requirement, []):
            if fact["kind"] in checks.NUMERIC and any(r.citation.key == fact["citation"] for r in result.reads):
                yield requirement, fact


# Operators. Each gives at most one mutation a fact, citation or requirement.


def other_number(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The number becomes one that the passage does not state, of the same magnitude."""
    for requirement, fact in _numeric(bench):
        stated = {q.value for q in quantities(bench.passage(fact["citation"]), _language(requirement))}
        value = Decimal(fact["value"])
        choices = [value * 2, value + 5, value + 1, value * 3, value + 10, value * Decimal("1.5"), value + 7]
        new = next(v for v in rng.sample(choices, len(choices)) if v not in stated)
        text = format(new.normalize(), "f")
        edits = [(fact.key, "value", text), *_restated(bench, requirement, fact, text)]
        yield Mutation("other-number", requirement, f"{fact.key} {fact['value']} -> {text}", tuple(edits))


def number_of_passage(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The number becomes another one of its passage, in the same unit and kind of days: the mistake that looks true."""
    for requirement, fact in _numeric(bench):
        found = quantities(bench.passage(fact["citation"]), _language(requirement))
        others = {
            q.value
            for q in found
            if q.value != Decimal(fact["value"])
            and (q.unit == fact["unit"] or (fact["unit"] in ("item", "decimal-place", "times") and not q.unit))
            and (fact["unit"] != "day" or q.day_count == fact["day_count"])
        }
        if others:
            text = format(rng.choice(sorted(others)).normalize(), "f")
            edits = [(fact.key, "value", text), *_restated(bench, requirement, fact, text)]
            yield Mutation("number-of-passage", requirement, f"{fact.key} {fact['value']} -> {text}", tuple(edits))


_DAY_WORDS = {
    "calendar": ("calendar days", "calendar day"),
    "business": ("business days", "business day"),
    "working": ("working days", "working day"),
    "unspecified": ("days", "day"),
}


def kind_of_days(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """Days are counted in another way."""
    for requirement, fact in _numeric(bench):
        if fact["unit"] == "day":
            new = rng.choice([k for k in _DAY_WORDS if k != fact["day_count"]])
            record = bench.keyed[requirement]
            old_words = _DAY_WORDS[fact["day_count"]]
            duty = record["duty_en"]
            for old, put in zip(old_words, _DAY_WORDS[new]):
                duty = duty.replace(f"{fact['value']} {old}", f"{fact['value']} {put}")
            edits = [(fact.key, "day_count", new), (requirement, "duty_en", duty)]
            yield Mutation("kind-of-days", requirement, f"{fact.key} {fact['day_count']} -> {new}", tuple(edits))


_UNITS = {"hour": "day", "day": "month", "month": "year", "year": "month", "week": "day", "minute": "hour",
          "USD": "VND", "VND": "USD", "percent": "times", "times": "percent"}  # fmt: skip


def unit(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The number stays and its unit changes."""
    for requirement, fact in _numeric(bench):
        if fact["unit"] in _UNITS:
            new = _UNITS[fact["unit"]]
            edits = [(fact.key, "unit", new), (fact.key, "day_count", "unspecified" if new == "day" else "")]
            yield Mutation("unit", requirement, f"{fact.key} {fact['unit']} -> {new}", tuple(edits))


_TURNED = {"at-most": "at-least", "at-least": "at-most", "more-than": "less-than", "less-than": "more-than"}


def comparator(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The bound is turned round."""
    for requirement, fact in _numeric(bench):
        if fact["comparator"] in _TURNED:
            new = _TURNED[fact["comparator"]]
            yield Mutation("comparator", requirement, f"{fact.key} {new}", ((fact.key, "comparator", new),))


def _citations(bench: Bench, role: str = "basis") -> Iterator[tuple[str, Record]]:
    for requirement in bench.clean:
        for citation in bench.index.citations.get(requirement, []):
            if citation["role"] == role:
                yield requirement, citation


def section(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The locator names another section or article."""
    for requirement, citation in _citations(bench):
        old = citation["locator"]
        if old.startswith("Điều "):
            number = "".join(c for c in old.split()[1] if c.isdigit())
            new = old.replace(f"Điều {number}", f"Điều {int(number) + rng.choice([1, 2, 10])}", 1)
        else:
            digits = [i for i, c in enumerate(old) if c.isdigit() and (i + 1 == len(old) or not old[i + 1].isdigit())]
            head = old.split("(")[0]
            last = max(i for i in digits if i < len(head))
            new = old[:last] + str((int(old[last]) + rng.choice([1, 2, 3])) % 10) + old[last + 1 :]
        yield Mutation("section", requirement, f"{citation.key} {new}", ((citation.key, "locator", new),))


def paragraph(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The locator names another paragraph of the right section, one that the text has."""
    for requirement, result in bench.clean.items():
        for found in result.reads:
            citation = found.citation
            if citation["role"] != "basis" or found.text is None:
                continue
            new = _sibling(found, bench.index.sources[citation["source"]]["jurisdiction"], rng)
            if new:
                what = f"{citation.key} {citation['locator']} -> {new}"
                yield Mutation("paragraph", requirement, what, ((citation.key, "locator", new),))


def _sibling(read: checks.Read, jurisdiction: str, rng: random.Random) -> str:
    locator = read.citation["locator"]
    vietnamese = locator.startswith("Điều ")
    if "-" in locator.rpartition("(" if not vietnamese else ",")[2] or (not vietnamese and not locator.endswith(")")):
        return ""
    if vietnamese:
        head, sign, last = locator.rpartition(" ")
        labels = [str(n) for n in range(1, 12)] if last.isdigit() else list("abcdđeghik")
        form = f"{head}{sign}%s"
        if "khoản" not in locator:
            return ""
    else:
        head, _, last = locator.rpartition("(")
        last = last[:-1]
        labels = [str(n) for n in range(1, 12)] if last.isdigit() else list("abcdefghijk")
        if last[0].isupper():
            labels = [x.upper() for x in labels]
        form = f"{head}(%s)"
    for label in rng.sample(labels, len(labels)):
        if label == last or (last in ("i", "ii", "iii", "iv", "v") and label not in "iv"):
            continue
        targets, _ = targets_of(form % label, jurisdiction)
        assert read.text is not None
        if targets and passages.find_passages(read.text, targets, country(jurisdiction))[0] is not None:
            return form % label
    return ""


def instrument(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The citation names another source of the package, in force and binding, with the locator as it was."""
    for requirement, citation in _citations(bench):
        where = country(bench.index.sources[citation["source"]]["jurisdiction"])
        others = sorted(
            k for k, s in bench.index.sources.items()
            if k != citation["source"] and country(s["jurisdiction"]) == where and s["status"] == "in-force"
        )  # fmt: skip
        new = rng.choice(others)
        yield Mutation("instrument", requirement, f"{citation.key} {new}", ((citation.key, "source", new),))


def year(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The year, or for US law the title, in the number of the instrument changes."""
    seen = set()
    for requirement, citation in _citations(bench):
        source = bench.index.sources[citation["source"]]
        old = source["number"]
        if (requirement, source.key) in seen:
            continue
        seen.add((requirement, source.key))
        parts = old.split("/")
        if len(parts) >= 3 and parts[1].isdigit():
            new = "/".join([parts[0], str(int(parts[1]) + rng.choice([-2, -1, 1])), *parts[2:]])
            edits: tuple[Edit, ...] = ((source.key, "number", new),)
        elif old.split()[0].isdigit():
            title = str(int(old.split()[0]) + rng.choice([1, 2, 3]))
            new = " ".join([title, *old.split()[1:]])
            locator = " ".join([title, *citation["locator"].split()[1:]])
            edits = ((source.key, "number", new), (citation.key, "locator", locator))
        else:
            continue
        yield Mutation("year", requirement, f"{source.key} {new}", edits)


def effective(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The passage takes effect a year later than the day, or ended a year before."""
    for requirement, citation in _citations(bench):
        column, when = rng.choice([("force_from", bench.day.year + 1), ("force_to", bench.day.year - 1)])
        edit = (citation.key, column, f"{when}-01-01")
        yield Mutation("effective", requirement, f"{citation.key} {column} {when}", (edit,))


def status(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The source is repealed, not in force yet, or superseded."""
    for requirement, citation in _citations(bench):
        if citation["kept_in_force_by"]:
            continue  # a repealed text that is kept alive is meant to pass
        source = citation["source"]
        others = [k for k in bench.index.sources if k != source]
        edit = rng.choice(
            [
                (source, "status", "repealed"),
                (source, "superseded_by", rng.choice(others)),
                (source, "ends", "2020-01-01"),
            ]
        )
        yield Mutation("status", requirement, f"{source} {edit[1]} {edit[2]}", (edit,))


def swapped(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """Two requirements of a cell exchange the passages that they rest on."""
    by_cell: dict[str, list[tuple[str, Record]]] = defaultdict(list)
    for requirement, citation in _citations(bench):
        by_cell[citation["cell"]].append((requirement, citation))
    for found in by_cell.values():
        for requirement, one in found:
            others = [
                c
                for r, c in found
                if r != requirement and (c["source"], c["locator"]) != (one["source"], one["locator"])
            ]
            two = rng.choice(others)
            edits = tuple(
                (a.key, column, b[column]) for a, b in ((one, two), (two, one)) for column in ("source", "locator")
            )
            yield Mutation("swapped", requirement, f"{one.key} <-> {two.key}", edits)


def guidance(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """The law cited is replaced by guidance, a model law or a standard."""
    for requirement, citation in _citations(bench):
        kind = rng.choice(["guidance", "model-law", "standard"])
        edits = ((citation["source"], "kind", kind), (citation["source"], "binding", "false"))
        yield Mutation("guidance", requirement, f"{citation['source']} {kind}", edits)


_ACTORS = ("consumer", "customer's heirs", "the supervisory authority", "a broker outside the law's reach")


def actor(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """Somebody else is bound. Reported apart: who is bound is words."""
    for requirement in bench.clean:
        yield Mutation("actor", requirement, "another actor", ((requirement, "actor", rng.choice(_ACTORS)),))


def inverted(bench: Bench, rng: random.Random) -> Iterator[Mutation]:
    """What must be done may not be done, or the reverse. Reported apart: it is words."""
    for requirement in bench.clean:
        duty = bench.keyed[requirement]["duty_en"]
        for old, new in (("may not", "must"), ("must not", "must"), ("must", "need not"), ("may", "may not")):
            if f" {old} " in duty:
                edit = (requirement, "duty_en", duty.replace(f" {old} ", f" {new} ", 1))
                yield Mutation("inverted", requirement, f"{old} -> {new}", (edit,))
                break


OPERATORS: tuple[Callable[[Bench, random.Random], Iterator[Mutation]], ...] = (
    other_number, number_of_passage, kind_of_days, unit, comparator, section, paragraph, instrument, year, effective,
    status, swapped, guidance,
)  # fmt: skip
#: What only a reader can see: counted, and kept out of the aim.
WORDS = (actor, inverted)


# Pitfalls of the dossiers


def pitfalls(bench: Bench, cells: list[str]) -> tuple[list[Mutation], Counter[str], int]:
    """The pitfalls that can be expressed as edits; the reasons of the others, counted; and how many there are.

    ``bench/audit_pitfalls/CELL.yaml`` lists each pitfall of the 25 dossier items of a cell with ``edits`` (column and
    new value, or a part of the text to replace) or ``excluded`` and the reason.
    """
    from regatta_tools.documents import read_document

    found: list[Mutation] = []
    excluded: Counter[str] = Counter()
    total = 0
    for cell in cells:
        path = PITFALLS / f"{cell}.yaml"
        if not path.is_file():
            continue
        for entry in read_document(path).value:
            total += 1
            if "excluded" in entry:
                excluded[entry["excluded"]] += 1
                continue
            edits: dict[tuple[str, str], str] = {}
            for edit in entry["edits"]:
                # A second edit of one cell goes on from the first.
                key = edit["record"], edit["column"]
                edits[key] = _edited(edit, edits.get(key, bench.keyed[edit["record"]][edit["column"]]))
            what = tuple((record, column, text) for (record, column), text in edits.items())
            found.append(Mutation("pitfall", entry["requirement"], entry["pitfall"], what))
    return found, excluded, total


def _edited(edit: dict[str, str], old: str) -> str:
    """The text of a cell after one edit of the list; an edit that does nothing is a mistake of the list."""
    if "value" not in edit and edit["replace"] not in old:
        raise SystemExit(f"{edit['record']}.{edit['column']} does not hold {edit['replace']!r}")
    new = str(edit["value"]) if "value" in edit else old.replace(edit["replace"], edit["by"])
    if new == old:
        raise SystemExit(f"{edit['record']}.{edit['column']}: the edit changes nothing")
    return new


# Counting


Counts = dict[str, dict[str, Counter[str]]]


def run(bench: Bench, cells: list[str], seed: int = SEED) -> tuple[Counts, list[Mutation]]:
    """Detections by operator and setting: counts of ``seen``, ``missed`` and, for each reason given, its name.

    And the mutations that were missed with what is recorded at hand, but for those of :data:`WORDS`.
    """
    result: Counts = {}
    unseen: list[Mutation] = []
    chosen = [
        (op.__name__.replace("_", "-"), list(op(bench, random.Random(f"{seed}-{op.__name__}")))) for op in OPERATORS
    ]
    chosen.append(("pitfall", pitfalls(bench, cells)[0]))
    chosen += [(op.__name__, list(op(bench, random.Random(f"{seed}-{op.__name__}")))) for op in WORDS]
    for name, mutations in chosen:
        counts = {"recorded": Counter(), "bare": Counter()}
        for mutation in mutations:
            if not any(mutation.requirement.startswith(f"{cell}-") for cell in cells):
                continue
            for setting, tally in counts.items():
                checked = bench.spoilt(mutation, bare=setting == "bare")
                seen = checked.outcome not in (checks.CLEAN, checks.NOT_ASSESSED)
                tally["seen" if seen else "missed"] += 1
                tally.update({f"reason {t.reason}": 1 for t in checked.troubles})
                if not seen and setting == "recorded":
                    print(f"missed: {name}: {mutation.requirement}: {mutation.what}", file=sys.stderr)
                    if name not in {op.__name__ for op in WORDS}:
                        unseen.append(mutation)
        result[name] = counts
    return result, unseen


def short_table(result: Counts) -> str:
    """Operator, number, seen with what is recorded, exact interval, aim; what only a reader sees has no aim."""
    lines = ["| what is spoilt | n | seen | share [95 %] | aim |", "| --- | ---: | ---: | --- | --- |"]
    for name, counts in result.items():
        seen, missed = counts["recorded"]["seen"], counts["recorded"]["missed"]
        total = seen + missed
        low, high = clopper_pearson(seen, total) if total else (0.0, 1.0)
        words = name in {op.__name__ for op in WORDS}
        aim = AIMS.get(name, MECHANICAL_AIM)
        said = "a reader's" if words else f"> {aim:.2f} {'met' if total and seen / total > aim else '**not met**'}"
        share = f"{seen / total:.3f} [{low:.3f}, {high:.3f}]" if total else "-"
        lines.append(f"| {name} | {total} | {seen} | {share} | {said} |")
    return "\n".join(lines)


def table(result: Counts) -> str:
    lines = ["| operator | n | seen, recorded | 95 % | seen, bare | 95 % |", "| --- | ---: | ---: | --- | ---: | --- |"]
    for name, counts in result.items():
        cells = []
        total = sum(counts["bare"][k] for k in ("seen", "missed"))
        for setting in ("recorded", "bare"):
            seen = counts[setting]["seen"]
            low, high = clopper_pearson(seen, total) if total else (0.0, 1.0)
            cells += [f"{seen / total:.3f}" if total else "-", f"[{low:.3f}, {high:.3f}]"]
        lines.append(f"| {name} | {total} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, default=ROOT.parent / "shared" / "legal" / "texts")
    parser.add_argument("--cell", action="append", default=[])
    parser.add_argument("--as-of", type=date.fromisoformat, default=date(2026, 11, 30))
    parser.add_argument("--seed", type=int, default=SEED, help="another seed draws other edits")
    parser.add_argument("--write", action="store_true", help="put the figures into the pages of docs/")
    options = parser.parse_args()
    if options.write and (options.cell or options.seed != SEED):
        parser.error("--write is for all cells and the seed of the file")
    package = read(ROOT)
    cells = options.cell or [r.key for r in package.table("cells")]
    bench = Bench(package, read_corpus(options.texts), options.as_of)
    alarms = [
        k for k, c in bench.clean.items() if c.outcome != checks.CLEAN and any(k.startswith(f"{x}-") for x in cells)
    ]
    print(f"false alarms on clean requirements: {len(alarms)} {' '.join(alarms)}")
    result, unseen = run(bench, cells, options.seed)
    print(table(result))
    _, excluded, total = pitfalls(bench, cells)
    print(f"\npitfalls: {total}, of which {sum(excluded.values())} are no edits:")
    for reason, count in excluded.most_common():
        print(f"- {reason}: {count}")
    if options.write:
        write(result, unseen, excluded, total, alarms, len(bench.clean))


def write(
    result: Counts, unseen: list[Mutation], excluded: Counter[str], total: int, alarms: list[str], clean: int
) -> None:
    """Put the figures into the pages, each between its two marks."""
    docs = ROOT / "docs"
    alarmed = f"False alarms on the {clean} requirements as they are: {len(alarms)}."
    missed = "\n".join(f"- {m.operator}, {m.requirement}: {m.what}" for m in unseen) or "none"
    told = {op.__name__.replace("_", "-"): (op.__doc__ or "").strip() for op in (*OPERATORS, *WORDS)}
    operators = "\n".join(f"- **{name}**: {what}" for name, what in told.items())
    reasons = "\n".join(f"| {reason} | {count} |" for reason, count in excluded.most_common())
    expressed = f"{total} pitfalls, of which {total - sum(excluded.values())} are edits and these are none:"
    marked(docs / "audit.md", "figures", f"{short_table(result)}\n\n{alarmed}")
    marked(docs / "audit-benchmark.md", "operators", operators)
    marked(docs / "audit-benchmark.md", "figures", f"{table(result)}\n\n{alarmed}")
    marked(docs / "audit-benchmark.md", "missed", missed)
    marked(docs / "audit-benchmark.md", "excluded", f"{expressed}\n\n| reason | n |\n| --- | ---: |\n{reasons}")


def marked(page: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- NAME -->`` and ``<!-- /NAME -->`` in a page."""
    old = page.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if old.count(start) != 1 or old.count(end) != 1:
        raise SystemExit(f"{page} lacks the marks {start} and {end}")
    before, _, rest = old.partition(start)
    page.write_text(f"{before}{start}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
