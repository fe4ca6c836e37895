"""What users lean on from outside: the API, the commands, start-up, the wheel, the package as others read it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEMO = "examples/suites/insurance-us-demo.yaml"
MAIN = "from regatta_tools.cli.main import main; main()"
HEAVY = (
    "litellm", "linkml", "linkml_runtime", "pandas", "scipy", "numpy", "frictionless", "rdflib", "pyoxigraph",
    "xllamacpp",
)  # fmt: skip


def python(code: str, *, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=cwd, env=os.environ | environment, capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip


def regatta(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=cwd, env=os.environ | environment, capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip


def test_api_offers_what_it_says():
    import regatta_tools

    assert {"load", "validate", "run", "score"} <= set(regatta_tools.__all__)
    for name in ("load", "validate", "run", "score"):
        assert callable(getattr(regatta_tools, name)) and getattr(regatta_tools, name).__doc__


def test_api_functions_survive_their_own_use():
    """A subpackage of the same name would replace the function when it is first imported."""
    done = python(
        """
        import regatta_tools as r
        report = r.validate()
        package = r.load()
        assert callable(r.validate) and callable(r.load) and callable(r.run) and callable(r.score)
        print(report.ok, sorted({len(package.cell(c.key).requirements) for c in package.table("cells")}))
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "[25]"]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["validate"], ["explain", "B002"], ["run", "--help"]])
def test_start_up_imports_nothing_heavy(words):
    done = python(
        f"""
        import sys
        from regatta_tools.cli.main import main
        try:
            main({words!r})
        except SystemExit as leave:
            code = leave.code
        print("\\nHEAVY", [m for m in {HEAVY!r} if m in sys.modules], code)
        """
    )
    assert done.stdout.splitlines()[-1] == "HEAVY [] 0", done.stdout + done.stderr


def test_every_command_is_documented():
    import click

    from regatta_tools.cli.main import cli

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, command in cli.commands.items():
        assert f"regatta {name}" in readme, f"README.md does not mention `regatta {name}`"
        assert command.help
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"{name} {option.name} has no help"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["validate", "no/such/folder"], 2),
        (["validate", "--format", "yaml"], 2),
        (["validate", "--as-of", "tomorrow"], 2),
        (["nonsense"], 2),
        (["explain", "Z999"], 2),
        (["score", "no/such/run"], 2),
        (["run", "no/such/suite.yaml", "--cell", "insurance-us"], 2),
        (["run", DEMO, "--cell", "no-such-cell"], 2),
        (["run", DEMO, "--cell", "insurance-us", "--judge", "no-such-model"], 2),
        (["run", DEMO, "--cell", "insurance-us", "--agent", "embedded:no/such.gguf"], 3),
    ],
)
def test_misuse_is_told_in_a_few_lines(words, code, tmp_path):
    out = ["--out", str(tmp_path / "run")] if words[0] == "run" else []
    done = regatta(*words, *out)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert 0 < len(done.stderr.strip().splitlines()) <= 8, done.stderr
    assert not (tmp_path / "run").exists(), "unusable input must leave nothing behind"


