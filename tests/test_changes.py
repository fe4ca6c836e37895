"""`regatta validate --changed-since`: a pull request answers for what it brings in and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, one_cell, redescribe
from helpers import Sheet, read_again
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cli_validate import invoke, plain, regatta

import regatta_tools
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.rules.findings import Finding, identity
from regatta_tools.rules.registry import rules
from regatta_tools.validation.changes import _Git

CELL = "instruments/insurance-us"


@pytest.fixture(autouse=True)
def own_git(monkeypatch):
    """Git as on a fresh machine, whatever this one is set up to do."""
    for key in list(os.environ):
        if key.startswith("GIT_"):
            monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def commit(folder: Path, message: str = "x") -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a subfolder with a Vietnamese name, committed on main; the branch ``edit`` is checked out."""
    top = repository(tmp_path / "kho")
    root = top / "gói dữ liệu"
    root.mkdir()
    one_cell(root)
    commit(top)
    git(top, "switch", "--quiet", "--create", "edit")
    return root


def codes(report) -> list[str]:
    return [f.code for f in report.findings]


def since(root: Path, revision: str = "main"):
    return regatta_tools.validate(root, changed_since=revision)


# The story of a pull request


def test_an_edited_deadline_is_annotated_on_its_line(tmp_path, monkeypatch):
    """A legal engineer edits a deadline of healthcare-us on a branch, in a clone of the package."""
    top = repository(tmp_path / "clone")
    one_cell(top, "healthcare-us")
    commit(top)
    git(top, "switch", "--quiet", "--create", "edit")
    file = "instruments/healthcare-us/facts.csv"
    lines = (top / file).read_text(encoding="utf-8").split("\n")
    number = next(n for n, line in enumerate(lines) if line.startswith("healthcare-us-r01-f1,"))
    before, value, unit = re.fullmatch(r"(.*,at-most,)(\d+)(,day,.*)", lines[number]).groups()
    lines[number] = f"{before}{int(value) + 17}{unit}"
    (top / file).write_text("\n".join(lines), encoding="utf-8", newline="")
    commit(top, "A longer deadline")
    monkeypatch.chdir(top)
    code, out, err = invoke("validate", ".", "--changed-since", "main", "--format", "github")
    assert (code, plain(err)) == (1, "")
    first, *others, closing = out.strip().split("\n")
    rule = rules()["F002"]
    assert first.startswith(f"::error file={file},line={number + 1},col={len(before) + 1},title=F002%3A {rule.title}::")
    assert str(int(value) + 17) in first and f"%0AWhy: {rule.why}%0AMend: {rule.mend}" in first
    # What follows from any edit comes last, and says what to do about it.
    assert others[-1].startswith(f"::error file={file},title=R011") and "make schema" in others[-1]
    assert "since main" in closing and "0 older findings not shown" in closing
    redescribe(top)
    assert codes(since(top)) == [c for c in codes(since(top)) if c != "R011"] and "F002" in codes(since(top))


def test_nothing_changed_brings_nothing_in(package):
    report = since(package)
    assert (report.findings, report.older, report.since) == ((), 0, "main")
    code, out, _ = invoke("validate", package, "--changed-since", "main")
    assert code == 0 and "nothing new since main; 0 older findings not shown" in out


def test_a_deletion_that_breaks_a_reference_elsewhere_is_seen(package):
    sheet = Sheet(package, "requirements")
    del sheet.rows[sheet.find("insurance-us-r05")]
    sheet.save()
    report = since(package)
    files = {f.file for f in report.findings if f.code == "K003"}
    # These files have not been touched.
    assert f"{CELL}/citations.csv" in files and git(package, "status", "--porcelain", f"{CELL}/citations.csv") == ""
    assert set(report.findings) == set(regatta_tools.validate(package).findings)


