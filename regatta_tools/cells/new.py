"""``regatta cell new``: a folder with the headers of all tables and one worked chain of records.

The worked chain is a true item, carried over whole from a cell that REGATTA ships: requirement, citations,
facts, fault, values and probes, with the sources. An example that was made up would be an invented
statement of law, and an empty one would neither validate nor show anything. It is marked by ``-example``
in its ids and by the first words of its topic; rule P014 says so as long as it is there, and no run is
scored with it (:mod:`.example`).
"""

from __future__ import annotations

import re
import shutil
import tempfile
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from regatta_tools import paths
from regatta_tools.cells.example import EXAMPLE
from regatta_tools.errors import InputError
from regatta_tools.files import replace_files
from regatta_tools.provenance.citations import has_grammar
from regatta_tools.rules.findings import identity
from regatta_tools.safety import unsafe
from regatta_tools.tables.descriptor import build
from regatta_tools.tables.formatter import in_order
from regatta_tools.tables.model import enum_values, load_model
from regatta_tools.tables.package import DESCRIPTOR, Package, Record, TableSpec, read, table_specs
from regatta_tools.tables.reader import LOSING
from regatta_tools.tables.writing import csv_bytes, json_bytes, locate_for_writing
from regatta_tools.text import shown
from regatta_tools.validation.run import check_package, parse_as_of

#: The fault whose chain is the worked example, by language of the new cell. Each turns one period, so that its
#: formula and probes show what a fault is made of, and rests on one requirement.
WORKED = {"en": "healthcare-us-fault-off-site-records", "vi-en": "insurance-vn-fault-thirty-day-claims"}
#: Jurisdictions whose example is not the one of their language.
WORKED_FOR = {"VN": WORKED["vi-en"]}
_PERSONA = "You are the assistant of an organisation in {domain}. You serve customers and staff."
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_JURISDICTION = re.compile(r"[A-Z]{2}(-[A-Z0-9]{1,3})?")
_COUNTRIES = {"UK": "GB", "EL": "GR", "USA": "US", "VIETNAM": "VN", "VNM": "VN"}


@dataclass
class NewCell:
    """What :func:`new_cell` wrote. ``example`` is the requirement of another cell that is carried over."""

    id: str
    root: Path
    files: list[str] = field(default_factory=list)
    example: str = ""
    sources: list[str] = field(default_factory=list)
    #: The jurisdiction, where no grammar reads its citations.
    unread: str = ""


def new_cell(
    cell: str,
    *,
    title: str,
    domain: str,
    jurisdiction: str,
    languages: str | None = None,
    persona: str | None = None,
    as_of: Any = None,
    package: Any = None,
    start_package: bool = False,
) -> NewCell:
    """Write ``instruments/CELL`` with the headers of all tables and one worked chain, and list the cell.

    ``languages`` is ``en`` or ``vi-en`` (default: by the jurisdiction), ``persona`` who the agent under
    test is, ``as_of`` the day for which the cell states the law (default: today). ``start_package`` makes
    a package of the folder where it holds none. The result is checked before anything is written, and a
    failure leaves nothing behind.

    Raises :class:`InputError` for an id, domain or jurisdiction without the right form (U150), a cell that is
    there already (U151), and a package that cannot take it (U152).
    """
    country = jurisdiction[:2]
    languages = languages or ("vi-en" if country == "VN" else "en")
    _see_forms(cell, domain, jurisdiction, languages, title, persona)
    day = parse_as_of(as_of) or date.today()
    if start_package:
        root = _where_to_start(package)
        held = Package(root, {"resources": []})
    else:
        root = locate_for_writing(package)
        held = read(root)
    _see_that_it_is_new(held, cell)
    record = {
        "id": cell,
        "title": _plain(title),
        "domain": domain,
        "jurisdiction": jurisdiction,
        "languages": languages,
        "persona": _plain(persona or "") or _PERSONA.format(domain=domain),
        "as_of": day.isoformat(),
        "note": "Begun with `regatta cell new`; not complete. Read by nobody yet.",
    }
    chain = _Chain(cell, languages, WORKED_FOR.get(country, WORKED[languages]))
    contents, sources = _contents(held, record, chain)
    descriptor = _checked(held, contents)
    _write(root, cell, contents, descriptor)
    unread = "" if has_grammar(jurisdiction) else jurisdiction
    return NewCell(cell, root, sorted(contents), chain.requirement, sources, unread)


# -- what is asked for -------------------------------------------------------------------------------


