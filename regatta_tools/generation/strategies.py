"""The four strategies: from the context of a cell to one prompt and a receipt (protocol, section 4).

- **S1** names the industry and the task, and nothing of the context.
- **S2** crosses the roles of the cell, as personas, with kinds of situations.
- **S3** retrieves passages with BM25 from the context written as plain prose, without names or links.
- **S4** walks the structure: for each rule a case with a right and one with a wrong outcome, for each metric a
  computation, for each role its limits under attack, for each decision and handoff a case of its own.

Items go in whole or not at all. Where a budget is set they are taken in the order of priority of the strategy, an
item that does not fit is passed over, and the receipt says so. The order of S4 goes round the layers, so that no
layer is cut off by a small budget, as it was in the published study (protocol, section 10).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.generation import prompts, tokens
from regatta_tools.generation.context import Context, HoldOut, Item
from regatta_tools.text import sha256_json

STRATEGIES = ("S1", "S2", "S3", "S4")
#: The most passages that S3 takes, as retrieval does; a budget may take fewer.
RETRIEVED = 24
#: Constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009).
_FUSION = 60
#: The number of another instrument in a title: Decree 46/2023, Nghị định số 46/2023/NĐ-CP.
_NUMBER = re.compile(r"\s*\b(?:số\s+)?\d+/\d{4}(?:/[A-ZĐ0-9-]+)?")
#: A section in a title: Texas Insurance Code § 4201.156.
_SECTION = re.compile(r"\s*§+\s*[\w.-]*\w")
#: Columns of the prose of an item, in its order.
_PROSE = ("name", "goals", "limits", "definition", "formula", "healthy_range", "statement", "pattern", "trigger",
          "required_context", "time_limit")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One case that a prompt asks for: its kind, the items that it draws on, and its line in the prompt."""

    kind: str
    items: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Entry:
    """An item in a receipt: ``tokens`` of its text in the prompt, or the ``reason`` for which it was left out."""

    id: str
    kind: str
    tokens: int | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        end = {"tokens": self.tokens} if self.tokens is not None else {"reason": self.reason}
        return {"id": self.id, "kind": self.kind, **end}


@dataclass(frozen=True)
class Receipt:
    """What a prompt was drawn from. Every item of the cell is in ``included`` (in prompt order) or ``left_out``."""

    cell: str
    strategy: str
    language: str
    budget: int | None
    included: tuple[Entry, ...]
    left_out: tuple[Entry, ...]
    hold_out: HoldOut | None
    hashes: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        held = self.hold_out
        return {
            "cell": self.cell,
            "strategy": self.strategy,
            "language": self.language,
            "prompt_version": prompts.VERSION,
            "tokenizer": tokens.NAME,
            "budget_tokens": self.budget,
            "hold_out": {"seed": held.seed, "rules": list(held.rules)} if held and held.rules else None,
            "hashes": self.hashes,
            "included": [e.as_dict() for e in self.included],
            "left_out": [e.as_dict() for e in self.left_out],
        }


@dataclass(frozen=True)
class Prompt:
    """The exact text for the model (one message of the user), its token count, the cases that it asks for in order
    (S2 and S4), and the receipt."""

    text: str
    tokens: int
    cases: tuple[Case, ...]
    receipt: Receipt
    #: Scenarios that it asks for: fewer than were wanted where S2 or S4 has fewer cases.
    asked: int = 0

    def as_dict(self) -> dict[str, Any]:
        cases = [{"kind": c.kind, "items": list(c.items)} for c in self.cases]
        return {
            "prompt": self.text, "tokens": self.tokens, "asked": self.asked, "cases": cases,
            "receipt": self.receipt.as_dict(),
        }  # fmt: skip