@pytest.fixture
def spoilt(package: Path) -> Path:
    """The package with errors that are on main already: a duplicate (whose message names a line) and a bad value."""
    git(package, "switch", "--quiet", "main")
    sheet = Sheet(package, "facts")
    row = list(sheet.rows[-3])
    row[0] += "-again"
    sheet.rows.append(row)
    sheet.save()
    sheet = Sheet(package, "faults")
    sheet.set(0, severity="rất cao")
    sheet.save()
    commit(package)
    git(package, "switch", "--quiet", "--force-create", "edit")
    return package


def test_older_findings_are_counted_and_not_shown(spoilt):
    assert sorted(codes(regatta_tools.validate(spoilt))) == ["K002", "S003"]
    sheet = Sheet(spoilt, "facts")
    sheet.set(0, label="another label")
    # Lines move: the place in the finding, and the place that its message names.
    sheet.rows.insert(0, [*sheet.rows[0][:4], "one more", *sheet.rows[0][5:]])
    sheet.set(0, id="insurance-us-r01-f0")
    sheet.save()
    read_again(spoilt)
    report = since(spoilt)
    assert (report.findings, report.older, report.ok) == ((), 2, True)
    code, out, _ = invoke("validate", spoilt, "--changed-since", "main", "--format", "json")
    value = json.loads(out)
    assert (code, value["ok"], value["older"], value["since"], value["findings"]) == (0, True, 2, "main", [])
    assert invoke("validate", spoilt)[0] == 1


def test_a_line_that_was_wrong_and_is_touched_is_shown(spoilt):
    sheet = Sheet(spoilt, "faults")
    sheet.set(0, name="another name")
    sheet.save()
    report = since(spoilt)
    assert (codes(report), report.older, report.ok) == (["S003"], 1, False)


def test_a_second_error_of_the_same_kind_is_new(spoilt):
    sheet = Sheet(spoilt, "facts")
    sheet.rows.append([sheet.rows[-1][0] + "-again", *sheet.rows[-1][1:]])
    sheet.save()
    report = since(spoilt)
    assert (codes(report), report.older) == (["K002"], 2)


def test_a_warning_alone_leaves_with_0(package):
    sheet = Sheet(package, "requirements")
    sheet.set("insurance-us-r25", status="retired")
    sheet.save()
    code, out, _ = invoke("validate", package, "--changed-since", "main")
    assert code == 0 and "0 errors, 1 warning since main" in out


def test_what_main_did_meanwhile_is_not_put_to_the_branch(package):
    sheet = Sheet(package, "faults")
    sheet.set(1, name="another name")
    sheet.save()
    commit(package)
    git(package, "switch", "--quiet", "main")
    sheet = Sheet(package, "sources")
    sheet.set("us-ca-ccr", note="changed on main")
    sheet.save()
    commit(package)
    git(package, "switch", "--quiet", "edit")
    before = git(package, "diff", "--name-only", "main", "--relative").split()
    assert "instruments/sources.csv" in before  # a plain diff with main would blame the branch
    sheet = Sheet(package, "sources")
    assert since(package).ok
    sheet.set("us-ca-ccr", kind="Statute")
    sheet.save()
    assert codes(since(package)) == ["S003"]


@pytest.mark.parametrize("kept", ["edited", "staged", "committed", "untracked", "ignored"])
def test_edits_count_whether_or_not_git_has_them(package, kept):
    if kept in ("untracked", "ignored"):
        shutil.rmtree(package / CELL / "context")
        git(package, "rm", "-r", "--quiet", "--cached", f"{CELL}/context")
        redescribe(package)
        commit(package)
        (package / CELL / "context").mkdir()
        file = f"{CELL}/context/roles.csv"
        header = ",".join(f["name"] for f in _fields("roles"))
        (package / file).write_text(f"{header}\nx\n", encoding="utf-8")
        redescribe(package)
        if kept == "ignored":
            (package.parent / ".git/info/exclude").write_text("context\n", encoding="utf-8")
        expected = [("R007", file, 2)]
    else:
        sheet = Sheet(package, "faults")
        file, line = sheet.save(sheet.set(2, severity="High"))
        if kept == "staged":
            git(package, "add", "--all")
        if kept == "committed":
            commit(package)
        expected = [("S003", file, line)]
    assert [(f.code, f.file, f.line) for f in since(package).findings] == expected


