"""YAML and JSON with places: plain values, and the line and column at which each of them stands.

YAML is read by libyaml's composer and resolved here by the YAML 1.2 core schema, in which ``NO`` is a
word and ``1:30`` a text (the 1.1 rules of common loaders make them ``false`` and ``90``). JSON is read
by the standard library, which decides about values, and walked once more for the places.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regatta_tools.text import decode, line_column, shown

#: Nodes that one file may unfold to. Aliases can nest, and each use counts.
MAX_NODES = 500_000
#: Bytes of a file, and characters that its values may unfold to.
MAX_BYTES = 16 * 1024 * 1024
#: Longer numbers are not held exactly by every reader of a suite.
MAX_DIGITS = 18

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLAIN: dict[str, Any] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_PLAIN |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
# libyaml takes all of these for line breaks, and a break inside quotes for a space.
_ODD_BREAK = re.compile("[\x85\u2028\u2029]|\r(?!\n)")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')
_SURROGATE = re.compile("[\ud800-\udfff]")

Path_ = tuple[str | int, ...]
Place = tuple[int, int]


@dataclass(eq=False)
class SyntaxProblem(Exception):
    """The file is not YAML or JSON. ``code`` is the rule, ``line`` and ``column`` count from 1 (0: unknown)."""

    code: str
    message: str
    line: int = 0
    column: int = 0


@dataclass
class Document:
    """Values and places. ``places`` maps the path of every node to (line, column), ``keys`` that of its key."""

    value: Any = None
    places: dict[Path_, Place] = field(default_factory=dict)
    keys: dict[Path_, Place] = field(default_factory=dict)

    def place(self, path: Path_) -> Place:
        """The place of a node, or of the nearest one around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))

    def key_place(self, path: Path_) -> Place:
        """The place of the key under which a node stands."""
        return self.keys.get(path) or self.place(path)

    def put(self, path: Path_, place: Place) -> None:
        """Note the place of a node. Raises :class:`SyntaxProblem` where there are too many."""
        if len(self.places) >= MAX_NODES:
            raise SyntaxProblem("U001", f"unfolds to more than {MAX_NODES:,} values", *place)
        self.places[path] = place


def read_document(path: Path) -> Document:
    """Read a YAML or JSON file. Raises :class:`SyntaxProblem` where it is neither, ``OSError`` as the system does."""
    with path.open("rb") as handle:
        raw = handle.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise SyntaxProblem("U001", f"the file has more than {MAX_BYTES:,} bytes")
    text, problem = decode(raw)
    if problem is not None:
        raise SyntaxProblem("U005", *problem)
    return parse(text, is_json=path.suffix.lower() == ".json")


def parse(text: str, *, is_json: bool = False) -> Document:
    """Read text. See :func:`read_document`."""
    try:
        return _parse_json(text) if is_json else _parse_yaml(text)
    except RecursionError as error:
        raise SyntaxProblem("U001", "nested too deeply, or an alias that contains itself") from error


def _number(text: str, place: Place = (0, 0)) -> int | float:
    """A number from its text. Raises :class:`SyntaxProblem` where it is none, or cannot be held."""
    if not _FLOAT.fullmatch(text):
        raise SyntaxProblem("U001", f"{shown(text)} is no number", *place)
    value = int(text) if len(text) <= MAX_DIGITS + 1 and _INT.fullmatch(text) else float(text)
    if math.isinf(value) or (_INT.fullmatch(text) and isinstance(value, float)):
        raise SyntaxProblem("U001", f"the number {shown(text)} is too large (quote it if it is a text)", *place)
    return value


def _parse_json(text: str) -> Document:
    try:
        # Numbers stay texts for now: whether they can be held is said below, with their place.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        document = _json_places(text)
    except json.JSONDecodeError as error:
        raise SyntaxProblem("U001", f"not JSON: {error.msg.lower()}", error.lineno, error.colno) from error
    document.value = json.loads(text)
    return document


