"""`regatta fmt`: one form for every table, and nothing lost on the way to it."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import random
import stat
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT, redescribe
from helpers import Sheet
from hypothesis import given
from hypothesis import strategies as st
from test_cli_validate import invoke, plain, regatta

import regatta_tools
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.tables import formatter
from regatta_tools.tables.formatter import DELIMITERS, format_content, format_paths, in_order, natural_key
from regatta_tools.tables.package import DESCRIPTOR, spec_of, table_specs
from regatta_tools.tables.reader import LOSING, read_content

SHIPPED = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "instruments").rglob("*.csv"))
FACTS = "instruments/insurance-us/facts.csv"
PROBES = "instruments/insurance-us/fault_probes.csv"
FAULTS = "instruments/insurance-us/faults.csv"


def records(content: bytes) -> Counter[tuple[tuple[str, str], ...]]:
    """The records of a canonical file as a multiset, by the standard library's reader."""
    found = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""), strict=True)
    return Counter(tuple(sorted(row.items())) for row in found)


def state(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


# The shipped package


def test_the_shipped_package_is_canonical():
    [report] = format_paths([ROOT], check=True)
    assert report.ok and not report.undescribed and {f.file for f in report.files} == set(SHIPPED)


@pytest.mark.parametrize("file", SHIPPED)
def test_a_shipped_file_comes_back_whatever_a_spreadsheet_made_of_its_form(file):
    raw = (ROOT / file).read_bytes()
    spec = spec_of(table_specs(), file)
    header, *rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
    dice = random.Random(file)
    dice.shuffle(rows)
    order = dice.sample(range(len(header)), len(header))
    spoilt = io.StringIO()
    writer = csv.writer(spoilt, delimiter=";", lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerows([[row[at] for at in order] for row in [header, *rows]])
    text = unicodedata.normalize("NFD", spoilt.getvalue()).replace('"";', '" ";').removesuffix("\r\n")
    formatted = format_content(b"\xef\xbb\xbf" + text.encode("utf-8"), file, spec)
    assert not formatted.refusals and formatted.after == raw


# What is kept

SPECS = [table_specs()[name] for name in ("fault_requirements", "fault_values", "cells")]
# A lone carriage return is refused, and so has a test of its own.
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8) | st.sampled_from(
    [
        "",
        " a ",
        "a,b",
        "a;b",
        'a"b',
        '""',
        "\t",
        "a\nb",
        "e\u0323\u0302",
        "r2",
        "r10",
        "r02",
        "=1",
        "\u00a0x",
        "\ufeff",
        "|",
    ]
)


@st.composite
def files(draw):
    """A file of some table in any form that a program may give it, and its records as they should come out."""
    spec = draw(st.sampled_from(SPECS))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(spec.columns), max_size=len(spec.columns)), max_size=6))
    order = draw(st.permutations(range(len(spec.columns))))
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=draw(st.sampled_from(sorted(DELIMITERS))),
        lineterminator=draw(st.sampled_from(["\n", "\r\n"])),
        quoting=draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])),
    )
    for row in [spec.columns, *rows]:
        writer.writerow([row[at] for at in order])
        if draw(st.integers(0, 9)) == 0:
            out.write(writer.dialect.lineterminator)  # a blank line
    text = out.getvalue()
    if draw(st.booleans()):
        text = text.removesuffix("\n").removesuffix("\r")
    raw = (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.encode("utf-8")
    normal = [[unicodedata.normalize("NFC", cell).strip() for cell in row] for row in rows]
    wanted = Counter(tuple(sorted(zip(spec.columns, row))) for row in normal if any(row))
    return spec, raw, wanted


@given(files())
def test_formatting_keeps_the_records_and_once_is_enough(made):
    spec, raw, wanted = made
    formatted = format_content(raw, "x.csv", spec)
    assert not formatted.refusals, formatted.refusals
    assert records(formatted.after) == wanted
    assert formatted.rows_after == wanted.total()
    assert formatted.changed == (formatted.after != raw) == bool(formatted.steps)
    again = format_content(formatted.after, "x.csv", spec)
    assert (again.after, again.steps, again.first_difference()) == (formatted.after, (), None)
    table = read_content(formatted.after, "x.csv", spec.columns)
    # What is left is not a matter of form.
    assert {f.code for f in table.findings} <= {"R008", "R019"}
    assert (
        b"\r\n" not in formatted.after and formatted.after.endswith(b"\n") and not formatted.after.startswith(b"\xef")
    )


@given(files(), st.randoms(use_true_random=False), st.binary(min_size=1, max_size=3))
def test_a_damaged_file_is_refused_or_keeps_what_the_reader_reads(made, dice, noise):
    spec, raw, _ = made
    at = dice.randrange(len(raw) + 1)
    raw = raw[:at] + noise + raw[at + dice.choice([0, 1]) :]
    formatted = format_content(raw, "x.csv", spec)
    if formatted.refused:
        assert formatted.refusals and all(f.mend and f.file == "x.csv" for f in formatted.refusals)
        return
    assert format_content(formatted.after, "x.csv", spec).after == formatted.after
    plainly = read_content(raw, "x.csv", spec.columns)
    if plainly.complete and not plainly.findings:
        # The reader alone, without the formatter's own reading of delimiters and columns, sees the same records.
        assert records(formatted.after) == Counter(
            tuple(sorted(zip(spec.columns, (c.replace("\r\n", "\n") for c in row)))) for row in plainly.rows if any(row)
        )


@given(st.text(st.sampled_from("ab01"), max_size=8), st.text(st.sampled_from("ab01"), max_size=8))
def test_the_order_is_total(one, other):
    assert (natural_key(one) == natural_key(other)) == (one == other)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["", "r", "us-cfr-", "r01-f"]))
