"""Examples of the rules: for every code one file that is right and one that is wrong.

``examples/rules/base`` is a small package. Each rule has a folder beside it, named as its file in ``validators/``,
with two folders ``valid-REASON`` and ``invalid-REASON``. Each of these holds one file, which takes the place of the
base's file of the same path, or comes in beside it::

    examples/rules/F002-fact-number-in-duty/
        valid-number-in-words/instruments/example-us/requirements.csv
        invalid-other-number/instruments/example-us/facts.csv

The base with the invalid file raises the rule and nothing else, with the valid one it is clean
(tests/test_rule_examples.py).
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from regatta_tools import paths
from regatta_tools.errors import EnvironmentProblem
from regatta_tools.tables.package import DESCRIPTOR
from regatta_tools.text import shown

_RULE_FOLDER = re.compile(r"([A-Z][0-9]{3})-[a-z0-9]+(-[a-z0-9]+)*")
_EXAMPLE_FOLDER = re.compile(r"(valid|invalid)-([a-z0-9]+(?:-[a-z0-9]+)*)")
# What the base's descriptor says of a file, which those of the examples leave to `assemble`.
_DESCRIBED = re.compile(r', "rows": \d+, "bytes": \d+, "hash": "[^"]*"')
#: Characters of a cell that stay on either side of what differs.
_AROUND = 24
#: Characters of a whole line that are shown.
_LONGEST = 160


@dataclass(frozen=True)
class Example:
    """One file that is right or wrong by one rule.

    ``reason`` is the name of its folder without ``valid-`` or ``invalid-``. ``file`` is its path from ``folder``, with
    forward slashes, which is its place in the base package.
    """

    code: str
    right: bool
    reason: str
    folder: Path
    file: str

    @property
    def path(self) -> Path:
        return self.folder / self.file


def folder() -> Path:
    """The folder of the examples; it may not exist in a checkout cut down to the tools."""
    return paths.root() / "examples" / "rules"


def examples(root: Path | None = None, code: str = "") -> list[Example]:
    """All examples, or those of one rule, in the order of the rules, the wrong one of a pair first.

    Raises :class:`EnvironmentProblem` for a folder that is not of the form above. ``root`` is another folder of
    examples. Without a folder there are none.
    """
    root = root or folder()
    found = []
    for rule_folder in sorted(p for p in root.glob(f"{code}*") if p.is_dir() and p.name != "base"):
        code = _RULE_FOLDER.fullmatch(rule_folder.name)
        for example in sorted(rule_folder.iterdir()):
            kind = _EXAMPLE_FOLDER.fullmatch(example.name)
            files = sorted(p for p in example.rglob("*") if p.is_file())
            if code is None or kind is None or len(files) != 1:
                raise EnvironmentProblem(
                    "an example is one file in CODE-reason/valid-reason or CODE-reason/invalid-reason",
                    code="E302",
                    place=f"{rule_folder.name}/{example.name}",
                )
            file = files[0].relative_to(example).as_posix()
            found.append(Example(code[1], kind[1] == "valid", kind[2], example, file))
    return found


def assemble(example: Example | None, into: Path, root: Path | None = None) -> Path:
    """Write the base with one example (``None``: alone) into the folder ``into``, which may not exist yet.

    The descriptor then says of every file what it is, so that an example is wrong in what it is about alone. An example
    that is a descriptor keeps what it says, and is filled up where it says nothing.
    """
    shutil.copytree((root or folder()) / "base", into)
    if example is not None:
        target = into / example.file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(example.path, target)
    keep = example is not None and example.file == DESCRIPTOR
    descriptor = json.loads((into / DESCRIPTOR).read_text(encoding="utf-8"))
    text = descriptor_text(descriptor, into, keep=keep)
    (into / DESCRIPTOR).write_text(text, encoding="utf-8", newline="")
    return into


def descriptor_text(descriptor: dict[str, Any], root: Path, *, keep: bool = False) -> str:
    """A short descriptor of the package at ``root``, a line a file, with rows, bytes and hash of each as it stands.

    ``keep`` leaves what the descriptor says of a file already. Files that cannot be counted are left as they are: the
    reader has its say on them.
    """
    lines = []
    for resource in descriptor["resources"]:
        listed = resource["path"]
        files = [root / name for name in ([listed] if isinstance(listed, str) else listed)]
        actual: dict[str, Any] = {}
        # A path that leads elsewhere is part of an example; nothing is opened there.
        if all(file.is_file() and ".." not in file.parts for file in files):
            contents = [file.read_bytes() for file in files]
            actual = {"rows": sum(map(count_rows, contents)), "bytes": sum(map(len, contents))}
            if len(contents) == 1:
                actual["hash"] = "sha256:" + hashlib.sha256(contents[0]).hexdigest()
        lines.append(json.dumps(actual | resource if keep else resource | actual, ensure_ascii=False))
    head = json.dumps({k: v for k, v in descriptor.items() if k != "resources"}, ensure_ascii=False, indent=2)
    return head[:-2] + ',\n  "resources": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}\n"


def count_rows(content: bytes) -> int:
    """The records of a CSV file without its header, as far as the standard parser gets."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    rows = -1
    try:
        for _ in csv.reader(io.StringIO(text, newline="")):
            rows += 1
    except csv.Error:  # a cell beyond measure
        pass
    return max(rows, 0)


