"""`regatta validate` and `regatta explain` as a person or a pipeline meets them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import ROOT, redescribe
from helpers import Sheet, on_disk

from regatta_tools.cli import main as main_module
from regatta_tools.cli.explain import explain
from regatta_tools.report.findings import as_text
from regatta_tools.rules.findings import Finding, Report
from regatta_tools.rules.registry import rules

KEYS = ["code", "severity", "file", "line", "column", "record", "message", "mend"]
SUITE = "id: x\nscenarios:\n  - id: a\n    turns:\n      - {speaker: user, text: Hello}\n"
HEAVY = {
    "litellm",
    "linkml",
    "linkml_runtime",
    "pandas",
    "frictionless",
    "scipy",
    "rdflib",
    "numpy",
    "pyoxigraph",
    "pydantic",
}


def regatta(*arguments: object, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    keep = {
        k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LC_ALL", "LANG", "PYTHONUTF8", "PYTHONIOENCODING")
    }
    return subprocess.run(
        [sys.executable, "-c", "from regatta_tools.cli.main import main; main()", *map(str, arguments)],
        capture_output=True, cwd=cwd, env=keep | {"PYTHONPATH": str(ROOT)} | environment, timeout=60,
    )  # fmt: skip


def invoke(*arguments: object) -> tuple[int, str, str]:
    """Run the command in this process, through the same entry. Returns exit code, output and errors."""

    def entry():
        main_module.main([str(a) for a in arguments])

    import click

    result = CliRunner().invoke(click.Command("regatta", callback=entry), [])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def plain(stderr: str | bytes) -> str:
    """What was said on standard error: some short lines, and no traceback."""
    text = stderr.decode("utf-8") if isinstance(stderr, bytes) else stderr
    assert "Traceback" not in text and "E399" not in text, text
    return text


@pytest.fixture
def spoilt(package_copy: Path) -> Path:
    """A package with two errors and a warning, one of them about Vietnamese text."""
    sheet = Sheet(package_copy, "faults")
    sheet.set(0, severity="rất cao")
    sheet.save()
    sheet = Sheet(package_copy, "requirements")
    sheet.set("insurance-us-r25", status="retired")
    sheet.set("insurance-us-r01", duty_vi="Trong 15 ngày")
    sheet.save()
    return package_copy


# The package


def test_a_clean_package_leaves_with_0():
    done = regatta("validate", ROOT)
    assert (done.returncode, plain(done.stderr)) == (0, "")
    assert re.fullmatch(r"\d+ files, \d+ records: clean\n", done.stdout.decode())
    code, out, _ = invoke("validate", "--format", "json", ROOT)
    report = json.loads(out)
    assert code == 0 and list(report) == ["ok", "files", "records", "findings", "waived"]
    assert report["ok"] is True and report["findings"] == [] and report["files"] > 5 and report["records"] > 200


def test_errors_leave_with_1_in_both_forms(spoilt):
    code, out, err = invoke("validate", spoilt, "--format", "json")
    report = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert (code, plain(err), report["ok"]) == (1, "", False)
    assert [f["code"] for f in report["findings"]] == ["P007", "S003", "L001"]
    for finding in report["findings"]:
        assert list(finding) == KEYS
        assert finding["severity"] in ("error", "warning", "info")
        assert all(isinstance(finding[k], str) and finding[k] for k in ("file", "message", "mend", "record"))
        assert isinstance(finding["line"], int) and finding["line"] > 0 and finding["column"] > 0
        assert "\\" not in finding["file"] and not finding["file"].startswith("/")
    code, out, err = invoke("validate", spoilt)
    assert (code, plain(err)) == (1, "")
    for finding in report["findings"]:
        place = f"{finding['file']}:{finding['line']}:{finding['column']}: {finding['severity']} {finding['code']}: "
        assert place + finding["message"] in out and finding["mend"] in out
    assert "2 errors, 1 warning" in out


def test_a_warning_alone_leaves_with_0(package_copy):
    sheet = Sheet(package_copy, "requirements")
    sheet.set("insurance-us-r25", status="retired")
    sheet.save()
    code, out, _ = invoke("validate", package_copy)
    assert code == 0 and "0 errors, 1 warning" in out
    code, out, _ = invoke("validate", package_copy, "--format", "json")
    assert code == 0 and json.loads(out)["ok"] is True


@pytest.mark.parametrize("form", ["folder", "descriptor", "nothing"])
def test_a_package_is_named_by_its_folder_or_its_descriptor_or_where_one_stands(spoilt, monkeypatch, form):
    arguments = {"folder": [spoilt], "descriptor": [spoilt / "datapackage.json"], "nothing": []}[form]
    if form == "nothing":
        monkeypatch.chdir(spoilt)
    code, out, _ = invoke("validate", *arguments)
    assert code == 1 and "S003" in out


def test_the_date_moves_the_check(package_copy):
    code, out, _ = invoke("validate", package_copy, "--as-of", "1990-01-01")
    assert code == 1 and "on 1990-01-01" in out


# Unusable input


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "no such file or folder"), (["nowhere.yaml"], "no such file"), (["x" * 5000], "too long"), ([""],
        "no such file"),
        (["empty"], "no datapackage.json"), (["notes.txt"], "neither a package nor a suite"), (["table.csv"],
        "with its package"),
        (["broken"], "descriptor cannot be read"), (["none"], "lists no resources"), (["--as-of", "soon"],
        "is not a date"),
        (["--as-of", "20261130"], "is not a date"), (["--format", "xml"], "xml"), (["--nothing"], "--nothing"),
        (["a", "b"], "b"),
    ],
)  # fmt: skip
def test_unusable_input_leaves_with_2_and_says_why(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "broken", "none"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken/datapackage.json").write_text("{", encoding="utf-8")
    (tmp_path / "none/datapackage.json").write_text("{}", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    (tmp_path / "table.csv").write_text("id\n", encoding="utf-8")
    code, out, err = invoke("validate", *arguments)
    assert (code, out) == (2, "")
    assert says in plain(err) and len(plain(err).splitlines()) <= 5


def test_a_broken_rule_leaves_with_3(package_copy, tmp_path, monkeypatch):
    from regatta_tools.rules import registry

    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/X001-x.yaml").write_text("code: X001\n", encoding="utf-8")
    monkeypatch.setattr(registry.paths, "validators_dir", lambda: tmp_path / "rules")
    registry.rules.cache_clear()
    try:
        code, out, err = invoke("validate", package_copy)
    finally:
        registry.rules.cache_clear()
    assert (code, out) == (3, "") and "X001-x.yaml" in plain(err)


BAD = {
    "a missing file": lambda text: None,
    "wrong encoding": lambda text: text.encode("utf-16"),
    "one odd byte": lambda text: text.encode("utf-8")[:-1] + b"\xe9\n",
    "semicolons": lambda text: text.replace(",", ";").encode("utf-8"),
    "an unclosed quote": lambda text: text.encode("utf-8") + b'x,"\n',
    "a duplicate id": lambda text: (text + text.splitlines(keepends=True)[1]).encode("utf-8"),
    "a dangling reference": lambda text: text.replace(",insurance-us-r01,", ",insurance-us-r99,", 1).encode("utf-8"),
    "an unknown value": lambda text: text.replace(",basis,", ",Basis,", 1).encode("utf-8"),
    "no header": lambda text: "".join(text.splitlines(keepends=True)[1:]).encode("utf-8"),
    "nothing": lambda text: b"",
}
CODES = {
    "a missing file": {"R001"}, "wrong encoding": {"R002"}, "one odd byte": {"R002"}, "semicolons": {"R004"},
    "an unclosed quote": {"R005"},
    "a duplicate id": {"K001"}, "a dangling reference": {"K003", "B001", "F004"}, "an unknown value": {"S003", "B001"},
    "no header": {"R003"},
    "nothing": {"R012"},
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_findings_and_never_a_traceback(package_copy, name):
    path = package_copy / "instruments/insurance-us/citations.csv"
    content = BAD[name](path.read_text(encoding="utf-8"))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
        if CODES[name] & {"K001", "K003", "S003"}:
            redescribe(package_copy)
    code, out, err = invoke("validate", package_copy, "--format", "json")
    assert (code, plain(err)) == (1, "")
    report = json.loads(out)
    assert {f["code"] for f in report["findings"]} == CODES[name]
    main = [f for f in report["findings"] if f["code"] == min(CODES[name], key=lambda c: "RKSBF".index(c[0]))]
    assert len(main) == 1 and main[0]["file"] == "instruments/insurance-us/citations.csv"


def test_a_byte_order_mark_is_no_error(package_copy):
    for path in package_copy.rglob("*.csv"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    redescribe(package_copy)
    code, out, _ = invoke("validate", package_copy)
    assert code == 0 and "clean" in out


# Suites


@pytest.mark.parametrize("name", ["suite.yaml", "suite.yml", "SUITE.YAML", "bộ thử.yaml"])
def test_a_suite_is_checked_by_its_ending(tmp_path, name):
    path = tmp_path / on_disk(name)
    path.write_text(SUITE, encoding="utf-8")
    assert invoke("validate", path)[:2] == (0, "1 file, 1 record: clean\n")
    path.write_text(SUITE.replace("user", "User"), encoding="utf-8")
    code, out, _ = invoke("validate", path)
    assert code == 1 and f"{tmp_path}/{name}:5:19: error U002" in out


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"id: x\nscenarios: []\n", b"\xff\xfe", b"a: [", b"\x00", b"[" * 10_000, b"a: &a [*a]"]
)
def test_a_bad_suite_leaves_with_1(tmp_path, content):
    for name in ("suite.yaml", "suite.json"):
        (tmp_path / name).write_bytes(content)
        code, out, err = invoke("validate", tmp_path / name, "--format", "json")
        assert (code, plain(err)) == (1, "")
        report = json.loads(out)
        assert report["ok"] is False and report["files"] == 1 and report["findings"][0]["code"].startswith("U")


# Terminals and pipes


def test_a_narrow_terminal_cuts_nothing(spoilt):
    wide, narrow = regatta("validate", spoilt), regatta("validate", spoilt, COLUMNS="20", TERM="dumb")
    assert wide.stdout == narrow.stdout and (wide.returncode, narrow.returncode) == (1, 1)


def test_a_c_locale_keeps_vietnamese(spoilt):
    for form in ("text", "json"):
        done = regatta("validate", spoilt, "--format", form, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        assert done.returncode == 1
        assert "'rất cao'" in done.stdout.decode("utf-8")
        plain(done.stderr)


@pytest.mark.parametrize("lines", [1, 0])
def test_a_reader_that_has_enough_gets_no_traceback(package_copy, lines):
    # Far more than a pipe holds, so that the writer meets the closed end.
    sheet = Sheet(package_copy, "facts")
    for row in range(len(sheet.rows)):
        sheet.set(row, **{c: "x" * 300 for c in sheet.header if c not in ("id", "cell")})
    sheet.save()
    main = f"{sys.executable} -c 'from regatta_tools.cli.main import main; main()'"
    command = f"{main} validate {package_copy} | head -n {lines}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=ROOT, timeout=60)
    assert len(done.stdout.splitlines()) == lines and plain(done.stderr) == ""


def test_a_foreign_name_cannot_drive_the_terminal(package_copy, tmp_path):
    path = package_copy / "instruments/\x1b[31mred\nline.csv"
    path.write_text("id\n", encoding="utf-8")
    code, out, _ = invoke("validate", package_copy)
    assert code == 1 and "\x1b" not in out and "\\x1b[31mred\\nline.csv" in out
    _, out, _ = invoke("validate", package_copy, "--format", "json")
    assert json.loads(out)["findings"][0]["file"].endswith("/\x1b[31mred\nline.csv")


def test_the_text_form_has_a_line_a_finding_whatever_they_hold():
    odd = Finding("K001", "error", "a\nb", 3, 0, "r\u202e", "m\x1b]0;x\x07 Điều", "do\rit")
    text = as_text(Report((odd,), files=1, records=0))
    assert text.split("\n")[:2] == ["a\\nb:3: error K001: m\\x1b]0;x\\x07 Điều (r\\u202e)", "    mend: do\\rit"]
    assert "1 file, 0 records: 1 error, 0 warnings" in text
    assert as_text(Report((), files=2, records=1)) == "2 files, 1 record: clean"


def test_nothing_heavy_is_imported(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE, encoding="utf-8")
    code = (
        "import sys\nfrom regatta_tools.cli.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    for arguments in (
        ["validate"],
        ["validate", "--format", "json"],
        ["validate", str(tmp_path / "suite.yaml")],
        ["explain"],
        ["--help"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT, encoding="utf-8"
        )
        assert done.stdout
        assert not HEAVY & set(done.stderr.split()), arguments


# explain


def test_every_rule_is_listed_and_explained():
    runner = CliRunner()
    listed = runner.invoke(explain, []).output.splitlines()
    assert [line.split()[0] for line in listed] == list(rules())
    for code, rule in rules().items():
        for spelt in (code, code.lower()):
            output = runner.invoke(explain, [spelt]).output
            assert output.startswith(f"{code}  {rule.title}")
            # Sentences are broken to the width of the terminal; a query is not.
            said = "".join(output.split())
            for part in (rule.why, rule.mend, rule.severity, rule.since):
                assert "".join(part.split()) in said
            assert rule.query in output


@pytest.mark.parametrize("code", ["X999", "", "K", "K001 ", "Đ", "U101", "E302"])
def test_a_code_that_is_no_rule_leaves_with_2(code):
    status, out, err = invoke("explain", code)
    assert (status, out) == (2, "") and "regatta explain" in plain(err)
    if code in ("U101", "E302"):
        assert "message" in err


def test_help_names_the_exit_codes():
    code, out, _ = invoke("validate", "--help")
    assert code == 0 and re.search(r"with 0 .* with 1", " ".join(out.split()))