def build(
    context: Context,
    strategy: str,
    n: int = 30,
    *,
    budget: int | None = None,
    held: HoldOut | None = None,
    whole: Context | None = None,
    start: int = 0,
) -> Prompt:
    """The prompt of a strategy for ``n`` scenarios.

    ``budget`` is the most tokens of the whole prompt. ``held`` is what a hold-out took from ``whole`` to make
    ``context``; the receipt accounts for those items too. ``start`` is the number of cases (S2, S4) that were asked
    for before: the list goes on there and round.

    Raises :class:`InputError`: U232 (the budget has no room for one item), U234 (unknown strategy), U235 (``n``
    below one).
    """
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {strategy!r}", code="U234", mend="use one of: " + ", ".join(STRATEGIES))
    if n < 1:
        raise InputError(f"{n} scenarios cannot be written", code="U235", mend="ask for at least one")
    plan = {"S1": _Minimal, "S2": _Matrix, "S3": _Retrieval, "S4": _Grounded}[strategy](context, n, start)
    chosen, left = _choose(plan, budget)
    # A prompt asks for as many scenarios as it lists cases: few items make few cases.
    plan.n = len(plan.cases(chosen)) or n
    text = plan.text(chosen)
    whole = whole or context
    reasons = {**{i.id: why for i, why in plan.passed_over}, **left, **(held.removed if held else {})}
    included = [Entry(i.id, i.kind, tokens=tokens.count(plan.render(i))) for i in plan.arranged(chosen)]
    names = {e.id for e in included}
    receipt = Receipt(
        context.cell.id,
        strategy,
        context.language,
        budget,
        tuple(included),
        tuple(Entry(i.id, i.kind, reason=reasons[i.id]) for i in whole.items if i.id not in names),
        held,
        {"context": context.hash, "prompts": prompts.digest(), "prompt": sha256_json(text)},
    )
    return Prompt(text, tokens.count(text), tuple(plan.cases(chosen)), receipt, plan.n)


def _choose(plan: _Plan, budget: int | None) -> tuple[list[Item], dict[str, str]]:
    """The items that fit, by priority, each with those that it needs; and the reason for each other candidate."""
    if budget is None:
        return list(plan.candidates), {}
    chosen: list[Item] = []
    left: dict[str, str] = {}
    smallest: int | None = None
    used = tokens.count(plan.text([]))
    if used > budget:
        raise _too_small(plan, budget, used, None)
    for item in plan.candidates:
        if item in chosen:
            continue
        group = [i for i in plan.with_needs(item) if i not in chosen]
        size = tokens.count(plan.text([*chosen, *group]))
        if not chosen:
            smallest = min(size, smallest or size)
        if size <= budget:
            chosen, used = [*chosen, *group], size
        else:
            left[item.id] = f"budget: with it the prompt has {size} tokens, more than {budget}"
    if plan.candidates and not chosen:
        raise _too_small(plan, budget, used, smallest)
    names = {i.id for i in chosen}
    return chosen, {name: reason for name, reason in left.items() if name not in names}


def _too_small(plan: _Plan, budget: int, bare: int, smallest: int | None) -> InputError:
    least = smallest if smallest is not None else plan.least()
    what = f"a budget of {budget} tokens has no room for one item: without any the prompt takes {bare} tokens"
    return InputError(what, code="U232", mend=f"give at least --budget-tokens {least}")


class _Plan:
    """What a strategy makes of a context: which items in which order, as which text."""

    name = ""

    def __init__(self, context: Context, n: int, start: int) -> None:
        self.context, self.n, self.start = context, n, start
        self.language = context.language
        self.words = prompts.words()[self.language]
        self.labels = self.words["labels"]
        #: Items in the order of priority.
        self.candidates: list[Item] = []
        #: Items that the strategy never takes, with the reason.
        self.passed_over: list[tuple[Item, str]] = []

    def arranged(self, chosen: Iterable[Item]) -> list[Item]:
        """The chosen items in the order of the prompt."""
        return list(chosen)

    def with_needs(self, item: Item) -> list[Item]:
        return [item]

    def cases(self, chosen: Sequence[Item]) -> list[Case]:
        return []

    def render(self, item: Item) -> str:
        raise NotImplementedError

    def text(self, chosen: Sequence[Item]) -> str:
        raise NotImplementedError

    def least(self) -> int:
        """Tokens of the smallest prompt with an item, or of the bare prompt where the strategy takes none."""
        return min((tokens.count(self.text(self.with_needs(i))) for i in self.candidates),
                   default=tokens.count(self.text([])))  # fmt: skip

    def prompt(self, **values: str) -> str:
        cell = self.context.cell.record
        domain, country = cell["domain"], cell["jurisdiction"]
        industry = self.words["industry"].format(
            domain=self.words["industries"].get(domain, domain), country=self.words["countries"].get(country, country)
        )
        form = prompts.template("form", self.language)
        return prompts.render(self.name, self.language, n=str(self.n), industry=industry, form=form, **values)

    def part(self, item: Item, column: str, label: str) -> str:
        """A labelled text of an item, or nothing where it has none."""
        text = item.text(column, self.language)
        return f"{self.labels[label]}: {text}" if text else ""

    def role(self, item: Item, column: str) -> str:
        """The name of the role in a column; the role itself may have been left out."""
        name = item.record[column]
        return self.context.name(name) if name in self.context.by_id else ""

    def source(self, item: Item) -> str:
        """The title of the law that a rule is drawn from. Its number and the place in it are for readers."""
        source = self.context.cell.package.by_id.get(item.record["source"])
        if source is None:
            return ""
        title = source["title_vi"] if self.language == "vi" and source["title_vi"] else source["title"]
        return f"{self.labels['source']}: {_NUMBER.sub('', _SECTION.sub('', title))}"

    def turned(self, cases: list[Case]) -> list[Case]:
        """``n`` cases from ``start`` on, round and round but none twice."""
        at = self.start % len(cases) if cases else 0
        return (cases[at:] + cases[:at])[: self.n]


