"""Questions to a package in SPARQL: named ones with parameters, or anybody's own; read-only and offline.

The way of a query: header and bindings are checked here; a child process parses the text with rdflib, refuses
whatever is not a plain read of this package, evaluates it with pyoxigraph and answers in JSON. A child, because
pyoxigraph's Python interface has no time limit (oxigraph/oxigraph#1926) and a thread that computes inside it
cannot be stopped. The child refuses ``SERVICE`` on the parsed query, and besides gives up the means to open a
socket before it evaluates, since pyoxigraph does send requests for ``SERVICE``.

Errors are :class:`InputError` with these codes:

====  ====================================================================================
U120  not SPARQL (with line and column)
U121  an update, not a query
U122  ``SERVICE``, ``FROM`` or anything else outside the package
U123  no named query of this name
U124  a parameter is unknown, missing, or not of its type; or a header line is wrong
U125  the limit of time, rows or memory was reached
U126  triples asked for in a form for rows
====  ====================================================================================
"""

from __future__ import annotations

import bisect
import csv
import io
import json
import math
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.graph import rdf
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Package, table_specs
from regatta_tools.tables.spreadsheet import neutral

QUERIES = Path(__file__).resolve().parent / "queries"
#: More rows than this are an error, not a shortened answer.
MAX_ROWS = 100_000
_MAX_MEMORY = 2 * 1024**3
#: Types of parameters. ``id:TABLE`` is the id of a record of one table, ``column:NAME`` a text that some record of the
#: package has in a column of this name: a mistyped one would find nothing and look like an answer.
TYPES = ("text", "date", "integer", "decimal", "id", "id:TABLE", "column:NAME")

_TITLE = re.compile(r"#\s*title:\s*(.+?)\s*")
_PARAM = re.compile(
    r"#\s*param:\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s+(?P<type>[a-z]+(?::[a-z_]+)?)\s+"
    r"(?:(?P<rest>required|optional)|default\s+(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>\S+)))\s+--\s+(?P<help>.+?)\s*"
)
_HIDE = re.compile(r"#\s*hide:\s*([A-Za-z_][A-Za-z0-9_]*(?:\s+[A-Za-z_][A-Za-z0-9_]*)*)\s*")


# Named queries


class Parameter(NamedTuple):
    """A parameter of a query: ``type`` is one of :data:`TYPES`; ``default`` is text, ``None`` where there is none."""

    type: str
    default: str | None
    help: str
    required: bool = False


@dataclass(frozen=True)
class NamedQuery:
    """A query with a header. ``hidden`` are projected variables that only carry a parameter."""

    name: str
    title: str
    parameters: dict[str, Parameter]
    text: str
    hidden: tuple[str, ...] = ()


def parse_header(text: str, name: str = "", origin: str = "") -> NamedQuery:
    """Read the comment lines before the query itself.

    Lines of the form ``# title: TEXT``, ``# param: NAME TYPE required|optional|default VALUE -- HELP`` and
    ``# hide: NAME ...`` mean something; other comments do not. Raises :class:`InputError` (U124) for a
    ``param:`` or ``hide:`` line of another form; ``origin`` is the file named in it.
    """
    title, hidden = "", ()
    parameters: dict[str, Parameter] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            break
        if match := _TITLE.fullmatch(line):
            title = match[1]
        elif match := _HIDE.fullmatch(line):
            hidden += tuple(match[1].split())
        elif (match := _PARAM.fullmatch(line)) and _is_type(match["type"]) and match["name"] not in parameters:
            default = match["bare"] if match["quoted"] is None else match["quoted"]
            parameters[match["name"]] = Parameter(match["type"], default, match["help"], match["rest"] == "required")
        elif re.match(r"#\s*(param|hide):", line):
            raise InputError(
                f"this header line is not understood: {line}",
                code="U124",
                place=f"{origin or name or 'query'}:{number}",
                mend="# param: NAME " + "|".join(TYPES) + " required|optional|default VALUE -- HELP",
            )
    return NamedQuery(name, title, parameters, text, hidden)


