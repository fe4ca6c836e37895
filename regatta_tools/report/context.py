"""The receipt of a prompt for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from regatta_tools.generation.strategies import Entry, Prompt


def receipt_text(prompt: Prompt) -> str:
    """What went in by kind, what was left out by reason, and the size; ``--format json`` names each item."""
    receipt = prompt.receipt
    size = f"{prompt.tokens} tokens" + (f" of {receipt.budget}" if receipt.budget is not None else "")
    lines = [f"{receipt.strategy} for {receipt.cell} in {receipt.language}: {size}"]
    lines.append(f"included: {by_kind(receipt.included)}")
    for reason, entries in by_reason(receipt.left_out).items():
        lines.append(f"left out, {reason}: {by_kind(entries)}")
    if receipt.hold_out and receipt.hold_out.rules:
        lines.append(f"held out with seed {receipt.hold_out.seed}: {', '.join(receipt.hold_out.rules)}")
    return "\n".join(lines)


def by_kind(entries: Iterable[Entry]) -> str:
    """Such as ``60 (8 role, 17 rule, ...)``."""
    entries = list(entries)
    kinds = Counter(e.kind for e in entries)
    return f"{len(entries)} ({', '.join(f'{count} {kind}' for kind, count in kinds.items())})" if entries else "nothing"


def by_reason(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Entries by what their reason begins with: strategy, retrieval, budget, held out."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        head = entry.reason.partition(":")[0]
        head = "held out" if head.startswith(("needs ", "mentions ", "held out")) else head
        found.setdefault(head, []).append(entry)
    return found

