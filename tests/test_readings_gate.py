"""The gate: no active requirement without a clean reading of its citations as they stand (A001 to A003)."""

from __future__ import annotations

import shutil

import pytest
from audit_world import US, VN, World
from conftest import ROOT, redescribe
from helpers import Sheet, add_table, read_again
from hypothesis import given, settings
from hypothesis import strategies as st
from test_changes import commit, own_git, repository  # noqa: F401 (own_git is used by each test)
from test_cli_validate import invoke

import regatta_tools
from regatta_tools.provenance import checks
from regatta_tools.provenance.checks import CLEAN, NOT_ASSESSED
from regatta_tools.provenance.item_hashes import item_hashes
from regatta_tools.provenance.outcomes import latest
from regatta_tools.tables.package import read, table_specs
from regatta_tools.validation import readings_gate

DEFECT = {"outcome": "citation-defect", "reason_code": "wrong-locator", "reason": "It is not there."}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return World(tmp_path_factory.mktemp("made")).write().read_by()


@pytest.fixture
def world(made, tmp_path):
    """A package that was read whole; a copy, for a test to spoil."""
    shutil.copytree(made.root, tmp_path / "package")
    world = World(tmp_path / "package")
    return world


def refused(world: World, code: str = "A001") -> dict[str, str]:
    """What the gate refuses, with its words, by record."""
    return {f.record: f.message for f in regatta_tools.validate(world.root).findings if f.code == code}


# Hashes of whole columns


def test_the_hashes_of_whole_columns_are_those_of_single_items():
    package = read(ROOT)
    index = checks.Index(package)
    assert item_hashes(package) == [checks.item_hash(index, c) for c in package.table("citations")]


@pytest.fixture(scope="module")
def package(made):
    return read(made.root)


TABLES = ("requirements", "citations", "facts", "sources")


@given(data=st.data())
@settings(max_examples=150)
def test_they_are_for_any_text_in_any_cell(package, data):
    """Also for keys that lead nowhere or stand twice: nothing that is said elsewhere may be said of the wrong item."""
    edits = []
    for _ in range(data.draw(st.integers(1, 4))):
        record = data.draw(st.sampled_from(package.table(data.draw(st.sampled_from(TABLES)))))
        column = data.draw(st.sampled_from(table_specs()[record.spec.name].columns))
        known = ["", "boats-us-r01", "boats-us-r02", "boats-us-r01-f1", "boats-us-r01-f2", US, VN]
        text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        value = data.draw(st.sampled_from(known) if column in ("id", "requirement", "source") else text)
        if column == "id" and record.spec.name in ("requirements", "sources"):
            continue  # which of two with one id is meant is for K001
        edits.append((record, column, record[column]))
        record.cells[column] = value
    try:
        index = checks.Index(package)
        requirements = {r.key for r in package.table("requirements")}
        for citation, found in zip(package.table("citations"), item_hashes(package), strict=True):
            if citation["requirement"] in requirements:
                assert found == checks.item_hash(index, citation)
    finally:
        for record, column, old in reversed(edits):
            record.cells[column] = old


# What is refused


def test_what_was_read_passes(world):
    assert refused(world) == {}