def _is_type(kind: str) -> bool:
    base, _, name = kind.partition(":")
    if base == "id" and name:
        return name in table_specs() and table_specs()[name].identifier is not None
    if base == "column":
        return any(name in spec.fields for spec in table_specs().values())
    return kind in TYPES


@lru_cache(maxsize=1)
def named() -> dict[str, NamedQuery]:
    """The named queries by name, from the files ``queries/*.rq``."""
    return {p.stem: parse_header(p.read_text(encoding="utf-8"), p.stem) for p in sorted(QUERIES.glob("*.rq"))}


def named_query(name: str) -> NamedQuery:
    """The named query. Raises :class:`InputError` (U123) with the list of names for an unknown one."""
    if name not in named():
        raise InputError(f"there is no query {name!r}", code="U123", mend="use one of: " + ", ".join(named()))
    return named()[name]


def bind(query: NamedQuery, given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The bindings of a query, ``name -> (type, value)``, from values as text; defaults fill what is not given.

    A query that declares parameters takes these only. One without a header (somebody's own) takes any name, as
    text. Raises :class:`InputError` (U124) for an unknown or missing parameter.
    """
    if query.parameters or query.name:
        for name in given:
            if name not in query.parameters:
                known = ", ".join(query.parameters) or "(it takes none)"
                raise InputError(f"the query has no parameter {name!r}", code="U124", mend=f"use one of: {known}")
    bindings = {}
    for name, parameter in query.parameters.items():
        value = given.get(name, parameter.default)
        if value is not None:
            bindings[name] = (parameter.type, value)
        elif parameter.required:
            raise InputError(
                f"the parameter {name!r} is missing ({parameter.help})", code="U124", mend=f"--set {name}=VALUE"
            )
    for name, value in given.items():
        bindings.setdefault(name, ("text", value))
    return bindings


def catalogue() -> str:
    """The named queries as a table in Markdown, for docs/queries.md."""
    lines = ["| Name | What it lists | Parameters |", "|---|---|---|"]
    for query in named().values():
        parameters = "<br>".join(f"`{name}` ({describe(p)}): {p.help}" for name, p in query.parameters.items())
        lines.append(f"| `{query.name}` | {query.title} | {parameters} |")
    return "\n".join(lines) + "\n"


def listing() -> Result:
    """The named queries as a result of three columns: query, title, parameters."""
    rows = [
        (
            query.name,
            query.title,
            "\n".join(f"{name} ({describe(p)}): {p.help}" for name, p in query.parameters.items()),
        )
        for query in named().values()
    ]
    return Result(["query", "title", "parameters"], rows)


def describe(parameter: Parameter) -> str:
    """Type of a parameter and whether it may be left out, in words."""
    base, _, name = parameter.type.partition(":")
    kind = {"id": f"id in {name}", "column": f"a {name} of the package"}[base] if name else base
    if parameter.required:
        return f"{kind}, required"
    return f"{kind}, {parameter.default} if left out" if parameter.default else f"{kind}, optional"


# Running


@dataclass
class Result:
    """An answer.

    ``kind`` is ``table`` (SELECT), ``boolean`` (ASK; one column, one row) or ``triples`` (CONSTRUCT, DESCRIBE; one
    column, each row a line of N-Triples, sorted). Cells are ``None``, ``str``, ``bool``, ``int``, ``Decimal`` or
    ``float``; records appear by id, enum values by text, dates as ISO text.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    kind: str = "table"


def prefixes() -> dict[str, str]:
    """The prefixes that a query may use without declaring them: those of the schema, and ``rdf``."""
    return {**load_model()["prefixes"], "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}


def run_named(
    package: Package, name: str, given: Mapping[str, str] | None = None, *, limit_seconds: float = 30, beside: str = ""
) -> Result:
    """Run a named query with parameters given as text; ``beside`` as in :func:`run_query`.

    Raises what :func:`named_query`, :func:`bind` and :func:`run_query` raise.
    """
    query = named_query(name)
    return run_query(package, query.text, bind(query, given or {}), limit_seconds=limit_seconds, beside=beside)


def run_query(
    package: Package,
    text: str,
    bindings: Mapping[str, tuple[str, Any]] | None = None,
    *,
    limit_seconds: float = 30,
    origin: str = "",
    beside: str = "",
) -> Result:
    """Ask a package a question in SPARQL 1.1 and return its :class:`Result`.

    ``bindings`` gives variables values, ``name -> (type, value)`` with a type of :data:`TYPES`; the value is
    handed to the engine as a term and never becomes text of the query. A SELECT query has to project a bound
    variable. ``limit_seconds`` is wall-clock time, with about half a second for starting the child in it.
    ``origin`` is the file that the text is from, for messages; ``beside`` is N-Triples that are asked together with
    the package (:mod:`regatta_tools.graph.suites`).

    Raises :class:`InputError` (codes: see the module). No address is ever opened.
    """
    if not limit_seconds > 0:
        raise ValueError("limit_seconds is a positive number of seconds")
    header = parse_header(text, origin=origin)
    request = {
        "ntriples": "".join(rdf.ntriples(package)) + beside,
        "text": unicodedata.normalize("NFC", text),
        "bindings": {
            name: binding_term(name, kind, value, package) for name, (kind, value) in (bindings or {}).items()
        },
        # Loading rdflib is most of a short question's time; the texts of this folder are held to the check by a test.
        "checked": any(text == known.text for known in named().values()),
        "prefixes": prefixes(),
        "max_rows": MAX_ROWS,
        "cpu_seconds": math.ceil(limit_seconds) + 10,
    }
    answer = _in_child(request, limit_seconds)
    if error := answer.get("error"):
        error["place"] = ", ".join(filter(None, (origin, error["place"])))
        raise InputError(**error)
    return _result(answer, header.hidden)


def binding_term(name: str, kind: str, value: Any, package: Package | None = None) -> list[str]:
    """A value as ``[form, text, datatype]``. Raises :class:`InputError` (U124) where it is not of the type.

    With a package, an id has to be one of its records, and the value of a column has to occur in it.
    """
    text = unicodedata.normalize("NFC", str(value))

    def refuse(what: str, mend: str = "") -> InputError:
        return InputError(f"the parameter {name!r} is {text!r}: {what}", code="U124", mend=mend)

    if kind == "text":
        return ["literal", text, rdf.XSD + "string"]
    if kind == "date":
        try:
            if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
                raise ValueError
            date.fromisoformat(text)
        except ValueError:
            raise refuse("not a date", "write it as YYYY-MM-DD") from None
        return ["literal", text, rdf.XSD + "date"]
    if kind == "integer":
        if not re.fullmatch("[+-]?[0-9]{1,18}", text):
            raise refuse("not a whole number")
        return ["literal", str(int(text)), rdf.XSD + "integer"]
    if kind == "decimal":
        if not re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", text):
            raise refuse("not a decimal number", "write it with a point, as 0.5")
        return ["literal", text, rdf.XSD + "decimal"]
    base, _, of = kind.partition(":")
    if base == "id":
        if package is not None:
            _check_id(package, text, of, refuse)
        return ["iri", rdf.record_iri(text), ""]
    if base == "column" and of:
        if package is not None:
            known = sorted({r[of] for r in package if of in r.spec.fields and r[of]})
            if text not in known:
                raise refuse(f"no record of the package has this {of}", _one_of(known, text))
        return ["literal", text, rdf.XSD + "string"]
    raise InputError(
        f"the parameter {name!r} has the unknown type {kind!r}", code="U124", mend="one of: " + ", ".join(TYPES)
    )


def _check_id(package: Package, text: str, table: str, refuse: Callable[[str, str], InputError]) -> None:
    record = package.by_id.get(text)
    if record is not None and table in ("", record.spec.name):
        return
    known = [r.key for r in package.table(table)] if table else list(package.by_id)
    if record is not None:
        raise refuse(f"this is an id in {record.spec.name}, not in {table}", _one_of(known, text))
    raise refuse(f"no record of {table or 'the package'} has this id", _one_of(known, text))


def _one_of(known: list[str], text: str) -> str:
    """Which names may have been meant: all of them where they are few, else those that are near."""
    import difflib

    if 0 < len(known) <= 12:
        return "use one of: " + ", ".join(known)
    near = difflib.get_close_matches(text, known, n=3)
    return "perhaps " + " or ".join(near) if near else ""


def unknown_names(text: str, package: Package) -> list[str]:
    """What a query names that is not there, each with the reason: why it may have found nothing.

    Records (``rid:...``) and the schema's own words (``regatta:...``) are looked at; other vocabularies are not ours.
    """
    asked = [m[0] for m in _TOKEN.finditer(text) if m.lastgroup == "pname"]
    records = {rdf.subject(record) for record in package}
    model = load_model()
    words = {c["uri"] for c in model["classes"].values()}
    words |= {f["uri"] for c in model["classes"].values() for f in c["fields"]}
    words |= {v["meaning"] for e in model["enums"].values() for v in e["values"].values() if v["meaning"]}
    own = model["prefixes"]["regatta"]
    found = []
    for name in dict.fromkeys(asked):
        prefix, _, local = name.partition(":")
        if prefix == "rid" and rdf.id_base() + local not in records:
            found.append(f"{name} is no record of the package")
        if prefix == "regatta" and own + local not in words:
            near = _one_of([word.removeprefix(own) for word in words if word.startswith(own)], local)
            found.append(f"{name} is no word of the schema" + (f" ({near})" if near else ""))
    return found


_CHILD = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from regatta_tools.graph.query import _serve
_serve()
"""


def _in_child(request: dict[str, Any], limit_seconds: float) -> dict[str, Any]:
    # A session of its own: Ctrl-C then reaches this process alone, which stops the child.
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _CHILD, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(json.dumps(request).encode("ascii"), timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            raise InputError(
                f"the query took more than {limit_seconds:g} seconds and was stopped",
                code="U125",
                mend="join its parts (patterns that share no variable multiply the rows), or ask for less",
            ) from None
        finally:
            process.kill()
            process.wait()
    try:
        return json.loads(out)
    except ValueError:
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        if process.returncode < 0 or "memory" in last[0].lower():
            raise InputError(
                "the query engine was stopped (no memory left, or a query nested too deeply)",
                code="U125",
                mend="ask for less",
            ) from None
        raise EnvironmentProblem(
            f"the query process ended without an answer (exit code {process.returncode}): {last[0]}"
        ) from None


def _result(answer: dict[str, Any], hidden: Iterable[str]) -> Result:
    keep = [i for i, column in enumerate(answer["columns"]) if column not in hidden]
    rows = [tuple(_plain(row[i]) for i in keep) for row in answer["rows"]]
    return Result([answer["columns"][i] for i in keep], rows, answer["kind"])


def _plain(term: list[str] | None) -> Any:
    if term is None:
        return None
    form, text, datatype = term
    if form == "iri":
        return rdf.short(text)
    if form != "literal":
        return text
    try:
        match datatype.removeprefix(rdf.XSD):
            case "boolean":
                return {"true": True, "1": True, "false": False, "0": False}[text]
            case "integer" | "int" | "long" | "nonNegativeInteger" | "positiveInteger":
                return int(text)
            case "decimal":
                value = Decimal(text)
                return value if value != value.to_integral_value() else Decimal(int(value))
            case "double" | "float":
                value = float(text)
                return value if math.isfinite(value) else text
    except (KeyError, ValueError, ArithmeticError):
        return text
    return text


# The child: what follows down to "Writing" runs in it


class _Refused(Exception):
    def __init__(self, code: str, message: str, place: tuple[int, int] | None = None, mend: str = "") -> None:
        super().__init__(message)
        at = f"line {place[0]}, column {place[1]}" if place else ""
        self.error = {"message": message, "code": code, "mend": mend, "place": at}


def _serve() -> None:
    request = json.loads(sys.stdin.buffer.read())
    try:
        text = request["text"]
        if not request["checked"]:
            text = check(text, request["prefixes"], request["bindings"])
        answer = _evaluate(request, text)
    except _Refused as refused:
        answer = {"error": refused.error}
    sys.stdout.write(json.dumps(answer))


_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
# Enough of the grammar to know keywords from names: what is quoted, commented, or part of a name is no keyword.
_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\r\n]*)
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    | (?P<string>\"{3}(?:(?:\"|\"\")?(?:[^"\\]|\\.))*\"{3} | '{3}(?:(?:'|'')?(?:[^'\\]|\\.))*'{3}
                | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*')
    | (?P<variable>[?$]\w+)
    | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<pname>(?:[^\W\d][\w.\-]*)?:(?:[\w:.\-]|%[0-9A-Fa-f]{2}|\\.)*)
    | (?P<word>[^\W\d]\w*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_UPDATES = {"INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"}
_READS = {"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"}


def check(text: str, known_prefixes: Mapping[str, str], bound: Iterable[str] = ()) -> str:
    """Return the query as it may be run, with code-point escapes resolved; raise :class:`_Refused` otherwise.

    The engines differ in what they do with escapes (rdflib resolves them anywhere, pyoxigraph within strings and
    IRIs), so both are given a text that has none left. The decision is made on rdflib's parse; where our own list of
    keywords sees one that the parse does not, the two disagree and the query is refused as well.
    """
    text, place = _resolve_escapes(text)
    keywords = [(m[0].upper(), m.start()) for m in _TOKEN.finditer(text) if m.lastgroup == "word"]

    def where(*names: str) -> tuple[int, int]:
        return next((place(offset) for word, offset in keywords if word in names), (1, 1))

    parsed = _parse(text, keywords, known_prefixes, place)
    seen: set[str] = set()
    tested: set[str] = set()
    for node in _nodes(parsed):  # before the translation, which rewrites the parse
        seen.add(node.name)
        if node.name == "Builtin_BOUND":
            tested.add(str(node.get("arg")))
    words = {word for word, _ in keywords}
    if "ServiceGraphPattern" in seen or "SERVICE" in words:
        raise _Refused(
            "U122", "SERVICE asks another server; queries here are offline", where("SERVICE"),
            "leave it out: the package is all there is",
        )  # fmt: skip
    if "DatasetClause" in seen or "FROM" in words:
        raise _Refused(
            "U122", "FROM names another data set; queries here read the package and nothing else", where("FROM"),
            "leave the clause out",
        )  # fmt: skip
    for name in bound:
        if name in tested:
            # pyoxigraph puts the value in too late for BOUND and calls the variable unbound.
            raise _Refused(
                "U124", f"BOUND(?{name}) cannot test a parameter", where("BOUND"),
                "use the variable in a pattern, where it may be left unbound, or give it a default",
            )  # fmt: skip
    _translate(parsed, text, known_prefixes, place)
    return text


def _resolve_escapes(text: str) -> tuple[str, Any]:
    """The text without code-point escapes, and a function that gives line and column in the given text."""
    origins = [0]  # offset in the result -> offset in the given text, at the points where the distance changes
    starts = [0]
    out: list[str] = []
    length = last = 0

    def place_in_given(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)

    for match in _ESCAPE.finditer(text):
        code = int(match[1] or match[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise _Refused("U120", f"{match[0]} is no character", place_in_given(match.start()))
        out += [text[last : match.start()], chr(code)]
        length += match.start() - last + 1
        last = match.end()
        starts.append(length)
        origins.append(last)
    out.append(text[last:])
    resolved = "".join(out)

    def place(offset: int) -> tuple[int, int]:
        i = bisect.bisect_right(starts, offset) - 1
        return place_in_given(min(origins[i] + offset - starts[i], len(text)))

    if again := _ESCAPE.search(resolved):
        raise _Refused(
            "U120", "an escape that makes another escape", place(again.start()), "write the character itself"
        )
    return resolved, place


def _parse(text: str, keywords: list[tuple[str, int]], known_prefixes: Mapping[str, str], place: Any) -> Any:
    from pyparsing import ParseBaseException
    from rdflib.plugins.sparql.parser import parseQuery

    first = next(((w, o) for w, o in keywords if w in _READS | _UPDATES), None)
    if first and first[0] in _UPDATES:
        raise _Refused(
            "U121", f"{first[0]} changes data; queries here only read", place(first[1]),
            "use SELECT, ASK, CONSTRUCT or DESCRIBE",
        )  # fmt: skip
    try:
        return parseQuery(text)
    except ParseBaseException as error:
        raise _syntax(text, known_prefixes, place, place(error.loc), "this is not SPARQL 1.1") from None
    except RecursionError:
        raise _Refused("U120", "the query is nested too deeply", (1, 1)) from None
    except Exception as error:  # rdflib's parse actions raise what they like
        raise _syntax(text, known_prefixes, place, (1, 1), str(error) or type(error).__name__) from None


def _translate(parsed: Any, text: str, known_prefixes: Mapping[str, str], place: Any) -> None:
    """Let rdflib resolve prefixes and scopes of variables, for its objections."""
    from rdflib.plugins.sparql.algebra import translateQuery

    try:
        translateQuery(parsed, initNs=dict(known_prefixes))
    except RecursionError:
        raise _Refused("U120", "the query is nested too deeply", (1, 1)) from None
    except Exception as error:  # rdflib raises bare exceptions here
        said = str(error) or type(error).__name__
        if match := re.match(r"Unknown namespace prefix : (\S*)", said):
            names = (m for m in _TOKEN.finditer(text) if m.lastgroup == "pname" and m[0].startswith(match[1] + ":"))
            at = next((place(m.start()) for m in names), (1, 1))
            known = "known without declaring: " + " ".join(sorted(known_prefixes))
            raise _Refused("U120", f"the prefix {match[1]}: is not declared", at, known) from None
        raise _syntax(text, known_prefixes, place, (1, 1), said) from None


def _syntax(text: str, known_prefixes: Mapping[str, str], place: Any, at: tuple[int, int], said: str) -> _Refused:
    """The refusal of a text that rdflib cannot read, with pyoxigraph's place, which is nearer to the mistake.

    pyoxigraph has no parser without evaluation, so an empty store is asked; never with a text that could name a
    service.
    """
    if "service" not in text.lower():
        import pyoxigraph

        try:
            pyoxigraph.Store().query(text, prefixes=dict(known_prefixes))
        except SyntaxError as error:
            return _from_engine(error, text, place)
        except Exception:
            pass
    return _Refused("U120", said, at)


def _from_engine(error: SyntaxError, text: str, place: Any) -> _Refused:
    """pyoxigraph's objection with its place; of what it expected, the lists of characters are left out."""
    match = re.match(r"error at (\d+):(\d+): expected (?:one of )?(.*)", str(error), re.DOTALL)
    if not match:
        return _Refused("U120", f"not SPARQL: {' '.join(str(error).split())}")
    line, column = int(match[1]), int(match[2])
    offset = sum(len(part) for part in text.split("\n")[: line - 1]) + line - 1 + column - 1
    wanted = [w for w in " ".join(match[3].split()).split(", ") if re.fullmatch(r"[A-Za-z][^\[\]{}]*", w)]
    reasons = [w for w in wanted if " " in w]
    said = " or ".join(reasons) if reasons else "expected " + " or ".join(wanted) if wanted else ""
    return _Refused("U120", f"not SPARQL: {said}" if said else "not SPARQL", place(offset))


def _nodes(parsed: Any) -> Iterable[Any]:
    """All named nodes of an rdflib parse, without recursion."""
    from pyparsing import ParseResults
    from rdflib.plugins.sparql.parserutils import CompValue

    waiting = [parsed]
    while waiting:
        node = waiting.pop()
        if isinstance(node, CompValue):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, (list, tuple, set, ParseResults)):
            waiting.extend(node)


def _evaluate(request: dict[str, Any], text: str) -> dict[str, Any]:
    import pyoxigraph as ox

    store = rdf.store_of(request["ntriples"])
    values = {
        ox.Variable(name): ox.NamedNode(value) if form == "iri" else ox.Literal(value, datatype=ox.NamedNode(datatype))
        for name, (form, value, datatype) in request["bindings"].items()
    }
    _confine(request["cpu_seconds"])
    try:
        found = store.query(text, prefixes=request["prefixes"], substitutions=values)
        return _collect(found, request["max_rows"])
    except SyntaxError as error:
        raise _from_engine(error, text, _resolve_escapes(request["text"])[1]) from None
    except RuntimeError as error:
        if match := re.search(r"does not contains? variable \?(\w+)", str(error)):
            raise _Refused(
                "U124", f"the query does not project ?{match[1]}, so it cannot be bound", None,
                f"add ?{match[1]} to the SELECT line (a header line `# hide: {match[1]}` keeps it out of the answer)",
            ) from None  # fmt: skip
        raise _Refused("U120", f"the query cannot be evaluated: {error}") from None
    except OSError:  # what _confine holds back
        raise _Refused("U122", "the query asked for something outside the package") from None


def _confine(cpu_seconds: int) -> None:
    """Give up what a query does not need: new files and sockets, endless memory, endless time.

    Where the system has no such limits (Windows), the refusal of SERVICE and the parent's clock remain.
    """
    try:
        import resource
    except ImportError:
        return
    for what, limit in (
        (resource.RLIMIT_NOFILE, 0),
        (getattr(resource, "RLIMIT_AS", None), _reserved(resource.getpagesize()) + _MAX_MEMORY),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        if what is not None:
            try:
                resource.setrlimit(what, (limit, limit))
            except (ValueError, OSError):  # already lower, or not to be set here
                continue


def _reserved(page: int) -> int:
    """Bytes of address space that this process has already: much on machines with many cores, where little is used."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * page
    except (OSError, ValueError):
        return 2 * 1024**3


def _collect(found: Any, max_rows: int) -> dict[str, Any]:
    import pyoxigraph as ox

    def term(value: Any) -> list[str] | None:
        if value is None:
            return None
        if isinstance(value, ox.NamedNode):
            return ["iri", value.value, ""]
        if isinstance(value, ox.Literal):
            return ["literal", value.value, value.datatype.value]
        return ["other", str(value), ""]

    if isinstance(found, ox.QueryBoolean):
        answer = ["literal", str(bool(found)).lower(), rdf.XSD + "boolean"]
        return {"kind": "boolean", "columns": ["answer"], "rows": [[answer]]}
    if isinstance(found, ox.QueryTriples):
        kind, columns = "triples", ["triple"]
        rows = ([["other", f"{triple} .", ""]] for triple in found)
    else:
        kind, variables = "table", found.variables
        columns = [v.value for v in variables]
        rows = ([term(solution[v]) for v in variables] for solution in found)
    kept = []
    for row in rows:
        if len(kept) == max_rows:
            raise _Refused("U125", f"the answer has more than {max_rows} rows", None, "add LIMIT, or ask for less")
        kept.append(row)
    return {"kind": kind, "columns": columns, "rows": sorted(kept) if kind == "triples" else kept}


# Writing


def write(result: Result, form: str, *, width: int = 80) -> str:
    """A result as text with its final line end. ``form`` is ``table``, ``csv`` or ``json``.

    Triples are written as N-Triples in the form ``table``; raises :class:`InputError` (U126) for the others.
    """
    if result.kind == "triples":
        if form != "table":
            raise InputError(
                f"CONSTRUCT and DESCRIBE give triples, which are not written as {form}",
                code="U126",
                mend="leave --format out for N-Triples, or ask with SELECT",
            )
        return "".join(f"{row[0]}\n" for row in result.rows)
    if form == "json":
        return as_json(result)
    if form == "csv":
        return as_csv(result)
    if result.kind == "boolean":
        return _show(result.rows[0][0]) + "\n"
    return as_table(result, width)


def as_json(result: Result) -> str:
    """A list of objects, one a row, ``null`` where nothing is bound; ``true`` or ``false`` for ASK."""

    def value(cell: Any) -> Any:
        if isinstance(cell, Decimal):
            return int(cell) if cell == cell.to_integral_value() else float(cell)
        return cell

    if result.kind == "boolean":
        content: Any = result.rows[0][0]
    else:
        content = [dict(zip(result.columns, map(value, row), strict=True)) for row in result.rows]
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def as_csv(result: Result) -> str:
    """RFC 4180 with a header; a text that a spreadsheet would run is neutralised (regatta_tools.tables.spreadsheet)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(result.columns)
    for row in result.rows:
        cells = [neutral(cell) if isinstance(cell, str) else _show(cell) for cell in row]
        if cells == [""]:
            out.write('""\r\n')  # a bare empty line would be no row
        else:
            writer.writerow(cells)
    return out.getvalue()


def _show(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return format(cell, "f") if isinstance(cell, Decimal) else str(cell)


def as_table(result: Result, width: int) -> str:
    """Aligned columns with a header, each line at most ``width`` wide; nothing is cut off.

    Long cells wrap. Where that would leave columns too narrow to read, each row becomes a block of lines
    ``column: value``.
    """
    cells = [[_visible(_show(cell)) for cell in row] for row in result.rows]
    natural = [
        max([_width(name), *(_width(line) for row in cells for line in row[i].split("\n"))])
        for i, name in enumerate(result.columns)
    ]
    # Ids and other words stay whole up to 28 characters: people copy them.
    words = [max((_width(w) for row in cells for w in row[i].split()), default=0) for i in range(len(natural))]
    least = [
        min(n, max(12, min(28, word), _width(name)))
        for n, word, name in zip(natural, words, result.columns, strict=True)
    ]
    room = width - 2 * (len(natural) - 1)
    if sum(least) > room:
        return _blocks(result.columns, cells, width)
    widths = [min(n, max(room, 1)) for n in natural]
    while sum(widths) > room:  # the column gives way whose longest cell then takes the fewest lines
        open_ = (i for i in range(len(widths)) if widths[i] > least[i])
        widths[min(open_, key=lambda i: natural[i] / (widths[i] - 1))] -= 1
    numeric = [
        bool(cells) and all(row[i] is None or _is_number(row[i]) for row in result.rows) for i in range(len(widths))
    ]
    lines = []
    for row in [result.columns, ["-" * w for w in widths], *cells]:
        wrapped = [_wrap(cell, w) for cell, w in zip(row, widths, strict=True)]
        for i in range(max(map(len, wrapped), default=1)):
            parts = []
            for cell, w, right in zip(wrapped, widths, numeric, strict=True):
                text = cell[i] if i < len(cell) else ""
                pad = " " * (w - _width(text))
                parts.append(pad + text if right else text + pad)
            lines.append("  ".join(parts).rstrip())
    return "\n".join(lines) + "\n"


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float, Decimal)) and not isinstance(cell, bool)


def _blocks(columns: list[str], cells: list[list[str]], width: int) -> str:
    blocks = []
    for row in cells:
        lines = []
        for name, cell in zip(columns, row, strict=True):
            lines += _wrap(f"{name}: {cell}".rstrip(), max(width, 4), indent="  ")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + ("\n" if blocks else "")


def _visible(text: str) -> str:
    """Text for a terminal: line ends kept, other control and format characters written as escapes, tabs as blanks."""
    text = text.replace("\r\n", "\n").replace("\t", " ")
    if text.isprintable():
        return text
    odd = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in odd and c != "\n" else c for c in text)


def _width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most ``width`` columns, broken at blanks where there are any; words that are longer are split.

    All lines but the first start with ``indent``.
    """
    lines: list[str] = []

    def start() -> str:
        return indent if lines else ""

    for part in text.split("\n"):
        line, empty = start(), True
        for word in part.split(" "):
            if not empty and _width(line) + 1 + _width(word) <= width:
                line += " " + word
                continue
            if not empty:
                lines.append(line)
                line = start()
            while _width(line) + _width(word) > width:
                cut = len(word)
                while cut > 1 and _width(line) + _width(word[:cut]) > width:
                    cut -= 1
                lines.append(line + word[:cut])
                word, line = word[cut:], start()
            line, empty = line + word, False
        lines.append(line)
    return lines