def _json_places(text: str) -> Document:
    """Walk the tokens of a text that is JSON, and refuse what JSON allows and we cannot keep."""
    document = Document()
    stack: list[tuple[Path_, bool]] = []  # the containers around the token, and whether each is an object
    names: list[Any] = []  # for each of them its current index or key; None where an object expects a key
    line, line_start, last = 1, 0, 0
    for match in _JSON_TOKEN.finditer(text):
        token, start = match.group(), match.start()
        breaks = text.count("\n", last, start)
        if breaks:
            line, line_start = line + breaks, text.rfind("\n", last, start) + 1
        last = start
        place = (line, start - line_start + 1)
        if token in ("}", "]"):
            stack.pop(), names.pop()
        elif token == ",":
            names[-1] = None if stack[-1][1] else names[-1] + 1
        elif token != ":":
            if token.startswith('"'):
                if "\\u" in token and _SURROGATE.search(json.loads(token)):
                    raise SyntaxProblem("U001", "half of a surrogate pair, which is no character", *place)
            elif token not in ("{", "[", "true", "false", "null"):
                _number(token, place)
            if stack and stack[-1][1] and names[-1] is None:
                names[-1] = json.loads(token)
                path = (*stack[-1][0], names[-1])
                if path in document.keys:
                    raise SyntaxProblem("U006", f"key {shown(names[-1])} stands twice in one object", *place)
                document.keys[path] = place
                continue
            path = (*stack[-1][0], names[-1]) if stack else ()
            document.put(path, place)
            if token in ("{", "["):
                stack.append((path, token == "{"))
                names.append(None if token == "{" else 0)
    return document


def _parse_yaml(text: str) -> Document:
    import yaml

    for pattern, what in ((_UNPRINTABLE, "character"), (_ODD_BREAK, "line break")):
        if odd := pattern.search(text):
            message = f"not YAML: {what} U+{ord(odd.group()):04X} (in double quotes, write it as an escape)"
            raise SyntaxProblem("U001", message, *line_column(text, odd.start()))

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Keeps apart what the 1.1 rules would decide: plain scalars, other scalars, explicit tags."""

        nodes = 0

        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            # Composing costs half a kilobyte a node, so a file of nothing but commas must not be composed.
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise SyntaxProblem("U001", f"holds more than {MAX_NODES:,} values")
            return "plain" if kind is yaml.ScalarNode and implicit[0] else "untagged"

    try:
        loader = Loader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        if line > text.count("\n") + 1:  # libyaml ends a last line that has no end
            line, column = line_column(text, len(text))
        said = error.problem or error.context or ""
        # The two mistakes that people make most, in their words rather than the parser's.
        if said.startswith("mapping values are not allowed"):
            said += " (a text that holds ': ' has to stand in quotes)"
        elif said.startswith("found unexpected end of stream"):
            said += " (a quote that opens before this place never closes)"
        raise SyntaxProblem("U001", f"not YAML: {said}", line, column) from error
    except yaml.YAMLError as error:
        raise SyntaxProblem("U001", f"not YAML: {str(error).splitlines()[0]}") from error
    document = Document()
    if node is not None:
        document.value = _Builder(document).build(node, ())
    return document


class _Builder:
    """Turns composed nodes into values, and notes their places."""

    _TAGS = ("untagged", "plain", "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.characters = MAX_BYTES

    def build(self, node: Any, path: Path_) -> Any:
        place = _mark(node)
        self.document.put(path, place)
        if node.tag not in self._TAGS:
            raise SyntaxProblem("U002", f"the tag {shown(node.tag)} is not taken here", *place)
        if node.id == "scalar":
            return self._scalar(node, place)
        if node.id == "sequence":
            return [self.build(child, (*path, i)) for i, child in enumerate(node.value)]
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key_place = _mark(key_node)
            key = self._scalar(key_node, key_place) if key_node.id == "scalar" else None
            if not isinstance(key, str):
                raise SyntaxProblem("U002", "a key is not a text (quote it)", *key_place)
            if key in out:
                raise SyntaxProblem("U006", f"key {shown(key)} stands twice in one mapping", *key_place)
            self.document.keys[(*path, key)] = key_place
            out[key] = self.build(value_node, (*path, key))
        return out

    def _scalar(self, node: Any, place: Place) -> Any:
        """YAML 1.2 core schema for plain scalars (but 012 stays a text); quoted and block scalars are texts."""
        text = node.value
        self.characters -= len(text)
        if self.characters < 0:
            raise SyntaxProblem("U001", f"unfolds to more than {MAX_BYTES:,} characters", *place)
        if node.tag != "plain":
            return text
        if text in _PLAIN:
            return _PLAIN[text]
        return _number(text, place) if _FLOAT.fullmatch(text) else text


def _mark(node: Any) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1
