"""For every rule a file that is wrong by it, and by nothing else, and one that is right (examples/rules)."""

from __future__ import annotations

import csv
import difflib
import io
import os
from functools import cache
from pathlib import Path

import pytest
import remake_examples
from click.testing import CliRunner
from conftest import ROOT
from workbook_examples import VERBS, brought_back, export

import regatta_tools
from regatta_tools.cli.explain import explain
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.rules.findings import Finding
from regatta_tools.rules.registry import rules
from regatta_tools.suites.reader import load_labels, load_suite
from regatta_tools.tables.package import DESCRIPTOR, read, table_specs
from regatta_tools.validation.examples import Example, assemble, differences, examples, folder, shown_path

ALL = examples()
BASE = folder() / "base"
REMAKE = "run .venv/bin/python tests/remake_examples.py"
#: Rules that cannot be broken alone, with what comes along and why.
COMPANIONS = {
    "K005": {"P007"},  # a cell without requirements is not complete, and one that is new has no waiver
    "P012": {"P006"},  # the probes of a fault stand in another file than its values, and have nothing to work
}
#: Rules about a whole file, or one that is not there: no line to point at.
WHOLE_FILE = {"R001", "R011", "R012", "R015", "R016", "R018"}


def name(example: Example) -> str:
    return f"{example.code}-{'valid' if example.right else 'invalid'}"


@pytest.fixture(scope="module")
def findings_of(tmp_path_factory):
    """What is said of an example in its package, and where: by `regatta validate`, for labels also by `regatta
    calibrate`, for workbooks by `regatta sheet in`. Each example is judged once."""
    exported = cache(lambda: export(assemble(None, tmp_path_factory.mktemp("exported") / "package")))

    @cache
    def judge(example: Example) -> list[tuple[Finding, str]]:
        into = tmp_path_factory.mktemp(name(example)) / "package"
        if example.file == "workbook.yaml":
            result = brought_back(example.path, assemble(None, into), exported())
            return [(f.finding, f.address) for f in result.findings]
        root = assemble(example, into)
        path = root / example.file if example.file in ("suite.yaml", "labels.yaml") else root
        findings = list(regatta_tools.validate(path).findings)
        if example.file == "labels.yaml" and not findings:
            try:
                load_labels(path, load_suite(root / "suite.yaml"), read(root).cell("example-us"))
            except InputError as error:
                file, line, column = error.place.rsplit(":", 2)
                findings = [rules()[error.code].finding(error.message, file=file, line=int(line), column=int(column))]
        return [(f, f.file.removeprefix(f"{root}{os.sep}")) for f in findings]

    return judge


# There is a pair for every rule, and it is as it says


def test_every_rule_has_one_pair_and_every_pair_a_rule():
    # Rules of the audit need texts of the law: their cases, right and wrong, are in test_audit.py.
    wanted = sorted(code for code, rule in rules().items() if rule.engine != "audit")
    assert sorted(e.code for e in ALL if e.right) == wanted
    assert sorted(e.code for e in ALL if not e.right) == wanted


def test_an_example_stands_in_the_folder_of_its_rule():
    rule_files = {p.stem for p in (ROOT / "validators").glob("*.yaml") if rules()[p.stem[:4]].engine != "audit"}
    assert {e.folder.parent.name for e in ALL} == rule_files


def test_the_base_is_clean():
    assert regatta_tools.validate(BASE).findings == ()
    assert {w.finding.code for w in regatta_tools.validate(BASE).waived} == {"P007"}


@pytest.mark.parametrize("example", [e for e in ALL if not e.right], ids=name)
def test_a_wrong_file_raises_its_rule_and_nothing_else(findings_of, example):
    findings = findings_of(example)
    assert {f.code for f, _ in findings} == {example.code} | COMPANIONS.get(example.code, set()), findings
    found = [f for f, _ in findings if f.code == example.code]
    if rules()[example.code].engine != "sheet":  # there the place is a cell of the workbook
        assert all((f.line > 0) == (example.code not in WHOLE_FILE) for f in found), found
    assert all(f.message and f.mend and f.severity == rules()[f.code].severity for f in found)


@pytest.mark.parametrize("example", [e for e in ALL if not e.right], ids=name)
def test_a_wrong_file_is_told_where_it_is_wrong(findings_of, example):
    """The place is at a line that the example changes, or in another file, in a record that rests on its own."""
    found = [(f, place) for f, place in findings_of(example) if f.code == example.code]
    if rules()[example.code].engine == "sheet":
        assert all(place for _, place in found)
        return
    lines = {f.line for f, place in found if place == example.file}
    if not lines:
        assert all((BASE / place).is_file() for _, place in found) or example.code == "R001", found
    elif (BASE / example.file).is_file() and lines != {0}:
        before, after = ((p / example.file).read_bytes().splitlines() for p in (BASE, example.folder))
        steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        changed = {line + 1 for tag, _, _, j, j_end in steps if tag != "equal" for line in range(j, max(j_end, j + 1))}
        assert lines & changed, (found, changed)