# Showing them


def shown_path(path: Path) -> str:
    """A path as a user can open it: from the current folder where it lies below it, else whole."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):  # OSError: the current folder has been deleted
        return str(path)


def differences(example: Example, root: Path | None = None) -> list[str]:
    """What an example changes in the base, a line each: ``line 2, value: '15' -> '16'``.

    Rows that stand in both files are compared cell by cell. Other lines are shown with ``-`` and ``+``, cut where they
    are long; of a file that the base does not have, all lines.
    """
    base = (root or folder()) / "base" / example.file
    after = _lines(example.path)
    if not base.is_file():
        return [f"+ {shown(line, _LONGEST)}" for line in after]
    before = _lines(base)
    if example.file == DESCRIPTOR:
        before = [_DESCRIBED.sub("", line) for line in before]
    out = []
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            for old, new, number in zip_longest(before[i:i_end], after[j:j_end], range(j + 1, j_end + 1)):
                out += _line_difference(old, new, number, before[0])
    # Only marks at the edges of lines differ: line ends or a byte-order mark.
    return out or (["the same cells, written otherwise"] if base.read_bytes() != example.path.read_bytes() else [])


def _lines(path: Path) -> list[str]:
    return path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="backslashreplace").splitlines()


def _line_difference(old: str | None, new: str | None, number: int | None, header: str) -> Iterator[str]:
    if old is not None and new is not None:
        was, now, names = _cells(old), _cells(new), _cells(header)
        if was and now and names and len(was) == len(now) == len(names) and was[0] == now[0]:
            for name, before, after in zip(names, was, now):
                if before != after:
                    yield f"line {number}, {name}: " + " -> ".join(_around(before, after))
            return
        old, new = _around(old, new)
        yield f"line {number}: {old} -> {new}"
    elif new is not None:
        yield f"line {number}: + {shown(new, _LONGEST)}"
    else:
        yield f"- {shown(old, _LONGEST)}"


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line), strict=True), [])
    except csv.Error:
        return []


def _common(one: str, other: str) -> int:
    """The number of characters with which two texts begin alike."""
    pairs = zip(one, other)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _around(before: str, after: str) -> tuple[str, str]:
    """Two texts cut down to where they differ, with some characters on either side."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])

    def cut(text: str) -> str:
        first, last = max(start - _AROUND, 0), len(text) - max(end - _AROUND, 0)
        head, tail = "..." * (first > 0), "..." * (last < len(text))
        part = head + text[first:last] + tail
        # Accents apart from their letters look the same as composed ones; as escapes they do not.
        return shown(part) if unicodedata.is_normalized("NFC", part) else ascii(part)[:_LONGEST]

    return cut(before), cut(after)
