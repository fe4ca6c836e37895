"""What `regatta sheet` did, in words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from regatta_tools.report.findings import counted, folded, plain

if TYPE_CHECKING:
    from regatta_tools.sheets.bring_back import BroughtBack
    from regatta_tools.sheets.export import Exported
    from regatta_tools.sheets.grid import SheetFinding

_OPEN = "note: the workbook is open in a spreadsheet program; what was typed and not saved is not in the file"


def out_text(done: Exported) -> str:
    """What was exported, and what to do next."""
    counts = ", ".join(f"{name} {rows}" for name, rows in done.tables.items())
    lines = [f"{done.file}:", *folded(counts, "  ", "  ")]
    if done.notes:
        lines.append(f"{counted(done.notes, 'note')} carried over from the workbook that was there")
    if done.lost:
        lines.append(f"{done.lost} of them have no row any more and stand on a sheet of their own")
    if done.open_elsewhere:
        lines.append("note: the workbook is open in a spreadsheet program, which still shows the old one; open it anew")
    lines.append(f"next: edit and save it, then regatta sheet in {shlex.quote(str(done.file))} --check")
    return "\n".join(plain(line) for line in lines)


def in_text(done: BroughtBack, *, check: bool) -> str:
    """Findings, changes by table, record and column, people's notes, and what was written."""
    lines = _finding_lines(done.findings)
    for name, merged in done.changes.items():
        if not (merged.differs or merged.kept):
            continue
        lines.append(
            f"{name}: {len(merged.added)} added, {len(merged.changed)} changed, {len(merged.removed)} removed"
            + (f", {merged.kept} newer in the package and kept" if merged.kept else "")
        )
        lines += [f"  + {key}" for key in merged.added]
        lines += [f"  ~ {key}: {', '.join(columns)}" for key, columns in merged.changed.items()]
        lines += [f"  - {key}" for key in merged.removed]
    if done.notes:
        stay = "stay in the workbook and go" if len(done.notes) > 1 else "stays in the workbook and goes"
        lines.append(f"{counted(len(done.notes), 'note')} {stay} into no table:")
        for note in done.notes:
            place = note.address or f"{note.sheet}, {note.key}, {note.column}"
            lines.append(f"  {place}: {note.author + ': ' if note.author.strip() else ''}{' '.join(note.text.split())}")
    if done.open_elsewhere:
        lines.append(_OPEN)
    return "\n".join(plain(line) for line in [*lines, *_closing(done, check)])


def _closing(done: BroughtBack, check: bool) -> list[str]:
    errors = sum(f.finding.severity == "error" and not f.before for f in done.findings)
    older = sum(f.before for f in done.findings)
    aside = f"; {counted(older, 'finding')} {'was' if older == 1 else 'were'} there before" if older else ""
    file = shlex.quote(done.file)
    if errors:
        return [f"{done.file}: {counted(errors, 'error')}, nothing is written{aside}. `regatta explain CODE` says why."]
    if not done.differs:
        return [f"{done.file}: nothing to bring back{aside}"]
    again = []
    if done.to_read:
        count = counted(len(done.to_read), "requirement")
        again = [f"to be read again against the law ({count}; regatta audit todo --unread): {', '.join(done.to_read)}"]
    if check:
        return [*again, f"{done.file}: fit to be brought back{aside}. next: regatta sheet in {file}"]
    return [
        *(f"written: {name}" for name in done.written),
        *again,
        f"next: regatta sheet out {done.cell} -o {file} before you go on editing (notes are kept){aside}",
    ]


def _finding_lines(findings: Sequence[SheetFinding]) -> list[str]:
    """A line a finding; where several in a row have one mend, it stands once, behind the last."""
    lines = []
    for (_, mend), group in groupby(findings, lambda entry: (entry.finding.code, entry.finding.mend)):
        heads = []
        for entry in group:
            finding = entry.finding
            address = f" {entry.address}" if entry.address else ""
            record = f" ({finding.record})" if finding.record else ""
            before = " [there before]" if entry.before else ""
            words = f"{finding.severity} {finding.code}: {finding.message}{record}{before}"
            heads.append(f"{finding.place()}{address}: {words}")
        of = f" of these {len(heads)}" if len(heads) > 1 else ""
        lines += [*heads, f"    mend{of}: {mend}"]
    return lines