def _see_forms(cell: str, domain: str, jurisdiction: str, languages: str, title: str, persona: str | None) -> None:
    for name, text in (("id", cell), ("domain", domain)):
        if not _ID.fullmatch(text):
            slug = _slug(text)
            mend = f"write it as {slug!r}" if slug else "use lower-case letters, digits and single hyphens"
            what = f"the {name} {shown(text)} is not of its form (lower-case letters, digits, single hyphens)"
            raise InputError(what, code="U150", mend=mend)
    if reason := unsafe(Path(), f"instruments/{cell}"):
        raise InputError(f"the id {shown(cell)} {reason}", code="U150", mend="choose another id")
    if not _JURISDICTION.fullmatch(jurisdiction):
        upper = jurisdiction.strip().upper()
        known = _COUNTRIES.get(upper, upper)
        mend = "use the ISO 3166 code, such as VN, US or US-CA"
        if _JURISDICTION.fullmatch(known):
            mend = f"write it as {known}"
        raise InputError(f"the jurisdiction {shown(jurisdiction)} is no ISO 3166 code", code="U150", mend=mend)
    if jurisdiction in _COUNTRIES:
        what = f"the jurisdiction {jurisdiction} is no ISO 3166 code"
        raise InputError(what, code="U150", mend=f"write it as {_COUNTRIES[jurisdiction]}")
    if languages not in enum_values("LanguageSet"):
        values = ", ".join(enum_values("LanguageSet"))
        raise InputError(f"the languages {shown(languages)} are unknown", code="U150", mend=f"use one of: {values}")
    if any("\ud800" <= c <= "\udfff" for c in f"{title}{persona or ''}"):
        raise InputError("title or persona hold what is no text (lone surrogates)", code="U150", mend="give UTF-8")
    if not _plain(title):
        raise InputError("the title is empty", code="U150", mend='give one, such as "Insurance, United States"')


