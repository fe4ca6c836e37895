"""``regatta audit``: a package, the texts that the user holds, a day; an audit report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance.corpus import Corpus, read_corpus
from regatta_tools.provenance.outcomes import AuditReport, audit_package
from regatta_tools.tables.package import Package, read
from regatta_tools.validation import keys, schema
from regatta_tools.validation.run import parse_as_of


def open_corpus(texts: Any) -> Corpus:
    """The corpus in a folder. Raises :class:`InputError` where none is named, or there is none."""
    if texts is None:
        raise InputError(
            "the texts of the law are needed", code="U130", mend="name their folder with --texts or in REGATTA_TEXTS"
        )
    return read_corpus(Path(texts))


def open_package(path: Any = None, *, cells: Iterable[str] = ()) -> Package:
    """A package whose tables can be read, are of their form and refer to what is there: an audit follows references.

    What the other rules say of it does not matter here: a wrong package is what an audit is for. Raises
    :class:`InputError` for the first error of these kinds, and for a cell that the package does not have.
    """
    package = read(path)
    with package.columns_kept():
        found = [*package.findings, *schema.check(package), *keys.check(package)]
    errors = [f for f in found if f.severity == "error"]
    if errors:
        raise InputError(
            f"the package has {len(errors)} error(s), the first: {errors[0].message}",
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


def run_audit(
    path: Any = None,
    *,
    texts: Any = None,
    cells: Iterable[str] = (),
    requirements: Iterable[str] = (),
    as_of: Any = None,
    within: int | None = None,
) -> AuditReport:
    """Audit the package at ``path`` (default: the one here) against the texts in a folder.

    ``cells`` and ``requirements`` (ids) narrow it down, ``as_of`` is the day (default: each cell's own), ``within``
    asks for what starts or ends within so many days. Raises :class:`InputError` for what is not there or not active.
    """
    when = parse_as_of(as_of)
    cells, requirements = list(cells), list(requirements)
    package = open_package(path, cells=cells)
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
    corpus = open_corpus(texts) if texts is not None else None
    return audit_package(package, corpus, as_of=when, cells=cells, requirements=requirements, within=within)
