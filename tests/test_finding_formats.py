"""The forms of a report: what one writes, the programs that read it must find again."""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import ROOT
from defusedxml import ElementTree
from helpers import Sheet, on_disk
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog
from test_cli_validate import invoke, plain, regatta

import regatta_tools
from regatta_tools.report.findings import WRITERS, closing
from regatta_tools.report.places import from_repository
from regatta_tools.report.sarif import as_log
from regatta_tools.rules.findings import Finding, Report, Waived
from regatta_tools.rules.registry import rules

# Everything that a cell, a file name or a rule can put into a message, and what a form could stumble over.
TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "%0A::error::x",
        "a\r\nb",
        "::",
        "a,b:c",
        "%",
        "\x00\x1b[31m",
        "]]>",
        "<a>&amp;",
        "\ud800",
        "\uffff",
        "[x](y)",
        "Đ",
    ]
)
NAMES = st.sampled_from(
    ["instruments/a.csv", "instruments/đ ê/b c.csv", "a%20b.csv", "a,b:c.csv", "#?.csv", "instruments/a.csv"]
)
CODES = st.sampled_from([*rules(), "Z999"])


@st.composite
def findings(draw):
    line = draw(st.integers(0, 50))
    return Finding(
        code=draw(CODES),
        severity=draw(st.sampled_from(["error", "warning", "info"])),
        file=draw(NAMES),
        line=line,
        column=draw(st.integers(0, 200)) if line else 0,
        record=draw(TEXTS),
        message=draw(TEXTS),
        mend=draw(TEXTS),
    )


@st.composite
def reports(draw):
    waived = st.builds(Waived, findings(), TEXTS, TEXTS, st.just("2027-01-01"))
    return Report(
        tuple(draw(st.lists(findings(), max_size=6))),
        files=draw(st.integers(0, 9)),
        records=draw(st.integers(0, 9)),
        checked=str(ROOT),
        since=draw(st.sampled_from(["", "main"])),
        older=draw(st.integers(0, 3)),
        waived=tuple(draw(st.lists(waived, max_size=3))),
    )


# GitHub


def workflow_command(line: str) -> tuple[str, dict[str, str], str] | None:
    """A line of a log as GitHub's runner reads it (ActionCommand.TryParseV2), or ``None`` for plain text."""
    line = line.lstrip()
    if not line.startswith("::") or line.find("::", 2) < 0:
        return None
    end = line.find("::", 2)
    name, _, rest = line[2:end].partition(" ")
    properties = {}
    for pair in rest.split(",") if rest else []:
        key, sign, value = pair.partition("=")
        assert sign and key not in properties
        for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            value = value.replace(escape, char)
        properties[key] = value
    data = line[end + 2 :]
    for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        data = data.replace(escape, char)
    return name, properties, data


@given(reports())
def test_the_runner_reads_every_annotation_and_no_other_command(report):
    lines = WRITERS["github"](report).split("\n")
    commands = [c for c in map(workflow_command, lines) if c]
    assert len(commands) == len(report.findings) and lines[-1] == closing(report)
    assert len(lines) == len(report.findings) + len(report.waived) + 1
    for finding, (name, properties, data) in zip(report.findings, commands, strict=True):
        assert name == {"error": "error", "warning": "warning", "info": "notice"}[finding.severity]
        wanted = {"file": finding.file}
        if finding.line:
            wanted["line"] = str(finding.line)
        if finding.column:
            wanted["col"] = str(finding.column)
        rule = rules().get(finding.code)
        assert properties == wanted | {"title": f"{finding.code}: {rule.title}" if rule else finding.code}
        assert data.startswith(finding.message) and data.endswith(f"Mend: {finding.mend}")
        assert rule is None or f"\nWhy: {rule.why}\n" in data


# SARIF