class _Minimal(_Plan):
    name = "s1"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.passed_over = [(i, "strategy: S1 is told nothing of the context") for i in self.context.items]

    def text(self, chosen: Sequence[Item]) -> str:
        return self.prompt()


class _Matrix(_Plan):
    name = "s2"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.candidates = self.context.of_kind("role")
        others = [i for i in self.context.items if i.kind != "role"]
        self.passed_over = [(i, "strategy: S2 is told personas only") for i in others]

    def render(self, item: Item) -> str:
        texts = (item.text(column, self.language) for column in ("name", "goals", "limits"))
        name, goals, limits = texts
        return f"- {name}: {goals} {limits}"

    def cases(self, chosen: Sequence[Item]) -> list[Case]:
        """Pairs along the diagonals of the matrix, so that every person and every situation comes early."""
        kinds = list(self.words["situations"].values())
        pairs = []
        for shift in range(len(kinds)):
            for row, item in enumerate(chosen):
                situation = kinds[(row + shift) % len(kinds)]
                line = self.words["cases"]["pair"].format(a=item.text("name", self.language), b=situation)
                pairs.append(Case("pair", (item.id,), line))
        return self.turned(pairs)

    def text(self, chosen: Sequence[Item]) -> str:
        situations = "\n".join(f"- {text}" for text in self.words["situations"].values())
        people = _lines(map(self.render, chosen))
        return self.prompt(items=people, situations=situations, cases=_numbered(self.cases(chosen)))


class _Retrieval(_Plan):
    name = "s3"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        ranked = self._ranked()
        self.candidates = ranked[:RETRIEVED]
        names = {i.id: place for place, i in enumerate(ranked, start=1)}
        for item in self.context.items:
            if item in self.candidates:
                continue
            place = names.get(item.id)
            said = f"rank {place} of {len(ranked)}, {RETRIEVED} are taken" if place else "no match"
            self.passed_over.append((item, f"retrieval: {said}"))

    def render(self, item: Item) -> str:
        """The item as a paragraph of prose, without its name or its links."""
        t = {column: item.text(column, self.language) for column in _PROSE}
        if item.kind == "handoff":
            ends = self.labels["from_to"].format(a=self.role(item, "from_role"), b=self.role(item, "to_role"))
            return " ".join(filter(None, [f"{ends}.", t["trigger"], t["required_context"], t["time_limit"]]))
        name = t.pop("name")
        body = " ".join(f"{text.rstrip('.')}." for text in (*t.values(), self.source(item)) if text)
        return f"{name[:1].upper()}{name[1:]}. {body}"

    def text(self, chosen: Sequence[Item]) -> str:
        return self.prompt(items="\n\n".join(map(self.render, chosen)))

    def queries(self) -> list[str]:
        """What is searched for: the kinds of situations, as whoever sets tests for this work would."""
        return list(self.words["situations"].values())

    def _ranked(self) -> list[Item]:
        """Items that match some query, best first: BM25 for each query, joined by reciprocal rank fusion."""
        import bm25s

        english = self.language == "en"

        def split(texts: list[str]) -> list[list[str]]:
            # English stop words only for English: Vietnamese syllables would be hit by chance.
            return bm25s.tokenize(texts, stopwords="en" if english else [], return_ids=False, show_progress=False)

        items = list(self.context.items)
        index = bm25s.BM25(method="lucene")
        index.index(split([self.render(i) for i in items]), show_progress=False)
        score = dict.fromkeys((i.id for i in items), 0.0)
        for query in split(self.queries()):
            known = sorted({word for word in query if word in index.vocab_dict})
            if not known:
                continue
            # Rounded, so that the last digit of a sum decides no order.
            found = [(-round(float(s), 6), i.id) for i, s in zip(items, index.get_scores(known), strict=True) if s > 0]
            for rank, (_, name) in enumerate(sorted(found), start=1):
                score[name] += 1 / (_FUSION + rank)
        return sorted((i for i in items if score[i.id]), key=lambda i: (-round(score[i.id], 9), i.id))


