"""Records as RDF and back, by the compiled schema alone: no class or column is named here.

=====================  =====================================================================================
a record               a subject, see :func:`subject`, with the class IRI as its ``rdf:type``
a cell with text       one triple whose predicate is the IRI of the field; an empty cell is no triple
string                 a plain literal, or a language-tagged one where the field has a language
date, boolean, number  a literal of the XSD type
uri                    a literal of type ``xsd:anyURI`` (an address is data here, nothing to follow)
enum                   the IRI that the schema gives as the value's meaning
ref                    the subject of the record that is named
=====================  =====================================================================================

Text that does not have the form of its type (a date 2024-02-30, an unknown enum value) stays a plain
literal: nothing is lost, and the SHACL shapes object to it. Texts are in Unicode form NFC and are written
as they are, not as escapes. Besides, each enum value in use has ``skos:notation`` with its text, so that a
query can show ``at-most`` instead of an IRI.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from regatta_tools.errors import InputError
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Package, Record, TableSpec, table_specs

if TYPE_CHECKING:
    import pyoxigraph

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
XSD = "http://www.w3.org/2001/XMLSchema#"
NOTATION = "http://www.w3.org/2004/02/skos/core#notation"
_PLAIN = re.compile("[A-Za-z0-9_-]*")
_ESCAPES = {code: f"\\u{code:04X}" for code in (*range(0x20), 0x7F)} | {
    ord(char): "\\" + name for char, name in zip('"\\\n\r\t\b\f', '"\\nrtbf', strict=True)
}
_TO_ESCAPE = re.compile('[\x00-\x1f"\\\\\x7f]')
# Datatype of a kind, and the texts that are written with it. The forms for numbers are those of
# regatta_tools.tables.package; other spellings of a number would be changed by stores that compute with them.
_TYPES = {
    "date": ("date", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    "boolean": ("boolean", re.compile(r"true|false")),
    "integer": ("integer", re.compile(r"-?(0|[1-9][0-9]*)")),
    "decimal": ("decimal", re.compile(r"-?[0-9]+(\.[0-9]+)?")),
    "float": ("float", re.compile(r"-?[0-9]+(\.[0-9]+)?")),
    "uri": ("anyURI", re.compile(r".*", re.DOTALL)),
}


# Names


@lru_cache(maxsize=1)
def id_base() -> str:
    """The namespace of records, from the prefix ``rid`` of the schema."""
    return load_model()["prefixes"]["rid"]


def record_iri(*parts: str) -> str:
    """The IRI of a record: ``record_iri(id)``, or ``record_iri(table, value, ...)`` for a table without ids.

    One rule: each part in UTF-8, where every byte but ASCII letters, digits, ``-`` and ``_`` becomes ``%XX``
    (the percent sign too, and the dot, so that no part is ``.`` or ``..``); parts joined by ``/``. Any two
    different sequences of parts have different IRIs, and :func:`record_parts` undoes it. The IRI is ASCII.
    Raises :class:`InputError` for a lone surrogate, which is no text.
    """
    if len(parts) == 1 and _PLAIN.fullmatch(parts[0]):
        return id_base() + parts[0]
    try:
        return id_base() + "/".join(_encode(part) for part in parts)
    except UnicodeEncodeError as error:
        raise InputError("a lone surrogate is no character of a name", mend="save the file as UTF-8") from error


def _encode(part: str) -> str:
    if _PLAIN.fullmatch(part):
        return part
    return "".join(chr(b) if _PLAIN.fullmatch(chr(b)) else f"%{b:02X}" for b in part.encode("utf-8"))


def record_parts(iri: str) -> tuple[str, ...]:
    """The parts that :func:`record_iri` was given. Raises ``ValueError`` for an IRI that it does not write."""
    base = id_base()
    if not iri.startswith(base):
        raise ValueError(f"{iri} is no name of a record")
    parts = tuple(unquote_to_bytes(part).decode("utf-8") for part in iri[len(base) :].split("/"))
    if record_iri(*parts) != iri:
        raise ValueError(f"{iri} is not in the one form of names of records")
    return parts


def subject(record: Record) -> str:
    """The IRI of a record: of its id, else of its table and first unique key, else of its table, file and line.

    The table is part of the name where there is no id, because two tables may have equal keys.
    """
    spec = record.spec
    if spec.identifier:
        return record_iri(nfc(record[spec.identifier]))
    for names in spec.unique_keys.values():
        return record_iri(spec.name, *(nfc(record[name]) for name in names))
    return record_iri(spec.name, f"{record.file}:{record.line}")


@lru_cache(maxsize=1)
def meanings() -> dict[str, str]:
    """The text of each enum value that a table can hold, by the IRI of its meaning."""
    model = load_model()
    enums = {f["enum"] for spec in table_specs().values() for f in spec.fields.values() if f["kind"] == "enum"}
    return {value["meaning"]: text for name in sorted(enums) for text, value in model["enums"][name]["values"].items()}


def short(iri: str) -> str:
    """An IRI as people know it: id of a record (``table/key`` without ids), text of an enum value, or itself."""
    if iri in meanings():
        return meanings()[iri]
    try:
        return "/".join(record_parts(iri))
    except ValueError:
        return iri


# Writing


def nfc(text: str) -> str:
    """A text in Unicode form NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def quoted(text: str) -> str:
    """A text in double quotes, with the escapes that N-Triples and Turtle share."""
    return f'"{text.translate(_ESCAPES)}"' if _TO_ESCAPE.search(text) else f'"{text}"'