@pytest.mark.parametrize("example", [e for e in ALL if e.right], ids=name)
def test_a_right_file_raises_nothing(findings_of, example):
    assert findings_of(example) == []


def test_every_verb_of_workbooks_is_used():
    texts = [e.path.read_text(encoding="utf-8") for e in ALL if e.file == "workbook.yaml"]
    assert [verb for verb in VERBS if not any(f"- {verb}: " in text for text in texts)] == []


@pytest.mark.parametrize("example", ALL, ids=name)
def test_an_example_is_small_and_is_not_the_base_again(example):
    raw = example.path.read_bytes()
    base = BASE / example.file
    assert not base.is_file() or base.read_bytes() != raw
    # A cell that is too large cannot be small.
    assert len(raw) < 6_000 or (example.code, example.right) == ("R017", False)
    assert differences(example)


# What it says of the law is what the instruments say


def test_the_base_says_of_the_law_what_the_shipped_cells_say():
    changed, by_hand = remake_examples.renewed()
    assert not changed and not by_hand and not remake_examples.described(), (
        f"{REMAKE} ({', '.join(p.relative_to(ROOT).as_posix() for p in changed)})"
    )
    # And the script does what it says: each row is a shipped one but for ids, cell, title and note.
    loose = {"id", "cell", "requirement", "citation", "fact", "fault", "replaced_by"}
    for cell, taken in remake_examples.TAKEN.items():
        for path in sorted((BASE / "instruments" / cell).glob("*.csv")):
            shipped = ROOT / "instruments" / taken.cell / path.name
            if path.stem in remake_examples._LEGAL:
                known = {words(row, loose) for row in rows(shipped)}
                assert {words(row, loose) for row in rows(path)} <= known, path.name
    assert {words(r, set()) for r in rows(BASE / "instruments/sources.csv")} <= {
        words(r, set()) for r in rows(ROOT / "instruments/sources.csv")
    }


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def words(row, loose):
    return tuple((column, value) for column, value in row.items() if column not in loose)


@pytest.mark.parametrize("example", [e for e in ALL if e.right and e.file.endswith(".csv")], ids=name)
def test_a_right_file_has_the_header_of_its_table(example):
    """A new column of the schema reaches the examples by one command, and this says which."""
    text = example.path.read_bytes().decode("utf-8-sig")
    header = next(csv.reader(io.StringIO(text, newline="")))
    assert header == table_specs()[Path(example.file).stem].columns, REMAKE


# Carrying a change of schema or law into the examples

HEADER = ["id", "cell", "source", "statement_en", "statement_vi", "role", "valid_from", "note"]
OLD = "id,cell,statement_en,note\na,us,One.,x\nb,us,Two.,y\n"


def base_text(*lines: tuple[str, ...]) -> str:
    return remake_examples.text_of(
        HEADER, [dict(zip(("id", "cell", "statement_en", "note", "role"), x)) for x in lines]
    )


NEW = base_text(("a", "us", "One, now.", "x", "r"), ("b", "us", "Two.", "y", "r"))


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (OLD, NEW),
        ("\ufeff" + OLD, "\ufeff" + NEW),
        # what the example changes stays, what it has from the base follows it
        (OLD.replace("One.", "Wrong."), base_text(("a", "us", "Wrong.", "x", "r"), ("b", "us", "Two.", "y", "r"))),
        (OLD.replace(",x", ",z"), base_text(("a", "us", "One, now.", "z", "r"), ("b", "us", "Two.", "y", "r"))),
        # a row of its own gets the new columns empty, a row it leaves out stays out
        (
            OLD.replace("b,us,Two.,y", "c,us,Three.,"),
            base_text(("a", "us", "One, now.", "x", "r"), ("c", "us", "Three.")),
        ),
    ],
)
def test_a_change_of_the_base_reaches_an_example(example, expected):
    assert remake_examples.carried(example, OLD, NEW, HEADER, "rules") == (expected, [])


def test_a_row_that_comes_or_goes_in_the_base_comes_and_goes_in_an_example():
    new = base_text(("b", "us", "Two.", "y", "r"), ("d", "us", "Four.", "", "r"))
    assert remake_examples.carried(OLD, OLD, new, HEADER, "rules") == (new, [])


def test_a_header_that_is_wrong_on_purpose_is_left_as_it_is_and_named():
    wrong = OLD.replace("id,cell", "cell,id")
    text, by_hand = remake_examples.carried(wrong, OLD, NEW, HEADER, "rules")
    assert by_hand == [1] and text.splitlines()[0] == wrong.splitlines()[0]