def _fields(table: str):
    from regatta_tools.tables.package import table_specs

    return table_specs()[table].fields.values()


def test_a_package_that_is_new_answers_for_everything(package, tmp_path):
    top = package.parent
    other = top / "khác"
    other.mkdir()
    one_cell(other)
    sheet = Sheet(other, "faults")
    sheet.set(0, severity="High")
    sheet.save()
    commit(top)
    report = since(other)
    assert (codes(report), report.older) == (["S003"], 0)
    assert since(package).findings == ()


def test_a_row_that_is_lost_is_seen_even_if_the_descriptor_was_stale(package):
    git(package, "switch", "--quiet", "main")
    path = package / CELL / "facts.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("receipt of", "the receipt of", 1), encoding="utf-8")
    commit(package)
    git(package, "switch", "--quiet", "--force-create", "edit")
    lines = path.read_text(encoding="utf-8").split("\n")
    # The descriptor is stale, and so is the reading of the fact that was edited.
    assert since(package).findings == () and since(package).older == 2
    lost = lines.pop(-2).split(",")[2]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = {f.code: f for f in since(package).findings}
    assert found.keys() == {"R011", "A001"} and "rows" in found["R011"].message
    assert found["A001"].record == lost, "a fact of it is gone"


# Whatever git is told to do


def test_line_ends_that_a_checkout_makes_are_no_change(package, tmp_path):
    clone = tmp_path / "windows"
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "--quiet", str(package.parent), str(clone))
    git(clone, "config", "core.autocrlf", "true")
    root = clone / package.name
    assert b"\r\n" in (root / CELL / "facts.csv").read_bytes()
    assert "R011" in codes(regatta_tools.validate(root))
    report = since(root, "origin/main")
    assert report.findings == () and report.older > 5
    path = root / CELL / "faults.csv"
    lines = path.read_bytes().split(b"\r\n")
    lines[2] = lines[2].replace(b",medium,", b",High,").replace(b",high,", b",High,")
    path.write_bytes(b"\r\n".join(lines))
    report = since(root, "origin/main")
    assert [(f.code, f.line) for f in report.findings if f.code != "R011"] == [("S003", 3)]
    assert {f.file for f in report.findings} == {f"{CELL}/faults.csv"}


def test_settings_of_the_user_change_nothing(package, monkeypatch, tmp_path):
    sheet = Sheet(package, "faults")
    sheet.set(0, severity="High")
    sheet.set(4, severity="High")
    sheet.save()
    sheet = Sheet(package, "requirements")
    del sheet.rows[2]
    sheet.save()
    plainly = since(package)
    assert plainly.findings
    for key, value in {
        "diff.noprefix": "true", "diff.mnemonicPrefix": "true", "color.ui": "always", "core.quotepath": "true",
        "diff.external": "false", "diff.context": "7", "diff.interHunkContext": "99", "diff.algorithm": "patience",
        "diff.renames": "copies", "diff.relative": "false", "core.pager": "false", "diff.csv.textconv": "false",
        "core.fsmonitor": "false", "diff.wsErrorHighlight": "all",
    }.items():  # fmt: skip
        git(package, "config", key, value)
    (package.parent / ".git/info/attributes").write_text("*.csv diff=csv\n", encoding="utf-8")
    assert since(package) == plainly
    (package.parent / ".git/info/attributes").write_text("*.csv binary\n", encoding="utf-8")
    assert since(package) == plainly
    # As inside a hook, where these lead astray from another folder.
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert since(package) == plainly


def test_the_working_tree_and_the_repository_stay_as_they_are(package):
    sheet = Sheet(package, "faults")
    sheet.set(0, severity="High")
    sheet.save()

    def everything():
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in package.parent.rglob("*") if p.is_file()}

    before = everything()
    assert not since(package).ok
    assert everything() == before