def literal(text: str, *, datatype: str = "", language: str = "") -> str:
    """A literal in N-Triples. ``datatype`` is an IRI."""
    suffix = f"@{language}" if language else f"^^<{datatype}>" if datatype else ""
    return quoted(text) + suffix


def has_datatype(kind: str) -> bool:
    """Whether texts of a kind become literals of a datatype where they have its form."""
    return kind in _TYPES


def datatype_of(text: str, kind: str) -> str:
    """The datatype with which a cell of a field of ``kind`` is written; empty for a plain literal.

    That is so for kinds without a datatype, and where the text has not the form of its kind.
    """
    if kind not in _TYPES:
        return ""
    name, form = _TYPES[kind]
    return XSD + name if form.fullmatch(text) and (kind != "date" or _is_date(text)) else ""


def typed_literal(text: str, kind: str, language: str = "") -> str:
    """The literal in N-Triples for a cell of a field of ``kind`` (plain where the text has not its form)."""
    if kind in _TYPES:
        return literal(text, datatype=datatype_of(text, kind))
    return literal(text, language=language)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


class Syntax(NamedTuple):
    """How a format writes an IRI, and a literal of a datatype (its text, the IRI of the datatype)."""

    iri: Callable[[str], str]
    typed: Callable[[str, str], str]


N_TRIPLES = Syntax(lambda iri: f"<{iri}>", lambda text, datatype: literal(text, datatype=datatype))


class Block(NamedTuple):
    """All triples of one subject: predicates and objects in the terms of a :class:`Syntax`.

    ``table`` is that of the record; empty where the subject is a value of an enumeration.
    """

    table: str
    subject: str
    pairs: list[tuple[str, str]]


def blocks(package: Package, syntax: Syntax) -> Iterator[Block]:
    """The triples of a package, one block a record and then one for each enum value in use.

    The order is that of tables, files and columns, and of IRIs for the enum values: equal packages give equal
    blocks. The first pair of a record is its class.
    """
    compiled: dict[str, _Columns] = {}
    used: set[tuple[str, str]] = set()
    kind_of_record = syntax.iri(RDF_TYPE)
    for record in package:
        spec = record.spec
        if spec.name not in compiled:
            columns = [(syntax.iri(f["uri"]), _encoder(f, syntax, used)) for f in spec.fields.values()]
            compiled[spec.name] = _Columns((kind_of_record, syntax.iri(spec.uri)), columns)
        class_pair, columns = compiled[spec.name]
        texts = zip(columns, record.values, strict=True)
        pairs = [(predicate, encode(text)) for (predicate, encode), text in texts if text]
        pairs.insert(0, class_pair)
        yield Block(spec.name, syntax.iri(subject(record)), pairs)
    for meaning, text in sorted(used):
        yield Block("", syntax.iri(meaning), [(syntax.iri(NOTATION), quoted(text))])


class _Columns(NamedTuple):
    class_pair: tuple[str, str]
    columns: list[tuple[str, Callable[[str], str]]]