@pytest.mark.parametrize(("line", "number"), [("b,us,Two.\n", 3), ('b,us,"Two.,y\n', 3), ("b;us;Two.;y\n", 3)])
def test_a_line_that_is_no_row_is_left_as_it_is_and_named(line, number):
    text, by_hand = remake_examples.carried(OLD.replace("b,us,Two.,y\n", line), OLD, NEW, HEADER, "rules")
    assert by_hand == [number] and text.endswith(line)


# The library


def test_what_an_example_changes_is_shown(tmp_path):
    base, wrong = tmp_path / "base" / "a.csv", tmp_path / "B001-x" / "invalid-x" / "a.csv"
    for path in (base, wrong):
        path.parent.mkdir(parents=True)
    base.write_text("id,text\na,One.\nb,Two.\nc,Three.\n", encoding="utf-8")

    def shown(content: str | bytes) -> list[str]:
        wrong.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        (example,) = examples(tmp_path)
        return differences(example, tmp_path)

    assert shown("id,text\na,One.\nb,2.\nc,Three.\n") == ["line 3, text: 'Two.' -> '2.'"]
    assert shown("id,text\na,One.\nc,Three.\n") == ["- 'b,Two.'"]
    assert shown("id,text\na,One.\nb,Two.\nc,Three.\nd,Four.\n") == ["line 5: + 'd,Four.'"]
    assert shown("id,text\na,One.\nb,Two.,\nc,Three.\n") == ["line 3: 'b,Two.' -> 'b,Two.,'"]
    assert shown("id,text\na,One.\nb,Two.\nc,Thre\u0301e.\n") == [r"line 4, text: 'Three.' -> 'Thre\u0301e.'"]
    assert shown(b"id,text\na,One.\nb,Two.\nc,Thr\xe9e.\n") == [r"line 4, text: 'Three.' -> 'Thr\\xe9e.'"]
    assert shown("\ufeffid,text\r\na,One.\r\nb,Two.\r\nc,Three.\r\n") == ["the same cells, written otherwise"]
    assert shown('"id",text\na,One.\nb,Two.\nc,Three.\n') == ["the same cells, written otherwise"]
    assert shown("") == ["- 'id,text'", "- 'a,One.'", "- 'b,Two.'", "- 'c,Three.'"]
    (cut,) = shown("id,text\na,One.\nb," + "x" * 60 + "y" + "z" * 60 + "\nc,Three.\n")
    assert len(cut) < 200
    base.unlink()
    assert shown("id\nx\n") == ["+ 'id'", "+ 'x'"]


@pytest.mark.parametrize("code", ["F002", "X005", "R011", "U008"])
def test_explain_shows_both_examples(code):
    """The paths can be opened, and what they change is said."""
    done = CliRunner().invoke(explain, [code])
    assert done.exit_code == 0
    for example in examples(code=code):
        assert str(shown_path(example.path)) in done.output and Path(shown_path(example.path)).is_file()
        assert all(line in done.output for line in differences(example)[:12])


def test_explain_says_that_there_is_more(monkeypatch):
    monkeypatch.setattr("regatta_tools.cli.explain.MOST_LINES", 2)
    assert (
        f"and {len(differences(examples(code='R004')[0])) - 2} more lines"
        in CliRunner().invoke(explain, ["R004"]).output
    )


def test_explain_needs_no_examples(monkeypatch, tmp_path):
    monkeypatch.setattr("regatta_tools.validation.examples.folder", lambda: tmp_path / "none")
    done = CliRunner().invoke(explain, ["F002"])
    assert done.exit_code == 0 and "Wrong" not in done.output


def test_a_folder_that_is_no_example_is_refused(tmp_path):
    good = tmp_path / "B001-no-basis" / "invalid-none" / "instruments" / "us" / "citations.csv"
    good.parent.mkdir(parents=True)
    good.write_text("id\n", encoding="utf-8")
    (found,) = examples(tmp_path)
    assert (found.code, found.right, found.reason, found.file) == (
        "B001",
        False,
        "none",
        "instruments/us/citations.csv",
    )
    for path in ("B001-no-basis/wrong/x.csv", "B001-no-basis/invalid-none/second.csv", "b1/valid-x/x.csv"):
        bad = tmp_path / path
        bad.parent.mkdir(parents=True, exist_ok=True)
        bad.write_text("id\n", encoding="utf-8")
        with pytest.raises(EnvironmentProblem, match="an example is one file"):
            examples(tmp_path)
        bad.unlink()
        if not any(bad.parent.iterdir()):
            bad.parent.rmdir()
    assert examples(tmp_path / "not there") == []


def test_the_descriptor_says_what_the_files_are(tmp_path):
    root = assemble(None, tmp_path / "package")
    (root / "instruments" / "cells.csv").write_bytes(b"x\n" * 3)
    assert any(f.code == "R011" or f.file.endswith("cells.csv") for f in regatta_tools.validate(root).findings)
    assert (BASE / DESCRIPTOR).read_bytes() == (assemble(None, tmp_path / "again") / DESCRIPTOR).read_bytes()