def test_a_c_locale_and_another_folder(package, tmp_path):
    sheet = Sheet(package, "faults")
    file, line = sheet.save(sheet.set(0, severity="rất cao"))
    suite = package / "bộ kịch bản.yaml"
    suite.write_text("id: x\nscenarios: []\n", encoding="utf-8")
    commit(package)
    suite.write_text("id: x\nscenarios: []\nnotes: x\n", encoding="utf-8")
    c = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"}
    done = regatta("validate", package, "--changed-since", "main", "--format", "github", cwd=tmp_path, **c)
    assert done.returncode == 1 and plain(done.stderr) == ""
    assert f"::error file={package.name}/{file},line={line},".encode() in done.stdout
    done = regatta("validate", suite, "--changed-since", "HEAD", "--format", "github", cwd=tmp_path, **c)
    assert done.returncode == 1 and plain(done.stderr) == ""
    said = done.stdout.decode("utf-8").split("\n")
    assert len(said) == 3 and said[0].startswith(
        f"::error file={package.name}/bộ kịch bản.yaml,line=3,col=1,title=U002"
    )
    assert "1 older finding not shown" in said[1]


# Suites

SCENARIO = "  - id: {}\n    turns:\n      - {{speaker: user, text: Hello}}\n"
SUITE = "id: x\nscenarios:\n" + SCENARIO.format("a")


def test_a_suite_answers_for_what_was_added_to_it(tmp_path):
    top = repository(tmp_path / "suites")
    path = top / "bộ.yaml"
    path.write_text(SUITE + "    notes: x\n" + SCENARIO.format("b") + SCENARIO.format("b"), encoding="utf-8")
    commit(top)
    assert len(regatta_tools.validate(path).findings) == 1
    report = since(path, "HEAD")
    assert (report.findings, report.older) == ((), 1)
    # A scenario before the wrong one moves its number and its line.
    moved = path.read_text(encoding="utf-8").replace("scenarios:\n", "scenarios:\n" + SCENARIO.format("c"))
    path.write_text(moved + "    remarks: y\n", encoding="utf-8")
    report = since(path, "HEAD")
    assert [(f.code, f.line) for f in report.findings] == [("U002", 16)] and report.older == 1
    assert report.findings[0].file == str(path)
    new = top / "new.yaml"
    new.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert (len(since(new, "HEAD").findings), since(new, "HEAD").older) == (2, 0)


# What cannot be answered


@pytest.mark.parametrize(
    ("revision", "says"),
    [
        ("nowhere", "knows no revision 'nowhere'"), ("", "is no revision"), ("--all", "is no revision"),
        ("-p", "is no revision"), ("main..edit", "knows no revision"), ("a\nb", "is no revision"),
        ("main:instruments", "knows no revision"), ("HEAD~99", "knows no revision"), ("x" * 5000, "knows no revision"),
    ],
)  # fmt: skip
def test_no_such_revision_leaves_with_2(package, revision, says):
    code, out, err = invoke("validate", package, f"--changed-since={revision}")
    assert (code, out) == (2, "") and says in plain(err) and "mend:" in err and len(err.splitlines()) <= 3


