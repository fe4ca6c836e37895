"""A new cell: what it holds is true and marked, nothing is half-written, and its steps are told as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, redescribe
from helpers import Sheet
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import play, write_script, write_suite

import regatta_tools
from regatta_tools.cells.example import example_in
from regatta_tools.cells.new import WORKED, new_cell
from regatta_tools.cells.status import cell_status
from regatta_tools.errors import EnvironmentProblem, InputError, RegattaError
from regatta_tools.harness.calibration import hold_against_labels
from regatta_tools.report.cells import new_text
from regatta_tools.sheets.bring_back import sheet_in
from regatta_tools.sheets.export import sheet_out
from regatta_tools.tables import writing
from regatta_tools.tables.package import Record, read, table_specs

MAIN = "from regatta_tools.cli.main import main; main()"
WORDS: dict[str, Any] = {"title": "Telecom, test", "domain": "telecom", "jurisdiction": "US"}


def regatta(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=cwd, env=os.environ | environment, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def files(root: Path) -> dict[str, bytes]:
    """Every file and folder below a folder; folders hold nothing."""
    return {p.relative_to(root).as_posix(): p.read_bytes() if p.is_file() else b"" for p in sorted(root.rglob("*"))}


@pytest.fixture(scope="module")
def shipped() -> regatta_tools.tables.package.Package:
    return read(ROOT)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    return folder


# What is written


@pytest.mark.parametrize(
    ("jurisdiction", "languages", "example"),
    [
        ("US", None, WORKED["en"]),
        ("DE", None, WORKED["en"]),
        ("VN", None, WORKED["vi-en"]),
        ("VN", "en", WORKED["vi-en"]),
        ("US-CA", "vi-en", WORKED["vi-en"]),
    ],
)
@pytest.mark.parametrize("start", [True, False])
def test_a_new_cell_validates_but_for_what_is_to_be_written(
    empty, package_copy, shipped, jurisdiction, languages, example, start
):
    root = empty if start else package_copy
    before = {r.key for r in read(root)} if not start else set()
    done = new_cell(
        "telecom-x", title="Telecom", domain="telecom", jurisdiction=jurisdiction, languages=languages,
        package=root, start_package=start, as_of="2026-11-30",
    )  # fmt: skip
    report = regatta_tools.validate(root)
    assert {(f.code, f.severity) for f in report.findings} == {("P007", "warning"), ("P014", "warning")}
    assert {f.record for f in report.findings} == {"telecom-x", "telecom-x-example"}
    held = read(root)
    assert before <= {r.key for r in held}
    for name, spec in table_specs().items():
        if spec.scope != "package":
            folder = root / "instruments" / "telecom-x" / ("context" if spec.scope == "context" else "")
            header = (folder / f"{name}.csv").read_text(encoding="utf-8").split("\n")[0]
            assert header == ",".join(spec.columns)
    chain = ("requirements", "citations", "facts", "faults", "fault_requirements", "fault_values", "fault_probes")
    assert all(held.cell_records(name, "telecom-x") for name in chain)
    assert done.example in {r["requirement"] for r in shipped.table("fault_requirements") if r["fault"] == example}
    cell = held.by_id["telecom-x"]
    assert (cell["jurisdiction"], cell["as_of"], cell["domain"]) == (jurisdiction, "2026-11-30", "telecom")
    assert cell["languages"] == (languages or ("vi-en" if jurisdiction == "VN" else "en"))
    ids = [r.key for r in held.table("cells")]
    assert ids == sorted(ids)


@pytest.mark.parametrize("languages", ["en", "vi-en"])
def test_nothing_in_the_worked_example_is_invented(empty, shipped, languages):
    """Every cell of every row is that of the shipped item, but for ids, the cell, and the mark on two labels."""
    new_cell("telecom-x", **WORDS, languages=languages, package=empty, start_package=True)
    held = read(empty)
    fault = WORKED[languages]
    (requirement,) = {r["requirement"] for r in shipped.table("fault_requirements") if r["fault"] == fault}
    names = {requirement: "telecom-x-example", fault: "telecom-x-fault-example"}

    def renamed(text: str) -> str:
        for old, new in names.items():
            if text == old or text.startswith(f"{old}-"):
                return new + text.removeprefix(old)
        return text

    def belongs(record: Record) -> bool:
        keys = {record.key, *(record[c] for c in ("requirement", "fault") if c in record.spec.fields)}
        return bool(keys & set(names))

    for name, spec in table_specs().items():
        if spec.scope != "cell" or name in ("audit", "gold_probes", "gold_labels"):
            continue
        originals = [r for r in shipped.table(name) if belongs(r)]
        copies = held.cell_records(name, "telecom-x")
        assert len(originals) == len(copies) > 0
        for old, new in zip(originals, copies, strict=True):
            for column in spec.columns:
                if column == "cell":
                    assert new[column] == "telecom-x"
                elif (name, column) in (("requirements", "topic"), ("faults", "name")):
                    assert new[column] == f"EXAMPLE, to be replaced ({old.key}): {old[column]}"
                else:
                    assert new[column] == renamed(old[column])
    for source in held.table("sources"):
        assert dict(source.cells) == dict(shipped.by_id[source.key].cells)


def test_a_cell_in_english_has_no_vietnamese_texts(empty):
    new_cell(
        "telecom-x", title="T", domain="telecom", jurisdiction="VN", languages="en", package=empty, start_package=True
    )
    held = read(empty)
    assert not held.by_id["telecom-x-example"]["duty_vi"] and not held.by_id["telecom-x-fault-example"]["injection_vi"]


def test_what_the_owner_says_of_the_package_stays(package_copy):
    path = package_copy / "datapackage.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    value |= {"name": "our-rules", "title": "Quy tắc của chúng tôi", "contributors": [{"title": "Lan"}]}
    path.write_text(json.dumps(value), encoding="utf-8")
    new_cell("telecom-x", **WORDS, package=package_copy)
    new = json.loads(path.read_text(encoding="utf-8"))
    assert {k: v for k, v in new.items() if k != "resources"} == {k: v for k, v in value.items() if k != "resources"}
    of_a_cell = [spec for spec in table_specs().values() if spec.scope != "package"]
    assert len(new["resources"]) == len(value["resources"]) + len(of_a_cell)


def test_a_country_without_a_grammar_is_told(package_copy):
    told = new_text(new_cell("telecom-zz", **WORDS | {"jurisdiction": "ZZ"}, package=package_copy))
    assert "No grammar reads citations of ZZ" in told
    assert "No grammar" not in new_text(new_cell("telecom-us", **WORDS | {"jurisdiction": "US"}, package=package_copy))


# Nothing is scored with it


def test_no_run_is_scored_with_the_example(package_copy, tmp_path):
    new_cell("telecom-x", **WORDS, package=package_copy)
    suite, script = write_suite(tmp_path), write_script(tmp_path)
    out = tmp_path / "run"
    for package in (package_copy, regatta_tools.load(package_copy)):
        with pytest.raises(InputError, match="worked example") as caught:
            play(suite, script, out, cell="telecom-x", package=package)
        assert caught.value.code == "U103" and "P014" in caught.value.mend and not out.exists()
        with pytest.raises(InputError, match="worked example"):
            hold_against_labels(suite, tmp_path / "none.yaml", cell="telecom-x", package=package)
    assert play(suite, script, out, package=package_copy).verdicts, "the other cells run as before"


@pytest.mark.parametrize("left", ["requirement", "fault"])
def test_half_of_the_example_is_still_the_example(empty, left):
    new_cell("telecom-x", **WORDS, package=empty, start_package=True)
    old, new = (
        ("telecom-x-fault-example", "telecom-x-fault-one")
        if left == "requirement"
        else ("telecom-x-example", "telecom-x-r01")
    )
    for path in (empty / "instruments" / "telecom-x").glob("*.csv"):
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8", newline="")
    redescribe(empty)
    assert {f.code for f in regatta_tools.validate(empty).findings} == {"P007", "P014"}
    assert example_in(read(empty), "telecom-x") is not None


# What is refused


@pytest.mark.parametrize(
    ("change", "code", "mend"),
    [
        ({"cell": "Telecom US"}, "U150", "'telecom-us'"),
        ({"cell": "Điện lực"}, "U150", "'dien-luc'"),
        ({"cell": "1st"}, "U150", "lower-case"),
        ({"cell": ""}, "U150", "lower-case"),
        ({"cell": "../x"}, "U150", "'x'"),
        ({"cell": "insurance-us"}, "U151", "another id"),
        ({"cell": "insurance-us-r01"}, "U151", "another id"),
        ({"cell": "con"}, "U150", "another id"),
        ({"domain": "Telecom"}, "U150", "'telecom'"),
        ({"jurisdiction": "us"}, "U150", "US"),
        ({"jurisdiction": "UK"}, "U150", "GB"),
        ({"jurisdiction": "Vietnam"}, "U150", "VN"),
        ({"jurisdiction": "Mars"}, "U150", "ISO 3166"),
        ({"languages": "fr"}, "U150", "en"),
        ({"title": " "}, "U150", ""),
        ({"title": "a\udce1"}, "U150", "UTF-8"),
        ({"title": "a\u200bb"}, "U152", ""),
        ({"as_of": "30/11/2026"}, "U104", "2026-11-30"),
        ({"start_package": True}, "U151", ""),
    ],
)
def test_what_cannot_be_is_refused_with_the_mend_and_nothing_is_written(package_copy, change, code, mend):
    before = files(package_copy)
    words = {"cell": "telecom-x"} | WORDS | change
    with pytest.raises(InputError) as caught:
        new_cell(words.pop("cell"), package=package_copy, **words)
    assert caught.value.code == code and mend in caught.value.mend
    assert files(package_copy) == before


@given(st.text(max_size=20))
@settings(max_examples=40)
def test_any_id_is_taken_whole_or_refused(empty_root, text):
    root = empty_root
    before = files(root)
    try:
        done = new_cell(text, **WORDS, package=root)
    except InputError as error:
        assert error.code in ("U150", "U151", "U152") and files(root) == before
    else:
        shutil.rmtree(root / "instruments" / done.id)
        for name, content in before.items():
            if content:
                (root / name).write_bytes(content)


@pytest.fixture(scope="module")
def empty_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ids")
    new_cell("first", **WORDS, package=root, start_package=True)
    return root


def test_a_package_that_lost_a_row_is_not_described_anew(package_copy):
    file = package_copy / "instruments/insurance-us/facts.csv"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError) as caught:
        new_cell("telecom-x", **WORDS, package=package_copy)
    assert caught.value.code == "U152" and "R011" in caught.value.message


def test_a_source_of_the_same_id_that_does_not_bear_the_example(package_copy):
    sources = Sheet(package_copy, "sources")
    row = list(sources.rows[0])
    row[0] = next(r["source"] for r in read(ROOT).table("citations") if r["requirement"] == "healthcare-us-r01")
    sources.rows.append(row)
    number = len(sources.rows) - 1
    sources.save(sources.set(number, status="repealed", jurisdiction="US", number="12 CFR Part 1"))
    before = files(package_copy)
    with pytest.raises(InputError) as caught:
        new_cell("telecom-x", **WORDS, package=package_copy)
    assert caught.value.code == "U152" and files(package_copy) == before


def test_writing_needs_a_package_that_somebody_named(tmp_path, package_copy, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="current folder holds no package"):
        new_cell("telecom-x", **WORDS)
    monkeypatch.chdir(package_copy)
    assert new_cell("telecom-x", **WORDS).root.samefile(package_copy)
    # As if this were the package inside an installed wheel.
    monkeypatch.setattr(writing, "_CARRIED", package_copy.resolve())
    for package in (None, package_copy):
        with pytest.raises(InputError, match="inside the installation"):
            new_cell("telecom-y", **WORDS, package=package)
    with pytest.raises(InputError, match="inside the installation"):
        sheet_in(tmp_path / "x.xlsx", package=package_copy)


# Nothing is half-written


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_any_point_leaves_nothing_behind(empty, package_copy, monkeypatch, start, call, error):
    root = empty if start else package_copy
    before = files(root)
    real = getattr(os, call)
    for fails_at in (1, 2, 9, 15):
        calls = 0

        def failing(*given: Any, at: int = fails_at) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise error
            return real(*given)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            with pytest.raises((EnvironmentProblem, KeyboardInterrupt)):
                new_cell("telecom-x", **WORDS, package=root, start_package=start)
        assert files(root) == before, (call, fails_at)


# Status


def steps(root: Path, cell: str, runs: Path) -> dict[int, Any]:
    (status,) = cell_status(cell, package=root, runs=runs)
    return {step.number: step for step in status.steps}


def test_the_status_counts_what_is_in_the_files(shipped, tmp_path):
    for status in cell_status(package=ROOT, runs=tmp_path):
        found = {s.number: s for s in status.steps}
        own = {
            name: shipped.cell_records(name, status.cell)
            for name in table_specs()
            if name not in ("sources", "waivers", "cells")
        }
        assert [found[n].state for n in (1, 2, 3)] == ["done"] * 3
        assert found[1].counts["sources"] == len({c["source"] for c in own["citations"]})
        assert found[2].counts["requirements"] == sum(r["status"] == "active" for r in own["requirements"]) == 25
        assert found[2].counts["facts"] == len(own["facts"])
        assert found[3].counts["probes"] == found[3].counts["probes_right"] == len(own["fault_probes"])
        assert found[4].counts["citations"] == len(own["citations"])
        assert found[4].state == ("open" if not own["audit"] else found[4].state)
        assert found[5].state == found[6].state == "open"
        assert all(step.missing for step in status.steps if step.state != "done")


def test_the_example_counts_for_nothing(package_copy, tmp_path):
    new_cell("telecom-x", **WORDS, package=package_copy)
    (status,) = cell_status("telecom-x", package=package_copy, runs=tmp_path)
    assert {step.state for step in status.steps} == {"open"} and status.example == "telecom-x-example"
    assert all(step.missing for step in status.steps)


def test_each_step_moves_with_its_evidence(package_copy, tmp_path):
    runs = tmp_path / "runs"
    assert [steps(package_copy, "insurance-us", runs)[n].state for n in range(1, 7)] == ["done"] * 4 + ["open"] * 2
    audit = Sheet(package_copy, "audit")
    readings, audit.rows = audit.rows, []
    audit.save()
    assert steps(package_copy, "insurance-us", runs)[4].state == "open"
    audit.rows = readings[1:]
    audit.save()
    assert steps(package_copy, "insurance-us", runs)[4].state == "begun"
    audit.rows = readings
    audit.save()

    requirements = Sheet(package_copy, "requirements")
    requirements.save(requirements.set("insurance-us-r25", status="retired"))
    found = steps(package_copy, "insurance-us", runs)[2]
    assert found.state == "begun" and "1 obligation to write" in found.missing
    requirements.save(requirements.set("insurance-us-r25", status="active"))

    probes = Sheet(package_copy, "fault_probes")
    old = probes.rows[0][-1]
    probes.save(probes.set(0, faulty_result="something else"))
    found = steps(package_copy, "insurance-us", runs)[3]
    assert found.state == "begun" and found.counts["probes_right"] == found.counts["probes"] - 1
    assert any("P003" in what for what in found.missing)
    probes.save(probes.set(0, faulty_result=old))

    faults = Sheet(package_copy, "faults")
    kind = faults.rows[0][faults.header.index("class")]
    faults.save(faults.set(0, **{"class": "threshold" if kind != "threshold" else "metric-error"}))
    found = steps(package_copy, "insurance-us", runs)[3]
    assert found.state == "begun" and f"a fault of the class {kind}" in found.missing
    faults.save(faults.set(0, **{"class": kind}))

    suite, script = write_suite(tmp_path), write_script(tmp_path)
    play(suite, script, runs / "one", package=package_copy)
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{", encoding="utf-8")
    found = steps(package_copy, "insurance-us", runs)[5]
    assert found.state == "done" and found.counts == {"runs": [(runs / "one").as_posix()], "current": 1, "complete": 1}
    journal = runs / "one" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-6]))
    found = steps(package_copy, "insurance-us", runs)[5]
    assert found.state == "begun" and found.counts["complete"] == 0 and "to its end" in found.missing[0]
    requirements.save(requirements.set("insurance-us-r25", topic="another"))
    found = steps(package_copy, "insurance-us", runs)[5]
    assert found.state == "begun" and found.counts["current"] == 0 and "changed since" in found.missing[0]


def test_readings_are_counted_by_kind_and_only_while_they_hold(package_copy, tmp_path):
    from regatta_tools.provenance.checks import CLEAN, Index, item_hash

    held = read(package_copy)
    index = Index(held)
    columns = table_specs()["audit"].columns
    citations = held.table("citations")

    def rows(kind: str, outcome: str, chosen: list[Record], mark: str) -> list[list[str]]:
        found = []
        for citation in chosen:
            cells = dict.fromkeys(columns, "") | {
                "id": f"{citation.key}-{mark}", "cell": "insurance-us", "requirement": citation["requirement"],
                "citation": citation.key, "outcome": outcome, "reader": "Lan", "reader_kind": kind,
                "date": "2026-11-30", "item_hash": item_hash(index, citation),
                "passage_hash": citation["passage_hash"] or "0" * 64,
            }  # fmt: skip
            found.append([cells[c] for c in columns])
        return found

    def write(lines: list[list[str]]) -> Any:
        path = package_copy / "instruments/insurance-us/audit.csv"
        path.write_bytes(writing.csv_bytes(columns, lines))
        redescribe(package_copy)
        return steps(package_copy, "insurance-us", tmp_path)[4]

    assert write([]).state == "open"
    found = write(rows("human", CLEAN, citations[:3], "a1"))
    assert found.state == "begun" and found.counts["by_kind"] == {"human": 3} and "none by a lawyer" in found.evidence
    found = write(rows("lawyer", CLEAN, citations, "a1"))
    assert (found.state, found.missing, found.counts["read"]) == ("done", [], len(citations))
    assert "by a lawyer" in found.evidence and "none by" not in found.evidence
    found = write(rows("ai", CLEAN, citations[1:], "a1") + rows("ai", "misstates-current-rule", citations[:1], "a1"))
    assert found.state == "begun" and found.counts["adverse"] == 1
    facts = Sheet(package_copy, "facts")
    write(rows("human", CLEAN, citations, "a1"))
    row = facts.find(citations[0].key, "citation")
    facts.save(facts.set(row, label="another name of it"))
    found = steps(package_copy, "insurance-us", tmp_path)[4]
    assert found.state == "begun" and found.counts["read"] < len(citations)


# The command, and the way from an empty folder to a cell


def test_the_commands_in_an_empty_folder(empty):
    words = ("cell", "new", "telecom-vn", "--title", "Viễn thông", "--domain", "telecom", "--jurisdiction", "VN")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"}
    done = regatta(*words, cwd=empty, **plain)
    assert done.returncode == 2 and "current folder holds no package" in done.stderr and not list(empty.iterdir())
    done = regatta(*words, "--start-package", cwd=empty, **plain)
    assert done.returncode == 0 and "insurance-vn-r12" in done.stdout, done.stderr
    assert regatta("validate", cwd=empty).returncode == 0
    done = regatta(*words, cwd=empty)
    assert done.returncode == 2 and "U151" in done.stderr
    done = regatta("cell", "status", "telecom-vn", cwd=empty, **plain)
    assert done.returncode == 0 and "Viễn thông" in done.stdout and done.stdout.count("open") == 6
    (value,) = json.loads(regatta("cell", "status", "--format", "json", cwd=empty).stdout)
    assert [s["number"] for s in value["steps"]] == [1, 2, 3, 4, 5, 6]
    done = regatta("cell", "status", "nowhere", cwd=empty)
    assert done.returncode == 2 and "telecom-vn" in done.stderr
    done = regatta("run", str(ROOT / "examples/suites/insurance-us-demo.yaml"), "--cell", "telecom-vn", cwd=empty)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_new_cell_is_written_in_excel(empty):
    """The example is replaced in a workbook, row by row, and brought back."""
    import openpyxl

    new_cell("telecom-x", **WORDS, package=empty, start_package=True)
    book = empty / "telecom-x.xlsx"
    sheet_out("telecom-x", out=book, package=empty)
    workbook = openpyxl.load_workbook(book)
    for sheet in workbook.worksheets:
        for row in sheet.iter_rows(min_row=2):
            for cell in row:
                if isinstance(cell.value, str) and sheet.title in table_specs() and sheet.title != "sources":
                    text = cell.value.replace("-fault-example", "-fault-one").replace("-example", "-r01")
                    cell.value, cell.data_type = text.replace("EXAMPLE, to be replaced (", "("), "s"
    workbook.save(book)
    result = sheet_in(book, package=empty, allow_removals=True)
    assert result.ok and result.written
    assert {f.code for f in regatta_tools.validate(empty).findings} == {"P007"}
    assert example_in(read(empty), "telecom-x") is None
    assert [s.state for s in cell_status("telecom-x", package=empty)[0].steps][:3] == ["done", "begun", "begun"]


def test_every_error_is_one_of_ours(package_copy):
    """A folder that cannot be written, and a path that is a file."""
    for package in (package_copy / "datapackage.json", package_copy / "nowhere", package_copy / "instruments"):
        try:
            new_cell("telecom-x", **WORDS, package=package)
        except RegattaError as error:
            assert error.mend