class _Grounded(_Plan):
    name = "s4"
    #: Layers in the order of the prompt.
    LAYERS = (("role", ("role",)), ("rule", ("rule",)), ("concept", ("metric", "notion")),
              ("decision", ("decision",)), ("handoff", ("handoff",)))  # fmt: skip

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        # Round the kinds, so that a small budget leaves out the last of each and no kind as a whole.
        columns = [self.context.of_kind(kind) for kind in ("rule", "role", "metric", "handoff", "decision", "notion")]
        self.candidates = [i for i in chain.from_iterable(zip_longest(*columns)) if i is not None]

    def with_needs(self, item: Item) -> list[Item]:
        """The item after all that it points to, so that no entry points to one that is not there."""
        found: list[Item] = []
        for need in item.needs:
            found += [i for i in self.with_needs(self.context.by_id[need]) if i not in found]
        return [*found, item]

    def arranged(self, chosen: Iterable[Item]) -> list[Item]:
        chosen = list(chosen)
        return [i for _, kinds in self.LAYERS for i in self.context.items if i in chosen and i.kind in kinds]

    def render(self, item: Item) -> str:
        t: Callable[[str], str] = lambda column: item.text(column, self.language)  # noqa: E731
        record, labels = item.record, self.labels
        head = f"[{item.id}] "
        leans = f"{labels['leans']}: [{record['leans_on']}]" if record.cells.get("leans_on") else ""
        if item.kind == "role":
            measured = [self.context.name(m) for r, m in self.context.measured if r == item.id]
            above = self.role(item, "escalates_to")
            parts = [
                t("name"),
                self.part(item, "goals", "goals"),
                self.part(item, "limits", "limits"),
                f"{labels['escalates']}: {above}" if above else "",
                f"{labels['measured']}: {'; '.join(measured)}" if measured else "",
            ]
        elif item.kind == "rule":
            role = self.role(item, "role")
            parts = [t("name"), t("statement"), self.source(item), f"{labels['concerns']}: {role}" if role else ""]
        elif item.kind in ("metric", "notion"):
            watched = [self.context.name(r) for r, m in self.context.measured if m == item.id]
            unit = self.words["units"].get(record["unit"], "")
            parts = [
                t("name"),
                t("definition"),
                self.part(item, "formula", "formula"),
                f"{labels['unit']}: {unit}" if unit else "",
                self.part(item, "healthy_range", "healthy"),
                f"{labels['watched']}: {'; '.join(watched)}" if watched else "",
                leans,
            ]
        elif item.kind == "decision":
            parts = [t("name"), f"{labels['decides']}: [{record['role']}]", t("pattern"), leans]
        else:
            ends = labels["from_to"].format(a=f"[{record['from_role']}]", b=f"[{record['to_role']}]")
            parts = [
                ends,
                self.part(item, "trigger", "trigger"),
                self.part(item, "required_context", "context"),
                self.part(item, "time_limit", "limit"),
                leans,
            ]
        return head + " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)

    def cases(self, chosen: Sequence[Item]) -> list[Case]:
        """Round the kinds of cases, so that the first few have all of them."""
        kinds = (("rule-positive", "rule"), ("rule-negative", "rule"), ("computation", "metric"), ("limit", "role"),
                 ("handoff", "handoff"), ("decision", "decision"))  # fmt: skip
        columns = []
        for number, (case, kind) in enumerate(kinds):
            items = [i for i in self.arranged(chosen) if i.kind == kind]
            if case == "rule-negative" and items:
                # The other outcome of a rule comes in another round than the first.
                items = items[number:] + items[:number]
            line = self.words["cases"][case]
            columns.append([Case(case, (i.id, *i.needs), line.format(a=i.id)) for i in items])
        return self.turned([case for case in chain.from_iterable(zip_longest(*columns)) if case is not None])

    def text(self, chosen: Sequence[Item]) -> str:
        parts = []
        arranged = self.arranged(chosen)
        for layer, kinds in self.LAYERS:
            lines = [self.render(i) for i in arranged if i.kind in kinds]
            if lines:
                parts.append("\n".join([self.words["layers"][layer], *lines]))
        return self.prompt(items="\n\n".join(parts), cases=_numbered(self.cases(chosen)))


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)


def _numbered(cases: Sequence[Case]) -> str:
    return _lines(f"{number}. {case.line}" for number, case in enumerate(cases, start=1))
