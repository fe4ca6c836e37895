"""New cells and their steps, in words."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from regatta_tools.report.findings import counted, folded, plain

if TYPE_CHECKING:
    from regatta_tools.cells.new import NewCell
    from regatta_tools.cells.status import CellStatus


def new_text(done: NewCell) -> str:
    """What was written, and the next steps."""
    sources = f" and {', '.join(done.sources)} in sources.csv" if done.sources else ""
    unread = [
        f"No grammar reads citations of {done.unread}: that they are there is checked, their form is not",
        "(regatta explain C006; docs/citations.md).",
    ]
    lines = [
        f"{done.id}: written to {done.root / 'instruments' / done.id}{sources}",
        f"It holds one worked example, carried over from {done.example}: a true item of another cell that shows the",
        "form. It is no item of this cell, and no run is scored as long as it is there (regatta explain P014).",
        *(unread if done.unread else ()),
        "",
        "next:",
        "  1. list the governing texts in instruments/sources.csv",
        f"  2. write 25 obligations, and take out every record with -example in its id (regatta sheet out {done.id})",
        "  3. write five faults, one of each class",
        "  regatta validate               says what is wrong, in which line",
        f"  regatta cell status {shlex.quote(done.id)}   shows how far the cell is",
    ]
    return "\n".join(plain(line) for line in lines)


def status_text(cells: list[CellStatus]) -> str:
    """A block a cell: six lines with what is there, and below each what is missing and the command that shows it."""
    blocks = []
    for status in cells:
        lines = [plain(f"{status.cell}  {status.title}")]
        if status.example:
            lines += folded(
                f"the worked example is still there ({status.example}); it counts for nothing below", "   ", "   "
            )
        if status.errors:
            lines.append(f"   {counted(status.errors, 'error')} in its files: regatta validate")
        for step in status.steps:
            lines += folded(f"{step.name}: {step.evidence}", f"{step.number}  {step.state:<5}  ", " " * 10)
            for what in step.missing:
                lines += folded(f"missing: {what}", " " * 10, " " * 19)
            if step.command:
                # In one line, to be copied.
                lines.append(plain(f"          see: {step.command}"))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