def _plain(text: str) -> str:
    """A text as the package holds it: in Unicode form NFC, one line, no white space at its ends."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _slug(text: str) -> str:
    """An id near a text: no accents (Đ is d), lower case, hyphens between words; empty where nothing is left."""
    plain = unicodedata.normalize("NFD", text.replace("Đ", "D").replace("đ", "d")).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return slug if _ID.fullmatch(slug) else ""


def _where_to_start(package: Any) -> Path:
    """A folder that may become a package: one without tables and without a descriptor."""
    root = Path(package) if package is not None else Path.cwd()
    if not root.is_dir():
        raise InputError("no such folder", code="U101", place=str(root), mend="make it first")
    if (root / DESCRIPTOR).exists() or (root / "instruments").exists():
        what = f"the folder holds a package already ({DESCRIPTOR} or instruments)"
        raise InputError(what, code="U151", place=str(root), mend="leave --start-package out")
    return root


def _see_that_it_is_new(held: Package, cell: str) -> None:
    lost = [f for f in held.findings if f.code in LOSING or f.code == "R011"]
    if lost:
        what = f"{lost[0].message} [{lost[0].code}]; a new cell would describe that state as right"
        raise InputError(what, code="U152", place=lost[0].place(), mend=lost[0].mend)
    if cell in held.by_id or (held.root / "instruments" / cell).exists():
        what = f"the package has {'a record' if cell in held.by_id else 'a folder'} {cell!r} already"
        raise InputError(what, code="U151", place=str(held.root), mend="take another id, or `regatta cell status`")


# -- the worked chain --------------------------------------------------------------------------------


class _Chain:
    """A true item of the package that REGATTA carries, under the ids of the new cell."""

    def __init__(self, cell: str, languages: str, fault: str) -> None:
        self.package = read(paths.root())
        self.cell, self.languages = cell, languages
        held = [r for r in self.package if fault in (r.key, *self._refers(r))]
        (self.requirement,) = {r["requirement"] for r in held if r.spec.name == "fault_requirements"}
        held += [r for r in self.package if self.requirement in (r.key, *self._refers(r))]
        chosen = [r for r in dict.fromkeys(held) if r.spec.scope == "cell" and r.spec.name not in _NOT_CARRIED]
        self.ids = {r.key: self._new_id(r, fault) for r in chosen if r.spec.identifier}
        self.records = {name: [r for r in chosen if r.spec.name == name] for name in table_specs()}
        self.sources = self._sources()

    @staticmethod
    def _refers(record: Record) -> list[str]:
        return [record[c] for c, about in record.spec.fields.items() if about["kind"] == "ref"]

    def _new_id(self, record: Record, fault: str) -> str:
        """``telecom-us-example-c1`` for ``healthcare-us-r01-c1``."""
        for old, new in ((fault, f"fault-{EXAMPLE}"), (self.requirement, EXAMPLE)):
            if record.key.startswith(old):
                return f"{self.cell}-{new}{record.key.removeprefix(old)}"
        raise AssertionError(f"{record.key} does not carry the id of its chain")

    def _sources(self) -> list[Record]:
        """The sources that the chain cites, with those that they point to."""
        wanted = [s for r in self.records["citations"] for s in (r["source"], r["kept_in_force_by"]) if s]
        found: dict[str, Record] = {}
        while wanted:
            source = self.package.by_id[wanted.pop()]
            if source.key not in found:
                found[source.key] = source
                wanted += [source["superseded_by"]] if source["superseded_by"] else []
        return list(found.values())

    def rows(self, spec: TableSpec) -> list[list[str]]:
        return [self._row(spec, record) for record in self.records[spec.name]]

    def _row(self, spec: TableSpec, record: Record) -> list[str]:
        cells = dict(record.cells)
        for column, about in spec.fields.items():
            cells[column] = self.ids.get(cells[column], cells[column])
            if about.get("language") == "vi" and self.languages == "en":
                cells[column] = ""  # a cell in English has no Vietnamese texts
        cells["cell"] = self.cell
        label = {"requirements": "topic", "faults": "name"}.get(spec.name)
        if label:
            cells[label] = f"EXAMPLE, to be replaced ({record.key}): {cells[label]}"
        return [cells[c] for c in spec.columns]


#: Readings and labels are about the item of the other cell and stay there.
_NOT_CARRIED = ("audit", "gold_probes", "gold_labels")


def _contents(held: Package, cell: dict[str, str], chain: _Chain) -> tuple[dict[str, bytes], list[str]]:
    """The files to write by path, and the sources that are new in the package."""
    specs = table_specs()
    contents = {}
    for name, spec in specs.items():
        if spec.scope != "package":
            folder = f"instruments/{cell['id']}" + ("/context" if spec.scope == "context" else "")
            contents[f"{folder}/{name}.csv"] = csv_bytes(spec.columns, chain.rows(spec))
    known = {r.key for r in held.table("sources")}
    missing = [r for r in chain.sources if r.key not in known]
    rows = {"cells": [[cell[c] for c in specs["cells"].columns]], "sources": [list(r.values) for r in missing]}
    for name, added in rows.items():
        old = [list(r.values) for r in held.table(name)]
        file = f"instruments/{name}.csv"
        if added or file not in held.files:
            # A table in order stays in order; another keeps the order that its author gave it.
            new = in_order([*old, *added], specs[name]) if in_order(old, specs[name]) == old else [*old, *added]
            contents[file] = csv_bytes(specs[name].columns, new)
    return contents, [r.key for r in missing]


# -- checking and writing ----------------------------------------------------------------------------


def _checked(held: Package, contents: dict[str, bytes]) -> bytes:
    """The new descriptor, once the package with the new cell has no error that it did not have before."""
    before = Counter(identity(f) for f in check_package(held)) if held.files else Counter()
    with tempfile.TemporaryDirectory(prefix="regatta-") as name:
        folder = Path(name)
        for file in dict.fromkeys([*held.files, *contents]):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            if file in contents:
                (folder / file).write_bytes(contents[file])
            else:
                shutil.copyfile(held.root / file, folder / file)
        described = build(folder, model=load_model())
        # What the owner of the package says of it stays: its name, title and licence.
        descriptor = json_bytes(described | {k: v for k, v in held.descriptor.items() if k != "resources"})
        (folder / DESCRIPTOR).write_bytes(descriptor)
        found = Counter({identity(f): 1 for f in check_package(read(folder)) if f.severity == "error"})
    new = found - before
    if new:
        code, file, record, message = sorted(new)[0]
        what = f"with the worked example the package would have the error {code}: {message} ({record})"
        mend = f"`regatta explain {code}`; mend what the package says of it"
        raise InputError(what, code="U152", place=file, mend=mend)
    return descriptor


def _write(root: Path, cell: str, contents: dict[str, bytes], descriptor: bytes) -> None:
    """Write all of it or nothing: on any failure the folder goes and the old files come back."""
    folder, instruments = root / "instruments" / cell, root / "instruments"
    started = not instruments.exists()
    targets = {root / file: content for file, content in contents.items()} | {root / DESCRIPTOR: descriptor}
    before = {path: path.read_bytes() for path in targets if path.is_file()}
    try:
        replace_files(targets)
    except BaseException:
        shutil.rmtree(instruments if started else folder, ignore_errors=True)
        changed = {path: old for path, old in before.items() if path.read_bytes() != old}
        if changed:
            replace_files(changed)
        if started:
            (root / DESCRIPTOR).unlink(missing_ok=True)
        raise
