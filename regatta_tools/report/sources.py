"""Held texts of the law for people."""

from __future__ import annotations

from regatta_tools.provenance.holding import Added, Difference, Holding
from regatta_tools.report.findings import counted, folded, plain


def list_text(held: list[Holding]) -> str:
    """A block a source: its texts, or that there is none."""
    lines = []
    for holding in held:
        cited = counted(holding.citations, "citation")
        known = "" if holding.known else "; no source of the package"
        lines.append(plain(f"{holding.source}  ({cited}{known})"))
        for t in holding.texts:
            size = counted(len(t.sections), "section")
            lines += folded(f"{t.file}  {t.date or 'undated'}  {size}  sha256 {t.sha256[:16]}", "    ", " " * 8)
        if not holding.texts:
            lines.append("    no text")
    without = sum(not holding.texts for holding in held)
    return "\n".join([*lines, "", f"{counted(len(held), 'source')}, {without} of them without a text"])


def added_text(added: Added) -> str:
    """What became of a file that was added."""
    sections = added.text.sections
    span = sections[0].heading if len(sections) == 1 else f"{sections[0].heading} to {sections[-1].heading}"
    lines = [plain(f"{added.path.name}: {len(sections)} section{'s' * (len(sections) != 1)}, {span}")]
    return "\n".join([*lines, *(plain(f"    {note}") for note in added.notes)])


def diff_text(found: Difference) -> str:
    """What a newer text touches: citations by state, and below them the facts that no longer stand."""
    lines = [plain(f"{found.source}: {found.old.file} ({found.old.date or 'undated'}) against {found.new.file} "
                   f"({found.new.date or 'undated'})")]  # fmt: skip
    for touched in found.touched:
        why = f": {touched.why}" if touched.why else ""
        lines.append(plain(f"  {touched.state.ljust(7)}  {touched.citation.key}  {touched.citation['locator']}{why}"))
        lines += [plain(f"      {t.record.key} no longer stands: {t.message}") for t in touched.facts]
    if found.absent:
        lines += folded(f"in neither: {', '.join(found.absent)}", "  ", "      ")
    n = len(found.requirements)
    touched = f"{counted(len(found.touched), 'passage')} of {counted(n, 'requirement')} touched"
    neither = f", {len(found.absent)} in neither text" if found.absent else ""
    return "\n".join([*lines, f"{touched}, {len(found.same)} as before{neither}"])