EDITS = {
    "a duty": ("requirements", "boats-us-r01", {"duty_en": "A keeper tells the owner.{}"}, ["boats-us-r01"]),
    "who is bound": ("requirements", "boats-us-r03", {"actor": "owner"}, ["boats-us-r03"]),
    "a citation": ("citations", "boats-us-r02-c2", {"locator": "50 CFR § 999.9(b)"}, ["boats-us-r02"]),
    "a fact": ("facts", "boats-us-r01-f1", {"clock_start": "the leak"}, ["boats-us-r01"]),
    "the hash of a passage": ("citations", "boats-us-r04-c1", {"passage_hash": "0" * 64,
                                                               "normalisation": "regatta-passage/1"}, ["boats-us-r04"]),
    "a source": ("sources", US, {"amended": "2024-01-01"}, [f"boats-us-r{n:02d}" for n in (1, 2, 3, 4)]),
    "a note": ("citations", "boats-us-r04-c1", {"note": "Seen."}, []),
    "the name of a source": ("sources", US, {"title": "Rule on boats"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("table", "row", "cells", "expected"), EDITS.values(), ids=EDITS)
def test_what_was_changed_after_it_was_read_is_refused(world, table, row, cells, expected):
    sheet = Sheet(world.root, table, "boats-us")
    if "duty_en" in cells:
        cells = {"duty_en": sheet.rows[sheet.find(row)][sheet.header.index("duty_en")] + " At once."}
    sheet.set(row, **cells)
    sheet.save()
    found = refused(world)
    assert list(found) == expected
    assert all("Lan (ai) read" in text and "2026-11-30" in text for text in found.values())
    # And reading it again is all that it takes.
    read_again(world.root)
    assert refused(world) == {}


def test_it_is_told_what_was_changed_as_far_as_hashes_tell(world):
    citations = Sheet(world.root, "citations", "boats-us")
    citations.set("boats-us-r02-c2", role="exception")
    citations.save()
    assert refused(world)["boats-us-r02"].startswith("boats-us-r02-c2: the citation or its source was changed after")
    place = next(f for f in regatta_tools.validate(world.root).findings if f.code == "A001")
    there = read(world.root).by_id["boats-us-r02-c2"]
    assert (place.record, place.file, place.line) == ("boats-us-r02", there.file, there.line)
    facts = Sheet(world.root, "facts", "boats-us")
    facts.set("boats-us-r02-f1", label="another")
    facts.save()
    assert refused(world)["boats-us-r02"] == (
        "boats-us-r02-c1, c2: the requirement or a fact (or every citation) was changed after Lan (ai) read it on "
        "2026-11-30"
    )
    place = next(f for f in regatta_tools.validate(world.root).findings if f.code == "A001")
    assert (place.file, place.line) == ("instruments/boats-us/requirements.csv", 3)
    assert "regatta audit todo" in place.mend and "regatta audit record" in place.mend


def test_citations_that_were_read_again_do_not_hide_what_was_changed(world):
    facts = Sheet(world.root, "facts", "boats-us")
    facts.set("boats-us-r02-f1", label="another")
    facts.save()
    world.read_by("boats-us-r02-c1", reader="Minh", reader_kind="lawyer", date="2026-12-01")
    said = "boats-us-r02-c2: the requirement, a fact, the citation or its source was changed after Lan (ai) read it"
    assert refused(world)["boats-us-r02"].startswith(said)
    world.read_by("boats-us-r02-c2", reader="Minh", reader_kind="lawyer", date="2026-12-01")
    assert not refused(world)
    out = " ".join(invoke("audit", "--package", world.root)[1].split())
    assert "A lawyer has read citations of 1 of these 5 obligations" in out and "No lawyer has read" not in out


def test_after_a_change_the_finding_stands_at_the_record_that_was_changed(tmp_path):
    top = repository(tmp_path)
    world = World(top / "data").write().read_by()
    commit(top)
    for row, cells, line in (("boats-us-r02-f2", {"label": "another"}, 5), ("boats-us-r02", {"actor": "owner"}, 3)):
        table = "facts" if "label" in cells else "requirements"
        sheet = Sheet(world.root, table, "boats-us")
        sheet.set(row, **cells)
        sheet.save()
        report = regatta_tools.validate(world.root, changed_since="HEAD")
        (found,) = (f for f in report.findings if f.code == "A001")
        assert (found.record, found.file, found.line) == ("boats-us-r02", f"instruments/boats-us/{table}.csv", line)


def test_a_change_that_is_taken_back_needs_no_new_reading(world):
    sheet = Sheet(world.root, "requirements", "boats-us")
    old = sheet.rows[0][:]
    sheet.set(0, actor="owner")
    sheet.save()
    assert refused(world)
    sheet.rows[0] = old
    sheet.save()
    assert not refused(world)


def test_an_adverse_reading_is_not_outvoted_and_its_reader_may_read_again(world):
    world.read_by("boats-us-r03-c1", reader="Minh", reader_kind="human", **DEFECT)
    assert refused(world) == {"boats-us-r03": "Minh (human) read boats-us-r03-c1 as citation-defect (wrong-locator)"}
    world.read_by("boats-us-r03-c1", reader="Minh", reader_kind="human", date="2026-12-01")
    assert not refused(world)


def test_a_program_reads_nothing(world):
    sheet = Sheet(world.root, "audit", "boats-us")
    row = sheet.set("boats-us-r04-c1-a1", reader_kind="machine")
    sheet.save(row)
    assert refused(world) == {"boats-us-r04": "nobody has read boats-us-r04-c1"}


def test_a_new_requirement_is_refused_until_it_was_read_and_a_retired_one_is_not(world):
    world.tables["requirements"].append(world.requirement("boats-us", 5, "The keeper keeps at least 12 lamps."))
    world.tables["citations"].append(world.citation("boats-us", 5, 1, US, "50 CFR § 999.5(b)"))
    world.write()
    assert refused(world) == {"boats-us-r05": "nobody has read boats-us-r05-c1"}
    world.set("boats-us-r05", status="retired")
    world.write()
    assert refused(world) == {}


def test_a_cell_is_held_to_it_from_its_first_reading_on_or_once_it_is_complete(tmp_path):
    world = World(tmp_path).write()
    assert refused(world) == {}, "a cell that is being written may be checked before anybody has read it"
    world.read_by("boats-vn-r01-c1")
    assert list(refused(world)) == ["boats-vn-r01"]
    for number in range(5, readings_gate.COMPLETE + 1):
        world.tables["requirements"].append(world.requirement("boats-us", number, "The keeper keeps lamps."))
        world.tables["citations"].append(world.citation("boats-us", number, 1, US, "50 CFR § 999.5(b)"))
    world.write()
    found = refused(world)
    assert len(found) == readings_gate.COMPLETE + 1, "complete, and read by nobody"


def test_a_shipped_cell_cannot_get_out_by_losing_its_readings(package_copy):
    (package_copy / "instruments/insurance-us/audit.csv").unlink()
    redescribe(package_copy)
    found = regatta_tools.validate(package_copy).findings
    assert {f.code for f in found} == {"A001"} and len(found) == 25
    assert all("nobody has read" in f.message for f in found)


# What is left to other findings


def test_nothing_is_said_of_an_item_that_has_an_error_of_its_own(world):
    facts = Sheet(world.root, "facts", "boats-us")
    facts.set("boats-us-r01-f1", value="16")  # F002: the duty says 15
    facts.save()
    requirements = Sheet(world.root, "requirements", "boats-us")
    requirements.set("boats-us-r03", actor="owner")
    requirements.save()
    found = {(f.code, f.record) for f in regatta_tools.validate(world.root).findings if f.severity == "error"}
    assert found == {("F002", "boats-us-r01-f1"), ("A001", "boats-us-r03")}


def test_an_error_that_is_waived_takes_nothing_out_of_the_gate(world):
    facts = Sheet(world.root, "facts", "boats-us")
    facts.set("boats-us-r01-f1", value="16")
    facts.save()
    waiver = {"rule": "F002", "record": "boats-us-r01-f1", "reason": "x", "by": "A. Reader", "until": "9999-12-31"}
    file = world.root / "instruments" / "waivers.csv"
    file.write_text(",".join(waiver) + "\n" + ",".join(waiver.values()) + "\n", encoding="utf-8")
    redescribe(world.root)
    assert list(refused(world)) == ["boats-us-r01"]


def test_where_rows_could_not_be_read_nothing_is_said(world):
    path = world.root / "instruments/boats-us/audit.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"x,y\n", *lines[3:]]))
    assert refused(world) == {}
    assert {f.code for f in regatta_tools.validate(world.root).findings if f.severity == "error"} >= {"R007"}


# Evidence and numbers


@pytest.mark.parametrize(
    ("cells", "column"),
    [({"passage_hash": ""}, "passage_hash"), ({"text_hash": ""}, "text_hash"),
     ({"outcome": "citation-defect"}, "reason_code"),
     ({"outcome": "citation-defect", "reason_code": "wrong-locator"}, "reason"),
     ({"evidence": "boats-us-r01-f1"}, "evidence"), ({"evidence": "f=3-1 2"}, "evidence")],
)  # fmt: skip
def test_a_reading_without_evidence_is_named_where_it_is_missing(world, cells, column):
    sheet = Sheet(world.root, "audit", "boats-us")
    row = sheet.set("boats-us-r01-c1-a1", **cells)
    sheet.save(row)
    (found,) = [f for f in regatta_tools.validate(world.root).findings if f.severity == "error"]
    assert (found.code, found.record) == ("A002", "boats-us-r01-c1-a1")
    assert (found.line, found.column) == read(world.root).table("audit")[row].place(column)


def test_a_reading_in_the_middle_that_was_taken_out_is_missed(world):
    for day in (1, 2):
        world.read_by("boats-us-r01-c1", date=f"2026-12-0{day}")
    assert refused(world, "A003") == {}
    sheet = Sheet(world.root, "audit", "boats-us")
    del sheet.rows[sheet.find("boats-us-r01-c1-a2")]
    sheet.save()
    assert refused(world, "A003") == {"boats-us-r01-c1-a3": "there is no reading boats-us-r01-c1-a2 before it"}
    sheet.set("boats-us-r01-c1-a3", id="boats-us-r01-c1-reading")
    sheet.save()
    assert "not of the form boats-us-r01-c1-a1" in refused(world, "A003")["boats-us-r01-c1-reading"]


# The gate and the audit count the same readings


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ai", "human", "machine"]), st.sampled_from("AB"),
            st.sampled_from([CLEAN, NOT_ASSESSED, "citation-defect"]),
            st.booleans(), st.sampled_from(["", "0" * 64, "1" * 64]),
        ),
        max_size=5,
    ),
    st.sampled_from(["", "0" * 64]),
)  # fmt: skip
@settings(max_examples=200)
def test_the_gate_decides_as_the_audit_does(package, rows, passage):
    citation = next(c for c in package.table("citations") if c.key == "boats-us-r03-c1")
    readings = package.table("audit")
    index = checks.Index(package)
    template = next(r for r in readings if r["citation"] == citation.key)
    before, held = list(readings), citation["passage_hash"]
    try:
        readings[:] = [r for r in readings if r["citation"] != citation.key]
        citation.cells["passage_hash"] = passage
        for number, (kind, who, outcome, current, read_) in enumerate(rows, 1):
            cells = dict(template.cells) | {
                "id": f"{citation.key}-a{number}", "reader_kind": kind, "reader": who, "outcome": outcome,
                "item_hash": checks.item_hash(index, citation) if current else "2" * 64, "passage_hash": read_,
            }  # fmt: skip
            readings.append(type(template)(template.spec, cells, template.table, template.row))
        counting, _ = latest(checks.Index(package), citation)
        clean = bool(counting) and all(r["outcome"] == CLEAN for r in counting)
        found = readings_gate._unread(package, {"boats-us", "boats-vn"})
        keys = [package.table("requirements")[place].key for place, *_ in found]
        assert keys == ([] if clean else ["boats-us-r03"])
    finally:
        readings[:] = before
        citation.cells["passage_hash"] = held


def test_a_waiver_of_the_gate_is_told_apart(world):
    requirements = Sheet(world.root, "requirements", "boats-us")
    requirements.set("boats-us-r03", actor="owner")
    requirements.save()
    waiver = {"rule": "A001", "record": "boats-us-r03", "reason": "Read next week.", "by": "A. Reader",
              "until": "9999-12-31"}  # fmt: skip
    add_table(world.root, "waivers", waiver, cell="boats-us")
    report = regatta_tools.validate(world.root)
    assert [w.finding.code for w in report.waived if w.finding.record == "boats-us-r03"] == ["A001"]
    assert not refused(world)
