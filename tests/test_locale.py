"""Nothing depends on the locale or on the way a system writes paths.

`make test` runs the tests that read, write and speak a second time under the C locale, in which Python takes every
file for ASCII unless it is told otherwise (see Makefile). What is here holds the sources to it: who opens a text names
its encoding, and whoever shows a path below the package writes forward slashes.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, redescribe
from helpers import Sheet

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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_who_opens_a_text_names_its_encoding(path):
    lines = without_encoding(path.read_text(encoding="utf-8"))
    assert not lines, f"name the encoding on lines {lines}"
