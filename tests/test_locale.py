"""Nothing depends on the locale or on the way a system writes paths.

`make test` runs the tests that read, write and speak a second time under the C locale, in which Python takes every
file for ASCII unless it is told otherwise (see Makefile). What is here holds the sources to it: who opens a text names
its encoding, and whoever shows a path below the package writes forward slashes.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from helpers import Sheet, on_disk

SOURCES = [p for folder in ("regatta_tools", "tests", "bench") for p in sorted((ROOT / folder).rglob("*.py"))]
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

# Calls that open a text, and at which place of their arguments a mode may stand; -1 where there is none.
OPENERS = {"open": 1, "fdopen": 1, "read_text": -1, "write_text": -1, "TextIOWrapper": -1, "NamedTemporaryFile": 0,
           "TemporaryFile": 0, "run": -1, "Popen": -1, "check_output": -1, "check_call": -1}  # fmt: skip
PROCESSES = {"run", "Popen", "check_output", "check_call"}
# Of these modules "open" is another function, or one that opens no text.
OTHERS = {"os", "zipfile", "tarfile", "archive", "webbrowser", "subprocess"}


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    """Every call with its name and the name of what it is called on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            value = getattr(node.func, "value", None)
            owner = getattr(value, "id", getattr(value, "attr", ""))
            yield node, getattr(node.func, "attr", getattr(node.func, "id", "")), owner


def without_encoding(source: str) -> list[int]:
    """The lines on which a text is opened in whatever encoding the locale has."""
    found = []
    for node, name, owner in calls(ast.parse(source)):
        keywords = {k.arg: k.value for k in node.keywords}
        if name not in OPENERS or "encoding" in keywords or None in keywords:
            continue
        if name in PROCESSES:
            speaks = any(
                isinstance(keywords.get(k), ast.Constant) and keywords[k].value for k in ("text", "universal_newlines")
            )
            if owner == "subprocess" and speaks:
                found.append(node.lineno)
            continue
        if owner in OTHERS and name != "fdopen":
            continue
        at = OPENERS[name]
        if name == "open" and isinstance(node.func, ast.Attribute) and owner != "io":
            at = 0  # Path.open(mode)
        modes = [keywords.get("mode"), *(node.args[at : at + 1] if at >= 0 else [])]
        mode = next((m.value for m in modes if isinstance(m, ast.Constant)), "w+b" if "Temporary" in name else "r")
        if name in ("read_text", "write_text"):
            # read_text(encoding) and write_text(data, encoding) take it by its place too.
            if len(node.args) > (name == "write_text") or not isinstance(node.func, ast.Attribute):
                continue
            mode = "r"
        if "b" not in str(mode):
            found.append(node.lineno)
    return found


def test_the_check_of_encodings_sees_what_it_has_to_see():
    missing = [
        "open(p)", "open(p, 'w')", "p.open()", "p.open('a')", "p.read_text()", "p.write_text(t)", "os.fdopen(f, 'w')",
        "io.TextIOWrapper(b)", "subprocess.run(c, text=True)", "tempfile.NamedTemporaryFile('w')", "io.open(p)",
    ]  # fmt: skip
    right = [
        "open(p, 'rb')", "open(p, encoding='utf-8')", "p.open('wb')", "p.read_text('utf-8')",
        "p.write_text(t, 'utf-8')",
        "p.read_bytes()", "subprocess.run(c)", "subprocess.run(c, text=True, encoding='utf-8')", "os.open(p, 0)",
        "tempfile.NamedTemporaryFile()", "archive.open(n)", "open(p, **options)", "os.fdopen(f, 'wb')",
    ]  # fmt: skip
    assert [code for code in missing if not without_encoding(code)] == []
    assert [code for code in right if without_encoding(code)] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_who_opens_a_text_names_its_encoding(path):
    lines = without_encoding(path.read_text(encoding="utf-8"))
    assert not lines, f"name the encoding on lines {lines}"


def shown_natively(source: str) -> list[int]:
    """The lines on which a path below a folder is not turned into one with forward slashes at once."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            names = {name for _, name, _ in calls(node)}
            if "relative_to" in names and "as_posix" not in names:
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "regatta_tools").rglob("*.py")), ids=lambda path: path.name)
def test_a_path_below_a_folder_is_written_with_forward_slashes(path):
    source = path.read_text(encoding="utf-8")
    if path.name == "demo.py":
        return  # prints a command for the shell of this system
    assert shown_natively(source) == []
    assert "os.sep" not in source and "os.altsep" not in source


def test_the_check_of_paths_sees_what_it_has_to_see():
    assert shown_natively("str(p.relative_to(root))") == [1] and shown_natively("p.relative_to(root).as_posix()") == []


# Every command says the same under another locale, byte for byte


@pytest.fixture
def spoilt(package_copy: Path) -> Path:
    """A package with an error about Vietnamese text, in a folder with a Vietnamese name."""
    sheet = Sheet(package_copy, "faults")
    sheet.set(0, severity="rất cao")
    sheet.save()
    root = package_copy.parent / on_disk("gói dữ liệu")
    package_copy.rename(root)
    return root


def regatta(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own, under no locale but the one that is given."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON", "COLUMNS"))}
    return subprocess.run(
        [sys.executable, "-c", "from regatta_tools.cli.main import main; main()", *words],
        capture_output=True, cwd=cwd, env=kept | {"PYTHONPATH": str(ROOT)} | environment, timeout=120,
    )  # fmt: skip


SAID = {
    "validate": ["validate"],
    "validate as json": ["validate", "--format", "json"],
    "fmt": ["fmt", "--check"],
    "explain": ["explain", "R009"],
    "query": ["query", "cell-overview", "--format", "csv", "--package", str(ROOT)],
    "export": ["export", "--cell", "insurance-vn", "--package", str(ROOT)],
    "a suite": ["validate", on_disk("bộ thử.yaml")],
    "no such suite": ["validate", on_disk("thiếu.yaml")],
}


@pytest.mark.parametrize("name", SAID)
def test_every_command_says_the_same_in_every_locale(spoilt, name):
    (spoilt / on_disk("bộ thử.yaml")).write_text("id: x\nscenarios: []\n", encoding="utf-8")
    ascii_only = {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}
    locales = [{"LC_ALL": "C.UTF-8"}, C_LOCALE, {"PYTHONIOENCODING": "cp1252"}, ascii_only]
    done = [regatta(*SAID[name], cwd=spoilt, **locale) for locale in locales]
    first = done[0]
    assert first.stdout or first.stderr
    for other in done[1:]:
        assert (other.returncode, other.stdout, other.stderr) == (first.returncode, first.stdout, first.stderr)
    assert b"\\udc" not in first.stdout + first.stderr and b"E399" not in first.stderr
    if name not in ("fmt", "query"):
        assert not (first.stdout + first.stderr).decode("utf-8").isascii(), "there is something to get wrong"