class Memo(dict[str, Any]):
    """What is made of texts that come again and again, made once of each; bounded, since a package may be large."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self._make = make

    def __missing__(self, text: str) -> Any:
        if len(self) >= 100_000:
            self.clear()
        made = self[text] = self._make(nfc(text))
        return made


def _encoder(field: dict[str, Any], syntax: Syntax, used: set[tuple[str, str]]) -> Callable[[str], str]:
    """The function that writes a filled cell of a field as a term; enum values go into ``used``, meaning first."""
    kind = field["kind"]
    if kind == "ref":
        return Memo(lambda text: syntax.iri(record_iri(text))).__getitem__
    if kind == "enum":
        values = load_model()["enums"][field["enum"]]["values"]

        def value(text: str) -> str:
            if text not in values:
                return quoted(text)
            used.add((values[text]["meaning"], text))
            return syntax.iri(values[text]["meaning"])

        return Memo(value).__getitem__
    if kind in _TYPES:

        def typed(text: str) -> str:
            datatype = datatype_of(text, kind)
            return syntax.typed(text, datatype) if datatype else quoted(text)

        return Memo(typed).__getitem__
    suffix = f"@{field['language']}" if field.get("language") else ""

    def words(text: str) -> str:
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        return f'"{text}"{suffix}' if not _TO_ESCAPE.search(text) else quoted(text) + suffix

    return words


def ntriples(package: Package) -> Iterator[str]:
    """The package in N-Triples, all lines of one subject a string; equal packages give equal bytes."""
    for _, name, pairs in blocks(package, N_TRIPLES):
        yield "".join([f"{name} {predicate} {term} .\n" for predicate, term in pairs])


def store(package: Package) -> pyoxigraph.Store:
    """The package as a store in memory, in the default graph."""
    return store_of("".join(ntriples(package)))


def store_of(text: str) -> pyoxigraph.Store:
    """A store in memory with the triples of a text in N-Triples."""
    import pyoxigraph

    made = pyoxigraph.Store()
    made.bulk_load(input=text.encode("utf-8"), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return made


# Reading back


def records_from(graph: Any) -> dict[str, list[dict[str, str]]]:
    """The records of a graph, by table name: each as column -> text, empty text where there is no triple.

    ``graph`` is N-Triples text, a ``pyoxigraph.Store`` or an ``rdflib.Graph``. It undoes :func:`ntriples` but for the
    order of rows, which a graph does not keep: tables come in schema order and rows in the order of their subjects.
    Triples of other vocabularies are passed over. Raises :class:`InputError` where one record has two values
    for a column.
    """
    specs = {spec.uri: spec for spec in table_specs().values()}
    enums = load_model()["enums"]
    texts = {name: {value["meaning"]: text for text, value in enum["values"].items()} for name, enum in enums.items()}
    types: dict[str, TableSpec] = {}
    cells: dict[str, list[tuple[str, tuple[str, str | None]]]] = {}
    for s, p, o, language in _plain_triples(graph):
        if p == RDF_TYPE:
            if o in specs:
                types[s] = specs[o]
        else:
            cells.setdefault(s, []).append((p, (o, language)))
    found: dict[str, list[dict[str, str]]] = {spec.name: [] for spec in table_specs().values()}
    for name, spec in sorted(types.items()):
        columns = {(f["uri"], f.get("language", "")): f for f in spec.fields.values()}
        row = dict.fromkeys(spec.columns, "")
        for predicate, (value, language) in cells.get(name, []):
            field = columns.get((predicate, language or ""))
            if field is None:
                continue
            if language is None and field["kind"] == "ref":
                value = record_parts(value)[0]
            elif language is None and field["kind"] == "enum":
                value = texts[field["enum"]].get(value, value)
            if row[field["name"]] and row[field["name"]] != value:
                raise InputError(f"{short(name)} has two values for {field['name']}")
            row[field["name"]] = value
        found[spec.name].append(row)
    return {name: rows for name, rows in found.items() if rows}


def _plain_triples(graph: Any) -> Iterable[tuple[str, str, str, str | None]]:
    """Subject, predicate, object and language of each triple; the language is ``None`` for an IRI, "" for none."""
    if isinstance(graph, str):
        graph = store_of(graph)
    if hasattr(graph, "quads_for_pattern"):
        for quad in graph:
            o = quad.object
            is_literal = hasattr(o, "language")
            yield quad.subject.value, quad.predicate.value, o.value, (o.language or "") if is_literal else None
    else:
        for s, p, o in graph:
            is_literal = hasattr(o, "language")
            yield str(s), str(p), str(o), (o.language or "") if is_literal else None