def whole(text: str) -> str:
    """Text without halves of surrogate pairs, which are no characters."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


@settings(max_examples=40)
@given(reports())
def test_sarif_is_of_its_schema_and_says_all(report):
    text = WRITERS["sarif"](report)
    log = json.loads(text)
    # The classes are generated from the official schema, and refuse unknown keys.
    SarifLog.model_validate_json(text.encode("utf-8"))
    assert log["version"] == "2.1.0" and urlsplit(log["$schema"]).scheme == "https"
    [run] = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    driver = run["tool"]["driver"]
    assert driver["version"] == regatta_tools.__version__
    assert [r["id"] for r in driver["rules"]] == list(rules())
    told = [*report.findings, *(w.finding for w in report.waived)]
    assert len(run["results"]) == len(told)
    for finding, result in zip(told, run["results"], strict=True):
        assert result["ruleId"] == finding.code
        if finding.code in rules():
            assert driver["rules"][result["ruleIndex"]]["id"] == finding.code
        else:
            assert "ruleIndex" not in result
        assert result["level"] == {"error": "error", "warning": "warning", "info": "note"}[finding.severity]
        assert all(whole(part) in result["message"]["text"] for part in (finding.message, finding.mend))
        [location] = result["locations"]
        artifact, region = (location["physicalLocation"][k] for k in ("artifactLocation", "region"))
        assert artifact["uriBaseId"] in run["originalUriBaseIds"]
        assert re.fullmatch(r"(?:[A-Za-z0-9_.~/-]|%[0-9A-F]{2})+", artifact["uri"])
        assert unquote(artifact["uri"]) == finding.file and not artifact["uri"].startswith("/")
        assert region["startLine"] == max(finding.line, 1) and region.get("startColumn", 1) >= 1
        assert region.get("startColumn", 0) == finding.column
    prints = [tuple(r["partialFingerprints"].values()) for r in run["results"]]
    assert len(set(prints)) == len(prints)
    justified = [r["suppressions"][0]["justification"] for r in run["results"] if "suppressions" in r]
    assert len(justified) == len(report.waived)
    for waived, said in zip(report.waived, justified, strict=True):
        assert all(whole(part) in said for part in (waived.reason, waived.by, waived.until))


@settings(max_examples=20)
@given(findings(), st.integers(1, 99))
def test_a_fingerprint_survives_moved_lines_and_nothing_else(finding, lines):
    def fingerprint(**changes) -> dict[str, str]:
        changed = Finding(**{**finding.as_dict(), **changes})
        log = as_log(Report((changed,), files=1, records=1, checked=str(ROOT)))
        return log["runs"][0]["results"][0]["partialFingerprints"]

    assert fingerprint(line=finding.line + lines, column=1, mend="another") == fingerprint()
    for change in ({"code": "X999"}, {"file": "other.csv"}, {"record": finding.record + "x"}, {"message": "another x"}):
        assert fingerprint(**change) != fingerprint() or next(iter(change.values())) == finding.message


def test_rules_carry_their_help():
    [run] = as_log(Report((), files=1, records=1))["runs"]
    for rule in run["tool"]["driver"]["rules"]:
        known = rules()[rule["id"]]
        assert known.why in rule["help"]["text"] and known.mend in rule["help"]["text"]
        assert rule["shortDescription"]["text"] == known.title
        # Markdown without its escapes is the text: nothing is lost, and no HTML gets through.
        assert known.mend in re.sub(r"\\([\\<\[*_])", r"\1", rule["help"]["markdown"])
        assert not re.search(r"(?<!\\)<", re.sub("`[^`]*`", "", rule["help"]["markdown"]))


# JUnit


@given(reports())
def test_junit_is_xml_with_right_counts(report):
    text = WRITERS["junit"](report)
    root = ElementTree.fromstring(text.encode("utf-8"), forbid_dtd=True)
    assert root.tag == "testsuites" and len(root) and root.get("name") == report.made_by == "regatta validate"
    cases = list(root.iter("testcase"))
    for suite in root:
        assert suite.tag == "testsuite"
        inside = list(suite)
        assert {c.tag for c in inside} == {"testcase"} and int(suite.get("tests")) == len(inside)
        assert int(suite.get("failures")) == sum(c.find("failure") is not None for c in inside)
        assert int(suite.get("skipped")) == sum(c.find("skipped") is not None for c in inside)
    assert int(root.get("tests")) == len(cases) and int(root.get("failures")) == sum(
        int(s.get("failures")) for s in root
    )
    for case in cases:
        assert case.get("classname") and case.get("name") and len(case) <= 1
    # One failure for each rule and record that has an error, named by its code, with every message in it.
    wanted = Counter(
        code for _, code, _ in {(f.file, f.code, f.record) for f in report.findings if f.severity == "error"}
    )
    failures = [c.find("failure") for c in cases if c.find("failure") is not None]
    assert Counter(f.get("type") for f in failures) == wanted
    said = " ".join(e.text or "" for c in cases for e in c)
    assert all(f"error {f.code}: " in said for f in report.findings if f.severity == "error")
    if report.findings:
        assert {s.get("name") for s in root} >= {f.file for f in report.findings}


def test_a_report_without_findings_has_one_test_that_passes():
    [suite] = ElementTree.fromstring(WRITERS["junit"](Report((), files=3, records=5)))
    [case] = suite
    assert len(case) == 0 and "3 files, 5 records: clean" in case.get("name")


# All forms


@given(reports())
def test_every_form_can_be_written_as_utf_8(report):
    for name, write in WRITERS.items():
        text = write(report)
        encoded = text.encode("utf-8", "backslashreplace")
        assert encoded and not text.endswith("\n"), name


def test_the_command_offers_what_there_is_and_the_docs_say_so():
    from regatta_tools.cli.validate import validate

    [choice] = [p.type for p in validate.params if p.name == "form"]
    assert list(choice.choices) == list(WRITERS) == ["text", "json", "github", "sarif", "junit"]
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(WRITERS)


@pytest.fixture
def spoilt(package_copy: Path) -> Path:
    sheet = Sheet(package_copy, "faults")
    sheet.set(0, severity="rất cao")
    sheet.save()
    sheet = Sheet(package_copy, "requirements")
    sheet.set("insurance-us-r25", status="retired")
    sheet.save()
    return package_copy


@pytest.mark.parametrize("form", WRITERS)
def test_exit_codes_are_the_same_for_all_forms(spoilt, form):
    assert invoke("validate", spoilt, "--format", form)[0] == 1
    assert invoke("validate", ROOT, "--format", form)[0] == 0
    assert invoke("validate", spoilt / "nowhere", "--format", form)[0] == 2


@pytest.mark.parametrize("form", WRITERS)
def test_output_goes_to_a_file_whole_or_not_at_all(spoilt, tmp_path, form):
    code, printed, _ = invoke("validate", spoilt, "--format", form)
    target = tmp_path / on_disk("bản tin.out")
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    code, out, err = invoke("validate", spoilt, "--format", form, "--output", target)
    assert (code, plain(err)) == (1, "") and target.read_text(encoding="utf-8") == printed
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert out.count("\n") == 1 and "1 error, 1 warning" in out
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["package", target.name])
    assert invoke("validate", spoilt, "--format", form, "--output", "-")[1] == printed


def test_a_file_that_cannot_be_written_leaves_with_3(spoilt, tmp_path, monkeypatch):
    for target in ("/dev/full", tmp_path / "none" / "x", tmp_path):
        code, out, err = invoke("validate", spoilt, "--format", "sarif", "--output", target)
        assert (code, out) == (3, "") and "mend:" in plain(err)
    target = tmp_path / "old"
    target.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    code, out, err = invoke("validate", spoilt, "--output", target)
    assert code == 3 and "E305" in plain(err) and target.read_text(encoding="utf-8") == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["old", "package"]


def test_a_device_is_written_to_and_stays(spoilt):
    assert invoke("validate", spoilt, "--output", os.devnull)[0] == 1
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# Places


def test_files_count_from_the_root_of_the_repository(spoilt, tmp_path, monkeypatch):
    report = regatta_tools.validate(spoilt)
    file = "instruments/insurance-us/faults.csv"
    monkeypatch.chdir(tmp_path)
    assert from_repository(report)(file) == f"package/{file}"  # no repository: from here
    monkeypatch.chdir("/")
    assert from_repository(report)(file) == f"{spoilt.as_posix().removeprefix('/')}/{file}"
    monkeypatch.chdir(ROOT)
    assert from_repository(report)(file) == f"{spoilt.as_posix()}/{file}"
    uri = as_log(report)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert "uriBaseId" not in uri and uri["uri"].startswith("file:///")
    (tmp_path / ".git").mkdir()
    assert from_repository(report)(file) == f"package/{file}"
    (spoilt / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")  # a linked working tree
    assert from_repository(report)(file) == file
    link = tmp_path / "link"
    link.symlink_to(spoilt)
    assert from_repository(regatta_tools.validate(link))(file) == file


@pytest.mark.parametrize("given_as", ["name", "up", "whole"])
def test_a_suite_counts_from_the_root_of_the_repository_too(tmp_path, monkeypatch, given_as):
    folder = tmp_path / "kho" / on_disk("bộ")
    folder.mkdir(parents=True)
    (tmp_path / "kho/.git").mkdir()
    suite = folder / "x y.yaml"
    suite.write_text("id: x\nscenarios: []\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    path = {"name": "x y.yaml", "up": on_disk("../bộ/x y.yaml"), "whole": str(suite)}[given_as]
    code, out, _ = invoke("validate", path, "--format", "github")
    command = workflow_command(out.split("\n")[0])
    assert code == 1 and command[0] == "error"
    assert command[1]["file"] == "bộ/x y.yaml" and command[1]["line"] == "2"
    code, out, _ = invoke("validate", path, "--format", "sarif")
    place = json.loads(out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert code == 1 and place["artifactLocation"]["uri"] == "b%E1%BB%99/x%20y.yaml"


@pytest.mark.parametrize("form", WRITERS)
def test_a_c_locale_changes_nothing(spoilt, tmp_path, form):
    (tmp_path / ".git").mkdir()
    folder = tmp_path / on_disk("gói")
    spoilt.rename(folder)
    done = [
        regatta("validate", folder, "--format", form, cwd=tmp_path, **environment)
        for environment in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"})
    ]
    assert [d.returncode for d in done] == [1, 1] and done[0].stdout == done[1].stdout
    assert "rất cao" in done[0].stdout.decode("utf-8")
    if form in ("github", "junit"):
        assert "gói/instruments/insurance-us/faults.csv" in done[0].stdout.decode("utf-8")
