"""``regatta audit``: a package, the texts that the user holds, a day; an audit report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.provenance.corpus import Corpus, read_corpus
from regatta_tools.provenance.outcomes import AuditReport, audit_package
from regatta_tools.tables.package import read
from regatta_tools.validation.run import parse_as_of


def open_corpus(texts: Any) -> Corpus:
    """The corpus in a folder. Raises :class:`InputError` where none is named, or there is none."""
    if texts is None:
        raise InputError(
            "the texts of the law are needed", code="U130", mend="name their folder with --texts or in REGATTA_TEXTS"
        )
    return read_corpus(Path(texts))


def run_audit(
    path: Any = None,
    *,
    texts: Any = None,
    cells: Iterable[str] = (),
    requirements: Iterable[str] = (),
    as_of: Any = None,
) -> AuditReport:
    """See :func:`regatta_tools.provenance`."""
    when = parse_as_of(as_of)
    package = read(path)
    lost = [f for f in package.findings if f.severity == "error"]
    if lost:
        raise InputError(
            f"the package has {len(lost)} error(s), the first: {lost[0].message}",
            code=lost[0].code,
            place=lost[0].place(),
            mend="run `regatta validate` and mend what it lists",
        )
    known = {r.key for r in package.table("cells")}
    for cell in (cells := list(cells)):
        if cell not in known:
            raise InputError(
                f"the package has no cell {cell!r}", code="U103", mend=f"use one of: {', '.join(sorted(known))}"
            )
    for requirement in (requirements := list(requirements)):
        if requirement not in {r.key for r in package.table("requirements")}:
            raise InputError(
                f"the package has no requirement {requirement!r}", code="U103", mend="name one of requirements.csv"
            )
    corpus = open_corpus(texts) if texts is not None else None
    return audit_package(package, corpus, as_of=when, cells=cells, requirements=requirements)
