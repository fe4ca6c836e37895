"""The measured parts of docs/generation.md: ``python -m regatta_tools.report.generation`` renews them.

Each part stands between ``<!-- name -->`` and ``<!-- /name -->``; the words around them are written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from regatta_tools import paths
from regatta_tools.files import replace_file
from regatta_tools.generation import leak, prompts, tokens
from regatta_tools.generation.context import context_of, drawing_order, hold_out
from regatta_tools.generation.run import prompt_for
from regatta_tools.generation.strategies import STRATEGIES
from regatta_tools.report.context import by_kind, by_reason, receipt_text
from regatta_tools.tables.package import Package, read

#: The cells that are shown side by side, each with a small budget and one with room for everything.
SHOWN = (("fintech-us", 1100), ("banking-vn", 2600))
#: Scenarios that the shown prompts ask for.
ASKED = 4


def parts(package: Package) -> dict[str, str]:
    """The parts of the page by name, as Markdown without a line end at the end."""
    return {
        "sizes": _sizes(package),
        "leak": _leak(package),
        "reference": _reference(package),
        "whole": _whole(package),
        "prompts": _prompts(package),
        "hold-out": _hold_out(package),
    }


def renewed(page: str, package: Package) -> str:
    """The page with its parts made anew. Raises ``ValueError`` for a page that lacks one."""
    for name, text in parts(package).items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda m, text=text: m[1] + text + chr(10) + m[2], page)
        if count != 1:
            raise ValueError(f"the page has {count} parts named {name}")
    return page


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines)


def _cells(package: Package) -> list[str]:
    return [record.key for record in package.table("cells")]


def _sizes(package: Package) -> str:
    rows = []
    for cell in _cells(package):
        context = context_of(package, cell)
        kinds = [len(context.of_kind(k)) for k in ("role", "rule", "metric", "notion", "decision", "handoff")]
        law = sum(1 for i in context.of_kind("rule") if i.record["source"])
        rows.append([f"`{cell}`", kinds[0], f"{kinds[1]} ({law} on a source)", kinds[2] + kinds[3], *kinds[4:],
                     len(context.measured)])  # fmt: skip
    return _table(["cell", "roles", "rules", "concepts", "decisions", "handoffs", "role and metric"], rows)


def _leak(package: Package) -> str:
    rows = []
    for cell in _cells(package):
        o = leak.overlap(package, cell)
        told = ", ".join(f"{value} in `{item}`" for item, value in o.numbers_found) or "none"
        rows.append([f"`{cell}`", f"{o.whole:.1%}", f"{o.item:.1%} (`{o.worst}`)", f"{o.numbers:.1%}", told])
    limits = [f"{leak.THRESHOLDS[k]:.0%}" for k in ("cell", "item", "numbers")]
    rows.append(["**at most**", *limits, ""])
    return _table(["cell", "all items", "worst item", "legal values", "which"], rows)


def _reference(package: Package) -> str:
    found = sorted(leak.between_cells(package), key=lambda r: (-r[3], r[:3]))
    rows = [[f"`{a}`", f"`{b}`", language, f"{mean:.1%}", f"{most:.1%}"] for language, a, b, mean, most in found]
    return _table(["duties of", "judging texts of", "language", "mean", "95 % lie at or below"], rows)


def _whole(package: Package) -> str:
    rows = []
    for strategy in STRATEGIES:
        row = [strategy]
        for cell, _ in SHOWN:
            done = prompt_for(cell, strategy, package=package)
            left = "; ".join(f"{r}: {len(e)}" for r, e in by_reason(done.receipt.left_out).items()) or "nothing"
            row += [f"{done.tokens:,}", by_kind(done.receipt.included), left]
        rows.append(row)
    head = [""] + [h for cell, _ in SHOWN for h in (f"`{cell}`: tokens", "included", "left out")]
    return _table(head, rows)


def _prompts(package: Package) -> str:
    texts = []
    for strategy in STRATEGIES:
        for cell, budget in SHOWN:
            done = prompt_for(cell, strategy, ASKED, budget=budget, package=package)
            form = prompts.template("form", done.receipt.language)
            short = done.text.replace(form, "[...]")
            command = f"regatta context --cell {cell} --strategy {strategy} -n {ASKED} --budget-tokens {budget}"
            texts.append(f"### {strategy}, `{cell}`\n\n```text\n$ {command}\n{short}\n```\n\n"
                         f"```text\n{receipt_text(done)}\n```")  # fmt: skip
    forms = [f"```text\n{prompts.template('form', language)}\n```" for language in prompts.LANGUAGES]
    return "\n\n".join([*texts, "### What stands at [...]", *forms])


def _hold_out(package: Package) -> str:
    cell, _ = SHOWN[0]
    context = context_of(package, cell)
    _, held = hold_out(context, 3, "0")
    rows = [[f"`{item}`", reason] for item, reason in held.removed.items()]
    first = ", ".join(f"`{r}`" for r in drawing_order(context, "0")[:3])
    return f"`regatta context --cell {cell} --strategy S4 --hold-out 3 --seed 0` draws {first}:\n\n" + _table(
        ["taken out", "why"], rows
    )


def main() -> None:
    path = Path(paths.root()) / "docs" / "generation.md"
    page = path.read_text(encoding="utf-8")
    replace_file(path, renewed(page, read(paths.root())).encode("utf-8"))
    print(f"{path.name} renewed (tokens by {tokens.NAME})")


if __name__ == "__main__":
    main()