def test_a_branch_that_is_only_at_the_remote_is_named(package, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--branch", "edit", str(package.parent), str(clone))
    code, _, err = invoke("validate", clone / package.name, "--changed-since", "main")
    assert code == 2 and "origin/main" in plain(err)
    assert invoke("validate", clone / package.name, "--changed-since", "origin/main")[0] == 0


def test_a_shallow_clone_is_told_how_to_fetch(package, tmp_path):
    commit(package)
    clone = tmp_path / "shallow"
    address = package.parent.as_uri()
    git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=edit", address, str(clone))
    for revision in ("origin/main", "HEAD~1"):
        code, out, err = invoke("validate", clone / package.name, "--changed-since", revision)
        assert (code, out) == (3, "") and "shallow" in plain(err) and "fetch-depth: 0" in err
    git(clone, "fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main")
    git(clone, "fetch", "--quiet", "--unshallow", "origin")
    assert invoke("validate", clone / package.name, "--changed-since", "origin/main")[0] == 0


def test_histories_without_a_common_commit(package):
    git(package, "switch", "--quiet", "--orphan", "other")
    one_cell(package)
    commit(package, "another beginning")
    with pytest.raises(InputError, match="no commit in common"):
        since(package)


def test_no_repository_and_no_commit_leave_with_2(package_copy):
    code, out, err = invoke("validate", package_copy, "--changed-since", "main")
    assert (code, out) == (2, "") and "git repository" in plain(err) and "mend:" in err
    repository(package_copy)
    code, out, err = invoke("validate", package_copy, "--changed-since", "main")
    assert (code, out) == (2, "") and "no commit yet" in plain(err)
    with pytest.raises(InputError):
        since(ROOT / "nowhere")


def test_no_git_leaves_with_3(package, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = invoke("validate", package, "--changed-since", "main")
    assert (code, out) == (3, "") and "git is not installed" in plain(err)


def test_a_repository_of_somebody_else_is_told_with_the_mend(package, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr("regatta_tools.validation.changes._KEPT", ("GIT_",))
    with pytest.raises(EnvironmentProblem) as caught:
        since(package)
    assert "another user" in caught.value.message and "safe.directory" in caught.value.mend


def test_a_damaged_repository_leaves_with_3(package):
    objects = package.parent / ".git/objects"
    tree = git(package, "rev-parse", "main^{tree}").strip()
    (objects / tree[:2] / tree[2:]).unlink()
    code, out, err = invoke("validate", package, "--changed-since", "main")
    assert (code, out) == (3, "") and "git " in plain(err)


# The lines of a change


@settings(max_examples=20)
@given(
    old=st.lists(st.sampled_from(["a", "b", "c", "", "@@ -1 +1 @@", "+x", "-x"]), max_size=9),
    new=st.lists(st.sampled_from(["a", "b", "c", "", "@@ -1 +1 @@", "+x", "-x"]), max_size=9),
    ends=st.tuples(st.booleans(), st.booleans()),
)
def test_lines_that_are_not_touched_were_there_in_the_same_order(tmp_path_factory, old, new, ends):
    top = tmp_path_factory.mktemp("lines")
    repository(top)
    path = top / "đ ‘x’.yaml"
    path.write_text("\n".join(old) + "\n" * ends[0], encoding="utf-8")
    commit(top)
    path.write_text("\n".join(new) + "\n" * ends[1], encoding="utf-8")
    before, after = (
        text.splitlines(keepends=True) for text in ("\n".join(old) + "\n" * ends[0], path.read_text("utf-8"))
    )
    touched = _Git(top).changed_lines("HEAD", [path.name])
    if before == after:
        assert touched == {}
        return
    assert set(touched) == {path.name}
    untouched = [
        line for number, line in enumerate(after, 1) if not any(number in lines for lines in touched[path.name])
    ]
    rest = iter(before)
    assert all(line in rest for line in untouched)
    if not before:
        assert untouched == []


@given(st.integers(1, 9999), st.integers(1, 9999), st.integers(1, 99))
def test_a_finding_is_the_same_wherever_its_line_is(one, other, column):
    for message in (
        "id 'x' is already at instruments/a.csv:{}", "text follows the cell begun at {}:7",
        "byte {} (0xe9) is not UTF-8",
        "scenarios.{}.turns: it is empty", "scenario 'x' is already number {}",
    ):  # fmt: skip
        findings = [
            Finding("K001", "error", "a.csv", line, column, "x", message.format(line), "m") for line in (one, other)
        ]
        assert len({identity(f) for f in findings}) == 1
    # Numbers that are what the finding is about stay.
    left, right = (Finding("F002", "error", "a.csv", 1, 1, "x", f"does not mention {n}", "m") for n in (one, other))
    assert (identity(left) == identity(right)) == (one == other)
