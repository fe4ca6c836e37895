"""The hooks and the action that the project ships: their own words are executed, as far as that needs no network."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, one_cell
from helpers import Sheet
from test_changes import commit, git, own_git, repository  # noqa: F401  # own_git: git as on a fresh machine

import regatta_tools
from regatta_tools.documents import parse

ACTION = ROOT / ".github/actions/validate/action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
PAGE = ROOT / "docs/ci.md"
FACTS = "instruments/insurance-us/facts.csv"


def yaml(path: Path) -> Any:
    return parse(path.read_text(encoding="utf-8")).value


def blocks(language: str) -> list[Any]:
    """The code blocks of the docs page in one language, parsed."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return [parse(text).value for text in found]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with a `regatta` that is this checkout's, as an installation has it."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    script = f"#!{sys.executable}\nfrom regatta_tools.cli.main import main\nmain()\n"
    (folder / "regatta").write_text(script, encoding="utf-8")
    (folder / "regatta").chmod(0o755)
    return folder


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in the folder ``gói`` of a repository, with an edited deadline on a branch."""
    top = repository(tmp_path / "kho")
    root = top / "gói"
    root.mkdir()
    one_cell(root)
    commit(top)
    git(top, "switch", "--quiet", "--create", "edit")
    sheet = Sheet(root, "facts")
    row = next(i for i, r in enumerate(sheet.rows) if r[sheet.header.index("kind")] == "duration")
    sheet.set(row, value="987")
    sheet.save()
    commit(top)
    return root


def environment(programs: Path, **more: str) -> dict[str, str]:
    return os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)} | more


# The action


def steps() -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in yaml(ACTION)["runs"]["steps"]}


def run_step(
    name: str, folder: Path, env: dict[str, str], inputs: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """Run the script of a step as GitHub does: bash, expressions filled in by the ``env`` of the step alone."""
    step = steps()[name]
    filled = {}
    for key, text in step.get("env", {}).items():
        expression = re.fullmatch(r"\$\{\{ ([\w.-]+) \}\}", text)[1]
        filled[key] = inputs[expression]
    assert step["shell"] == "bash"
    script = folder.parent / f"{name}.sh"
    script.write_text(step["run"], encoding="utf-8")
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder, env=env | filled, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def inputs_of(programs: Path, **given: str) -> dict[str, str]:
    values = {f"inputs.{name}": spec["default"] for name, spec in yaml(ACTION)["inputs"].items()}
    values |= {f"inputs.{name.replace('_', '-')}": value for name, value in given.items()}
    return values | {"steps.install.outputs.regatta": str(programs / "regatta")}


def test_the_action_is_of_the_form_of_composite_actions():
    action = yaml(ACTION)
    assert set(action) == {"name", "description", "inputs", "runs"} and action["runs"]["using"] == "composite"
    assert set(action["inputs"]) == {"path", "changed-since", "format", "output", "python-version"}
    for spec in action["inputs"].values():
        assert set(spec) == {"description", "default"} and isinstance(spec["default"], str) and spec["description"]
    for step in action["runs"]["steps"]:
        assert ("run" in step) == ("shell" in step) != ("uses" in step)
    # An expression in a script is pasted text, which whoever opens a pull request could write.
    assert all("${{" not in step.get("run", "") for step in action["runs"]["steps"])
    known = {f"inputs.{name}" for name in action["inputs"]}
    used = set(re.findall(r"inputs\.[\w-]+", json.dumps(action["runs"])))
    assert used == known


def test_the_action_annotates_the_line_of_a_pull_request(package, programs):
    top = package.parent
    line = 1 + next(
        i for i, row in enumerate((package / FACTS).read_text(encoding="utf-8").split("\n")) if ",987," in row
    )
    inputs = inputs_of(programs, path="gói", changed_since="main")
    done = run_step("validate", top, environment(programs), inputs)
    out = done.stdout.decode("utf-8")
    assert done.returncode == 1 and done.stderr == b""
    assert f"::error file=gói/{FACTS},line={line},col=" in out and "since main" in out
    done = run_step("validate", top, environment(programs), inputs | {"inputs.changed-since": "edit"})
    assert done.returncode == 0 and b"nothing new since edit" in done.stdout
    inputs = inputs_of(programs, path="gói", format="junit", output="tin.xml")
    done = run_step("validate", top, environment(programs), inputs)
    assert done.returncode == 1 and (top / "tin.xml").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["path", "changed-since", "format", "output"])
@pytest.mark.parametrize(
    "text", ["$(touch hacked)", '"; touch hacked; "', "`touch hacked`", "--help", "-o", "a b\nc", "'; touch hacked #"]
)
def test_an_input_is_never_run(package, programs, name, text):
    top = package.parent
    before = set(top.iterdir())
    inputs = inputs_of(programs, path="gói") | {f"inputs.{name}": text}
    done = run_step("validate", top, environment(programs), inputs)
    new = {p.name for p in set(top.iterdir()) - before}
    assert new <= ({text} if name == "output" else set())
    # An odd name of an output file is a name; everything else is unusable.
    assert done.returncode == (1 if name == "output" and "/" not in text else 2), done.stderr
    assert b"Usage: regatta validate [OPTIONS] [PATH]\n\n" not in done.stdout


def test_the_action_installs_from_the_lock_file_and_keeps_it(tmp_path):
    """The installation itself needs a network: here a `python` that writes down what it is asked for."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    runner = tmp_path / "runner temp"
    runner.mkdir()
    log = tmp_path / "log"
    fake = bin_ / "python"
    fake.write_text(
        f"""#!/bin/sh
printf '%s\\n' "$*" >> "{log}"
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
""",
        encoding="utf-8",
    )
    fake.chmod(0o755)
    outputs = tmp_path / "outputs"
    action_path = f"{ROOT}/.github/actions/validate"
    env = environment(bin_, RUNNER_TEMP=str(runner), GITHUB_OUTPUT=str(outputs), GITHUB_ACTION_PATH=action_path)
    done = run_step("install", bin_, env, {"steps.cache.outputs.cache-hit": ""})
    assert done.returncode == 0, done.stderr
    venv, lock, own = log.read_text(encoding="utf-8").splitlines()
    assert venv == f"-m venv {runner}/regatta"
    assert "--no-deps --require-hashes -r" in lock and (ROOT / lock.split(" -r ")[1]).samefile(
        ROOT / "requirements.lock"
    )
    assert "--no-deps --no-build-isolation" in own and Path(own.split()[-1]).samefile(ROOT)
    assert outputs.read_text(encoding="utf-8") == f"regatta={runner}/regatta/bin/regatta\n"
    log.unlink()
    assert run_step("install", bin_, env, {"steps.cache.outputs.cache-hit": "true"}).returncode == 0
    assert log.read_text(encoding="utf-8").splitlines() == [own]