def test_a_c_locale_prints_vietnamese(tmp_path):
    bad = tmp_path / "suite.yaml"
    bad.write_text("Điều khoản: 1\nscenarios: []\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "validate", str(bad), "--format", "json"],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout.decode("utf-8"))["ok"] is False


def test_frictionless_accepts_the_package():
    """The second opinion: another project's reading of datapackage.json and every table."""
    import frictionless

    report = frictionless.validate(str(ROOT / "datapackage.json"))
    assert report.valid, report.flatten(["type", "message"])
    assert len(report.tasks) == len(json.loads((ROOT / "datapackage.json").read_text(encoding="utf-8"))["resources"])


def test_frictionless_can_refuse_the_package(tmp_path):
    """A second opinion that accepts everything would be none."""
    import shutil

    import frictionless

    shutil.copytree(ROOT / "instruments", tmp_path / "instruments")
    shutil.copy(ROOT / "datapackage.json", tmp_path)
    target = tmp_path / "instruments" / "insurance-us" / "requirements.csv"
    target.write_text(target.read_text(encoding="utf-8").replace(",active,", ",sleeping,", 1), encoding="utf-8")
    assert not frictionless.validate(str(tmp_path / "datapackage.json")).valid


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The built wheel, unpacked in an empty folder away from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_finds_what_the_checkout_finds(wheel, tmp_path):
    done = python(
        """
        import regatta_tools, json
        from regatta_tools import paths
        report = regatta_tools.validate()
        print(json.dumps([regatta_tools.__file__, str(paths.root()), report.ok, report.records]))
        """,
        cwd=tmp_path,
        PYTHONPATH=str(wheel),
    )
    assert done.returncode == 0, done.stderr
    module, root, ok, records = json.loads(done.stdout)
    assert Path(module).is_relative_to(wheel) and Path(root).is_relative_to(wheel)
    import regatta_tools

    assert (ok, records) == (True, regatta_tools.validate(ROOT).records)


def test_the_wheel_carries_no_more_than_it_should(wheel):
    names = {p.relative_to(wheel).as_posix() for p in wheel.rglob("*") if p.is_file()}
    assert "regatta_tools/_data/schema/regatta.yaml" in names
    assert "regatta_tools/_data/validators/B002-basis-not-binding.yaml" in names
    assert not [n for n in names if n.startswith(("tests/", "docs/", "bench/", "schema/")) or "__pycache__" in n]


LISTING = ["git", "ls-files", "-co", "--exclude-standard"]
TRACKED = subprocess.run(
    LISTING, cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8"
).stdout.split()


@pytest.mark.skipif(not TRACKED, reason="no git checkout")
def test_nothing_names_a_registry_or_a_machine():
    """What a commit must not hold: package registries' hosts and paths of the machine that wrote it."""
    hosts = r"pypi\.(org|python)|files\.pythonhosted|registry\.npmjs|deb\.debian"
    banned = re.compile(hosts + r"|/(home|root|work|Users)/[a-z]")
    found = []
    for name in TRACKED:
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png",) and path != Path(__file__).resolve():
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if banned.search(line):
                    found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


def test_measures_never_import_models():
    done = python(
        """
        import sys
        import regatta_tools.measures.evidence, regatta_tools.measures.agreement
        print([m for m in sys.modules if m.startswith("regatta_tools.llm") or m == "litellm"])
        """
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_nothing_imports_the_command_line():
    for path in (ROOT / "regatta_tools").rglob("*.py"):
        if "cli" not in path.parts and path.name != "demo.py":
            assert "regatta_tools.cli" not in path.read_text(encoding="utf-8"), path


def test_judging_rules_and_ontology_context_are_apart():
    """No generator is handed the answer sheet: no table of one side can point into the other (protocol, section 2)."""
    from regatta_tools.tables.model import load_model

    classes = load_model()["classes"]
    context = {name for name, cls in classes.items() if cls.get("scope") == "context"}
    judging = {name for name, cls in classes.items() if cls.get("scope") == "cell"}
    assert context and judging
    for name in context | judging:
        other = judging if name in context else context
        for field in classes[name]["fields"]:
            assert field.get("ref") not in other, f"{name}.{field['name']} points into the other side"


def test_a_prompt_of_a_judge_reads_no_context(tmp_path):
    """Context tables change neither the hash of a cell nor what its judges are shown."""
    import shutil

    from regatta_tools.harness.run import fault_slots, requirement_block
    from regatta_tools.tables.descriptor import build
    from regatta_tools.tables.model import load_model
    from regatta_tools.tables.package import read

    shutil.copytree(ROOT / "instruments", tmp_path / "instruments")
    folder = tmp_path / "instruments" / "insurance-us" / "context"
    folder.mkdir(exist_ok=True)
    columns = [f["name"] for f in load_model()["classes"]["Role"]["fields"]]
    row = {
        "id": "insurance-us-role-planted",
        "cell": "insurance-us",
        "name_en": "PLANTED",
        "goals_en": "PLANTED",
        "limits_en": "PLANTED",
    }
    lines = [",".join(columns), ",".join(row.get(c, "") for c in columns)]
    (folder / "roles.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "datapackage.json").write_text(json.dumps(build(tmp_path), ensure_ascii=False), encoding="utf-8")
    planted, plain = read(tmp_path).cell("insurance-us"), read(ROOT).cell("insurance-us")
    assert [r["goals_en"] for r in planted.package.cell_records("roles", "insurance-us")] == ["PLANTED"]
    assert planted.hash == plain.hash
    shown = [requirement_block(r) for r in planted.requirements]
    shown += [json.dumps(fault_slots(planted, f)) for f in planted.faults]
    assert shown and not [text for text in shown if "PLANTED" in text]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_the_output_is_no_defect_of_ours():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "validate"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            encoding="utf-8",
        )
    assert done.returncode == 3 and "cannot be written" in done.stderr and "defect" not in done.stderr


def test_all_five_cells_are_whole_and_clean():
    import regatta_tools

    report = regatta_tools.validate(ROOT)
    assert report.ok and not report.findings
    package = regatta_tools.load(ROOT)
    cells = {c.key: package.cell(c.key) for c in package.table("cells")}
    assert sorted(cells) == ["banking-vn", "fintech-us", "healthcare-us", "insurance-us", "insurance-vn"]
    for cell in cells.values():
        assert len(cell.requirements) == 25 and len({f["class"] for f in cell.faults}) == len(cell.faults) == 5
        if cell.record["languages"] == "vi-en":
            assert all(r["duty_vi"] for r in cell.requirements) and all(f["injection_vi"] for f in cell.faults)


def test_another_date_shows_what_changes():
    """The credit limits of banking-vn change at the end of 2026; no other basis of the five cells does then."""
    import regatta_tools

    found = regatta_tools.validate(ROOT, as_of="2027-01-01").findings
    assert [(f.code, f.record) for f in found] == [("T003", "banking-vn-r01-c1")]