def test_numbers_in_ids_sort_by_value(one, other, before):
    assert (natural_key(f"{before}{one}") < natural_key(f"{before}{other}")) == (one < other)
    assert natural_key("9" * 5000) < natural_key("1" + "0" * 5000) < natural_key("a")


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=8), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_before(rows, dice):
    spec = table_specs()["fault_requirements"]
    shuffled = dice.sample(rows, len(rows))
    assert in_order(shuffled, spec) == in_order(rows, spec)


# What is refused


def lines_of(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


REFUSED = {
    "a byte that is not UTF-8": (lambda raw: raw[:-1] + b"\xe9\n", "R002"),
    "UTF-16": (lambda raw: raw.decode("utf-8").encode("utf-16"), "R002"),
    "an open quote": (lambda raw: raw + b'x,"y\n', "R005"),
    "a quote inside a bare cell": (lambda raw: raw + b'x,y"z"\n', "R006"),
    "a short row": (lambda raw: raw + b"x,y\n", "R007"),
    "a short row after many blank ones": (lambda raw: raw + b"\n" * 3000 + b"x,y\n", "R007"),
    "a long row": (lambda raw: raw[:-1] + b",\n", "R007"),
    "nothing": (lambda raw: b"", "R012"),
    "a lost column": (lambda raw: raw.replace(b"parameter,", b"", 1), "R003"),
    "a strange column": (lambda raw: raw.replace(b"parameter,", b"parameters,", 1), "R003"),
    "a column twice": (lambda raw: raw.replace(b"parameter,", b"id,", 1), "R003"),
    "a nameless column": (lambda raw: raw.replace(b"\n", b",\n"), "R003"),
    "no header": (lambda raw: b"".join(lines_of(raw)[1:]), "R003"),
    "a strange column between semicolons": (
        lambda raw: raw.replace(b",", b";").replace(b"parameter;", b"x;", 1),
        "R003",
    ),
    "a lone carriage return": (lambda raw: raw.replace(b"insurance-us,", b"insurance\rus,", 1), "R008"),
    "lone carriage returns for line ends": (lambda raw: raw.replace(b"\n", b"\r"), "R008"),
    "a huge cell": (lambda raw: raw[:-1] + b"y" * 140_000 + b"\n", "R017"),
}


@pytest.mark.parametrize("damage", REFUSED)
def test_what_cannot_be_read_beyond_doubt_is_refused_and_the_others_are_formatted(package_copy, damage):
    change, code = REFUSED[damage]
    path = package_copy / PROBES
    path.write_bytes(change(path.read_bytes()))
    other = package_copy / FAULTS
    canonical = other.read_bytes()
    other.write_bytes(canonical.replace(b"\n", b"\r\n"))
    before = state(package_copy)
    [report] = format_paths([package_copy])
    assert [(f.file, {x.code for x in f.refusals}) for f in report.refused] == [(PROBES, {code})]
    assert not report.ok and [f.file for f in report.changed] == [FAULTS]
    assert state(package_copy) == before | {FAULTS: canonical}


def test_a_refusal_names_the_place_in_the_file_as_it_stands(package_copy):
    path = package_copy / PROBES
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\n").writerows(rows)
    path.write_text(out.getvalue() + 'a;"b,c";d"\n', encoding="utf-8")
    [report] = format_paths([package_copy])
    [refused] = report.refused
    assert [(f.code, f.line, f.column) for f in refused.refusals] == [("R006", len(rows) + 1, 10)]


def test_links_and_unknown_tables_are_refused(package_copy, tmp_path):
    outside = tmp_path / "outside.csv"
    outside.write_bytes((package_copy / PROBES).read_bytes().replace(b"\n", b"\r\n"))
    content = outside.read_bytes()
    (package_copy / PROBES).unlink()
    (package_copy / PROBES).symlink_to(outside)
    (package_copy / "instruments/insurance-us/notes.csv").write_text("id\n", encoding="utf-8")
    [report] = format_paths([package_copy])
    assert {f.file: [x.code for x in f.refusals] for f in report.refused} == {
        PROBES: ["R015"],
        "instruments/insurance-us/notes.csv": ["R016"],
    }
    assert outside.read_bytes() == content


@pytest.mark.parametrize("instead", [None, "folder"])
def test_a_listed_table_that_is_gone_is_refused(package_copy, instead):
    (package_copy / PROBES).unlink()
    if instead:
        (package_copy / PROBES).mkdir()
    for path in (package_copy, (package_copy / PROBES).parent):
        [report] = format_paths([path], check=True)
        assert {f.file: [x.code for x in f.refusals] for f in report.refused} == {PROBES: ["R001"]}
    # Somebody who names another table is told of that one.
    [report] = format_paths([package_copy / "instruments" / "sources.csv"], check=True)
    assert report.ok


# The descriptor


def test_the_descriptor_follows_what_it_described(package_copy):
    sheet = Sheet(package_copy, "facts")
    sheet.rows.reverse()
    sheet.rows.append([""] * len(sheet.header))
    sheet.save()
    before = json.loads((package_copy / DESCRIPTOR).read_text(encoding="utf-8"))
    [report] = format_paths([package_copy])
    assert [f.file for f in report.changed] == [FACTS] and report.undescribed == ()
    assert regatta_tools.validate(package_copy).findings == ()
    after = json.loads((package_copy / DESCRIPTOR).read_text(encoding="utf-8"))
    for old, new in zip(before["resources"], after["resources"], strict=True):
        differ = {key for key in old if old[key] != new[key]}
        assert differ == ({"rows", "bytes", "hash"} if old["path"] == FACTS else set())
    assert {k: v for k, v in before.items() if k != "resources"} == {k: v for k, v in after.items() if k != "resources"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_lost_row_still_shows_after_formatting(package_copy, end):
    path = package_copy / FACTS
    kept = lines_of(path.read_bytes())
    del kept[3]
    path.write_bytes(b"".join(kept).replace(b"\n", end.encode()))
    descriptor = (package_copy / DESCRIPTOR).read_bytes()
    [report] = format_paths([package_copy])
    assert report.undescribed == (FACTS,)
    assert (package_copy / DESCRIPTOR).read_bytes() == descriptor
    assert "R011" in {f.code for f in regatta_tools.validate(package_copy).findings}
    code, out, _ = invoke("fmt", package_copy)
    assert code == 0 and FACTS in out and "make schema" in out and "lost" in out


def test_line_ends_alone_need_no_new_description(package_copy):
    descriptor = (package_copy / DESCRIPTOR).read_bytes()
    for path in (package_copy / "instruments").rglob("*.csv"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert "R011" in {f.code for f in regatta_tools.validate(package_copy).findings}
    [report] = format_paths([package_copy])
    assert report.ok and not report.undescribed and (package_copy / DESCRIPTOR).read_bytes() == descriptor
    assert regatta_tools.validate(package_copy).ok


@pytest.mark.parametrize(("key", "value"), [("rows", 1), ("bytes", 1), ("hash", "sha256:00"), ("hash", None)])
def test_a_description_that_was_not_true_is_not_renewed(package_copy, key, value):
    rows = lines_of((package_copy / FACTS).read_bytes())
    (package_copy / FACTS).write_bytes(b"".join([rows[0], *reversed(rows[1:])]))
    redescribe(package_copy)
    path = package_copy / DESCRIPTOR
    descriptor = json.loads(path.read_text(encoding="utf-8"))
    next(r for r in descriptor["resources"] if r["path"] == FACTS)[key] = value
    path.write_text(json.dumps(descriptor), encoding="utf-8")
    before = path.read_bytes()
    [report] = format_paths([package_copy])
    assert [f.file for f in report.changed] == [FACTS] and report.undescribed == (FACTS,)
    assert path.read_bytes() == before


# Writing


def spoil_two(root: Path) -> None:
    for file in (FACTS, FAULTS):
        (root / file).write_bytes((root / file).read_bytes().replace(b"\n", b"\r\n"))
    redescribe(root)


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_full_disk_leaves_every_file_as_it_was(package_copy, monkeypatch, fails):
    spoil_two(package_copy)
    before = state(package_copy)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(EnvironmentProblem) as caught:
        format_paths([package_copy])
    assert caught.value.code == "E305" and state(package_copy) == before


def test_permissions_and_links_are_kept(package_copy):
    path = package_copy / FACTS
    target = path.with_name("facts-of-others.csv")
    path.rename(target)
    target.write_bytes(target.read_bytes().replace(b"\n", b"\r\n"))
    target.chmod(0o640)
    path.symlink_to(target.name)
    formatter.format_paths([package_copy])
    assert path.is_symlink() and stat.S_IMODE(target.stat().st_mode) == 0o640
    assert b"\r" not in target.read_bytes()


def test_an_edit_of_somebody_else_is_not_written_over(package_copy, monkeypatch):
    spoil_two(package_copy)
    real = formatter.csv_bytes

    def slow(columns, rows):
        with (package_copy / FACTS).open("ab") as file:
            file.write(b"a row that was added meanwhile\n")
        return real(columns, rows)

    monkeypatch.setattr(formatter, "csv_bytes", slow)
    with pytest.raises(EnvironmentProblem) as caught:
        format_paths([package_copy / FACTS])
    assert caught.value.code == "E308" and b"meanwhile" in (package_copy / FACTS).read_bytes()


def test_check_writes_nothing_and_names_the_first_line_that_differs(package_copy):
    path = package_copy / FACTS
    rows = lines_of(path.read_bytes())
    rows[4], rows[6] = rows[6], rows[4]
    path.write_bytes(b"".join(rows))
    before = state(package_copy)
    code, out, err = invoke("fmt", package_copy, "--check")
    assert (code, plain(err)) == (1, "") and state(package_copy) == before
    assert f"{FACTS}:5: rows in order" in out and rows[4].decode()[:40] in out and rows[6].decode()[:40] in out
    code, out, _ = invoke("fmt", package_copy, "--check", "--format", "json")
    value = json.loads(out)
    [entry] = [f for f in value["packages"][0]["files"] if f["state"] == "changed"]
    assert code == 1 and not value["ok"] and (entry["file"], entry["line"]) == (FACTS, 5)
    assert (entry["is"] + "\n", entry["should_be"] + "\n") == (rows[4].decode(), rows[6].decode())
    assert invoke("fmt", package_copy)[0] == 0
    code, out, _ = invoke("fmt", package_copy, "--check")
    assert code == 0 and out.strip().endswith("canonical")


def test_a_file_without_its_last_line_end_differs_at_its_last_line(package_copy):
    path = package_copy / FACTS
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    [report] = format_paths([path], check=True)
    [formatted] = report.changed
    assert formatted.first_difference() == (len(lines_of(path.read_bytes())) + 1, "(end of file)", "")
    assert formatted.steps == ("line end after the last row",)


# Paths


@pytest.mark.parametrize("named", ["root", "descriptor", "folder", "file", "here", "inside"])
def test_a_path_is_a_package_or_something_inside_one(package_copy, monkeypatch, named):
    spoil_two(package_copy)
    cell = package_copy / "instruments/insurance-us"
    arguments = {
        "root": [package_copy], "descriptor": [package_copy / DESCRIPTOR], "folder": [cell],
        "file": [package_copy / FACTS, cell / "../../" / FACTS], "here": [], "inside": [],
    }[named]  # fmt: skip
    monkeypatch.chdir({"here": package_copy, "inside": cell}.get(named, ROOT))
    code, out, err = invoke("fmt", *arguments)
    assert (code, plain(err)) == (0, "")
    formatted = {FACTS, FAULTS} if named != "file" else {FACTS}
    assert {line.split(":")[0] for line in out.splitlines() if "CRLF" in line} == formatted
    assert {f for f in (FACTS, FAULTS) if b"\r" not in (package_copy / f).read_bytes()} == formatted


@pytest.mark.parametrize("path", ["nowhere", "", "a\0b", "notes.txt", "x" * 5000, "empty"])
def test_a_path_outside_a_package_is_refused_before_anything_is_written(package_copy, tmp_path, monkeypatch, path):
    spoil_two(package_copy)
    before = state(package_copy)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        format_paths([package_copy, path])
    assert caught.value.code == "U101" and caught.value.mend and state(package_copy) == before


def test_a_broken_descriptor_is_told_before_anything_is_written(package_copy):
    spoil_two(package_copy)
    (package_copy / DESCRIPTOR).write_text("{", encoding="utf-8")
    before = state(package_copy)
    code, out, err = invoke("fmt", package_copy)
    assert (code, out) == (2, "") and "U102" in plain(err) and state(package_copy) == before


def test_the_command_works_in_a_c_locale_and_a_narrow_terminal(package_copy):
    path = package_copy / FACTS
    header, *rows = lines_of(path.read_bytes())
    path.write_bytes(b"".join([header, rows[0].replace(rows[0].split(b",")[0], "Điều-1".encode()), *rows]))
    done = regatta("fmt", package_copy, "--check", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", COLUMNS="40")
    assert done.returncode == 1 and "Điều-1" in done.stdout.decode("utf-8") and plain(done.stderr) == ""


def test_the_reader_points_to_the_formatter(package_copy):
    path = package_copy / FACTS
    for change in (lambda raw: raw.replace(b",", b";"), lambda raw: raw.replace(b"id,cell", b"cell,id", 1)):
        raw = path.read_bytes()
        path.write_bytes(change(raw))
        [finding] = [f for f in regatta_tools.validate(package_copy).findings if f.code in LOSING]
        assert "regatta fmt" in finding.mend
        path.write_bytes(raw)