def test_the_cache_goes_by_the_lock_file(tmp_path):
    import hashlib

    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "python").symlink_to(sys.executable)
    outputs = tmp_path / "outputs"
    action_path = f"{ROOT}/.github/actions/validate"
    env = environment(bin_, GITHUB_OUTPUT=str(outputs), GITHUB_ACTION_PATH=action_path)
    done = run_step("lock", bin_, env, {})
    assert done.returncode == 0, done.stderr
    digest = hashlib.sha256((ROOT / "requirements.lock").read_bytes()).hexdigest()
    assert outputs.read_text(encoding="utf-8") == f"digest={digest}\n"
    assert "steps.lock.outputs.digest" in steps()["cache"]["with"]["key"]


# Hooks


def hook(name: str) -> dict[str, Any]:
    [found] = [h for h in yaml(HOOKS) if h["id"] == name]
    return found


def run_hook(name: str, top: Path, programs: Path, args: list[str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a hook on what is staged, as pre-commit does: the entry, its arguments, the staged files that it wants."""
    spec = hook(name)
    staged = [f for f in git(top, "diff", "--staged", "--name-only", "-z", "--diff-filter=d").split("\0") if f]
    wanted = [f for f in staged if re.search(spec["files"], f)]
    assert wanted, "the hook would be skipped"
    command = [*shlex.split(spec["entry"]), *(spec.get("args", []) if args is None else args)]
    if spec.get("pass_filenames", True):
        command += wanted
    # git sets these for a hook.
    env = environment(programs, GIT_DIR=".git", GIT_INDEX_FILE=".git/index")
    return subprocess.run(command, cwd=top, env=env, capture_output=True, timeout=60, check=False)


def test_the_hooks_are_of_the_form_of_pre_commit():
    hooks = yaml(HOOKS)
    assert [h["id"] for h in hooks] == ["regatta-fmt", "regatta-validate"]
    for spec in hooks:
        assert {"id", "name", "entry", "language", "files"} <= set(spec)
        assert set(spec) <= {"id", "name", "description", "entry", "language", "files", "args", "require_serial",
                             "pass_filenames"}  # fmt: skip
        pattern = re.compile(spec["files"])
        assert pattern.search(FACTS) and pattern.search(f"gói/{FACTS}")
        assert not pattern.search("tests/instruments.csv") and not pattern.search("myinstruments/a.csv")
    assert hooks[0]["require_serial"] is True


def test_the_hook_formats_what_is_staged_and_nothing_else(package, programs):
    top = package.parent
    other = package / "instruments/insurance-us/faults.csv"
    for path in (package / FACTS, other):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(top, "-c", "core.autocrlf=false", "add", f"gói/{FACTS}")
    done = run_hook("regatta-fmt", top, programs)
    assert done.returncode == 0 and done.stderr == b"" and b"CRLF to LF" in done.stdout
    assert b"\r" not in (package / FACTS).read_bytes() and b"\r" in other.read_bytes()


def test_the_hook_checks_the_whole_package(package, programs):
    top = package.parent
    (package / FACTS).write_text((package / FACTS).read_text(encoding="utf-8") + "x\n", encoding="utf-8")
    git(top, "add", "--all")
    done = run_hook("regatta-validate", top, programs, args=["gói"])
    assert done.returncode == 1 and b"R007" in done.stdout
    # Without the name of the folder it must not fall back to another package and call that one clean.
    done = run_hook("regatta-validate", top, programs)
    assert done.returncode == 2 and b"no datapackage.json in this folder" in done.stderr


# The docs page


def test_the_docs_name_what_there_is():
    workflow, upload, gitlab, config = blocks("yaml")
    [job] = workflow["jobs"].values()
    checkout, use = job["steps"]
    assert checkout["with"]["fetch-depth"] == 0 and "pull_request" in workflow["on"]
    known = set(yaml(ACTION)["inputs"])
    assert use["uses"] == "./.github/actions/validate" and set(use["with"]) <= known
    assert set(upload[0]["with"]) <= known and upload[0]["with"]["output"] == upload[1]["with"]["sarif_file"]
    assert {h["id"] for h in config["repos"][0]["hooks"]} == {h["id"] for h in yaml(HOOKS)}
    text = PAGE.read_text(encoding="utf-8")
    assert "run: " not in text and "pull_request_target" not in text
    words = shlex.split(gitlab["regatta"]["script"][0])
    assert words[words.index("--output") + 1] == gitlab["regatta"]["artifacts"]["reports"]["junit"]


def test_the_command_of_the_gitlab_job_runs(package, programs):
    [script] = blocks("yaml")[2]["regatta"]["script"]
    base = git(package, "rev-parse", "main").strip()
    env = environment(programs, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    done = subprocess.run(["bash", "-ec", script], cwd=package, env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and b"F002" in (package / "regatta.xml").read_bytes()


def test_a_checkout_on_any_system_has_the_line_ends_that_were_hashed(tmp_path):
    found = re.search(r"^```gitattributes\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    shipped = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines(keepends=True)
    # Ours has a line more, for the examples of rules, which no other package has.
    assert "".join(line for line in shipped if line.startswith(("/instruments", "/datapackage"))) == found[1]
    top = repository(tmp_path / "package")
    one_cell(top)
    (top / ".gitattributes").write_text(found[1], encoding="utf-8")
    commit(top)
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "--quiet", str(top), "windows")
    assert regatta_tools.validate(tmp_path / "windows").ok
