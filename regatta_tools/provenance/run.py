"""``regatta audit``: a package, the texts that the user holds, a day; an audit report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance.corpus import Corpus, read_corpus
from regatta_tools.provenance.outcomes import AuditReport, audit_package
from regatta_tools.rules.findings import Finding, Report, ordered
from regatta_tools.rules.registry import rule
from regatta_tools.tables.package import Package, Record, read
from regatta_tools.validation import keys, schema
from regatta_tools.validation.changes import Lines, brought_in, changed_lines
from regatta_tools.validation.run import parse_as_of


def open_corpus(texts: Any) -> Corpus:
    """The corpus in a folder. Raises :class:`InputError` where none is named, or there is none."""
    if texts is None:
        raise InputError(
            "the texts of the law are needed", code="U130", mend="name their folder with --texts or in REGATTA_TEXTS"
        )
    return read_corpus(Path(texts))


def open_package(path: Any = None, *, cells: Iterable[str] = (), described: bool = False) -> Package:
    """A package whose tables can be read, are of their form and refer to what is there: an audit follows references.

    What the other rules say of it does not matter here: a wrong package is what an audit is for, and so is one that
    was just edited; only with ``described`` has the descriptor to know of the edit (R011). Raises
    :class:`InputError` for the first error of these kinds, and for a cell that the package does not have.
    """
    package = read(path)
    with package.columns_kept():
        found = [*package.findings, *schema.check(package), *keys.check(package)]
    errors = [f for f in found if f.severity == "error" and (described or f.code != "R011")]
    if errors:
        raise InputError(
            f"the package has {len(errors)} error{'s' * (len(errors) != 1)}, the first: {errors[0].message}",
            code=errors[0].code,
            place=errors[0].place(),
            mend="run `regatta validate` and mend what it lists",
        )
    known = {r.key for r in package.table("cells")}
    for cell in cells:
        if cell not in known:
            raise InputError(
                f"the package has no cell {cell!r}", code="U103", mend=f"use one of: {', '.join(sorted(known))}"
            )
    return package


def see_requirements(package: Package, cells: Iterable[str], requirements: Iterable[str]) -> None:
    """Raise :class:`InputError` for a requirement that is not there, not active, or of none of the cells (if any)."""
    held = {r.key: r for r in package.table("requirements")}
    for key in requirements:
        if key not in held:
            mend = "name one of requirements.csv"
            raise InputError(f"the package has no requirement {key!r}", code="U103", mend=mend)
        if held[key]["status"] != "active":
            what = f"{key} is {held[key]['status']}, and only active requirements are audited"
            raise InputError(what, code="U103", mend="leave it out")
        if cells and held[key]["cell"] not in cells:
            raise InputError(f"{key} is of another cell", code="U103", mend=f"name --cell {held[key]['cell']}")


def run_audit(
    path: Any = None,
    *,
    texts: Any = None,
    cells: Iterable[str] = (),
    requirements: Iterable[str] = (),
    as_of: Any = None,
    within: int | None = None,
    changed_since: str | None = None,
) -> AuditReport:
    """See :func:`regatta_tools.audit`."""
    when = parse_as_of(as_of)
    cells, requirements = list(cells), list(requirements)
    package = open_package(path, cells=cells)
    see_requirements(package, cells, requirements)
    corpus = open_corpus(texts) if texts is not None else None
    report = audit_package(package, corpus, as_of=when, cells=cells, requirements=requirements, within=within)
    if changed_since is None:
        return report
    touched = changed_lines(package.root, changed_since)
    gone: list[Finding] = []

    def before(folder: Path) -> Report:
        old = open_package(folder)
        gone.extend(_readings_gone(package, old, {*cells}))
        return audit_package(old, corpus, as_of=when, cells=cells, requirements=requirements).as_report()

    found = report.as_report()
    new = brought_in(found, changed_since, before)
    left = {*new.findings}
    findings = [mine for mine, theirs in zip(report.findings, found.findings, strict=True) if theirs in left]
    named = {f.record for f in findings}
    items = [i for i in report.items if _touched(package, i.requirement, touched, named)]
    return replace(report, items=items, findings=ordered([*findings, *gone]), since=changed_since, older=new.older)


def _touched(package: Package, requirement: Record, lines: Lines, named: set[str]) -> bool:
    """Whether a change touched a requirement, what it rests on or its readings, or a finding of it is new."""
    own = [requirement]
    for table in ("citations", "facts", "audit"):
        own += [r for r in package.table(table) if r["requirement"] == requirement.key]
    own += [package.by_id[r["source"]] for r in own if r.spec.name == "citations"]
    return any(r.key in named or any(r.line in part for part in lines.get(r.file, ())) for r in own)


def _readings_gone(package: Package, before: Package, cells: set[str]) -> list[Finding]:
    """Readings of citations that are still there, which were changed or taken out: they are only added."""
    now = {r.key: r for r in package.table("audit")}
    citations = {r.key for r in package.table("citations")}
    found = []
    for old in before.table("audit"):
        if old["citation"] not in citations or (cells and old["cell"] not in cells):
            continue
        new = now.get(old.key)
        if new is None:
            found.append(rule("A003").finding("this reading was taken out", file=old.file, record=old.key))
        elif new.values != old.values:
            columns = ", ".join(c for c in old.spec.columns if old[c] != new[c])
            found.append(new.finding("A003", "id", f"this reading was changed after it was recorded: {columns}"))
    return found
