"""A package, or the schema, as a file of RDF: Turtle, N-Triples or JSON-LD; and a package back from one.

All three forms of a package hold the same triples, those of :func:`regatta_tools.graph.rdf.blocks`, and equal packages
give equal bytes. The writers for Turtle and JSON-LD are ours: they go from records to text in one pass, where the
serialisers of pyoxigraph and rdflib would first need a graph, and keep the order of the tables. ``docs/graph.md``
says what the triples mean; reading back is :func:`tables_from`.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from regatta_tools import paths
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import replace_file
from regatta_tools.graph import rdf
from regatta_tools.tables.formatter import in_order
from regatta_tools.tables.model import load_model
from regatta_tools.tables.package import Package, Record, table_specs

if TYPE_CHECKING:
    import pyoxigraph

#: What can be exported besides a package: files of ``schema/generated``.
SCHEMA_FILES = {"schema": "regatta.owl.ttl", "shapes": "regatta.shacl.ttl"}
_TO_QUOTE = re.compile('[,"\n\r]')
# Bytes of an export that are held in memory before it goes to a temporary file.
_IN_MEMORY = 64 * 1024 * 1024
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
# The local names that we write with a prefix: a part of those that Turtle allows, so that no reader stumbles.
_LOCAL = re.compile("[A-Za-z0-9_][A-Za-z0-9_-]*")


# A part of a package


def of_cells(package: Package, cells: Iterable[str]) -> Package:
    """The part of a package that belongs to some cells: their records, and what these refer to outside the cells.

    What is neither of a cell nor referred to (sources that only other cells cite, waivers) is left out. Raises
    :class:`InputError` (U103) for an unknown cell.
    """
    wanted = {package.cell(cell).id for cell in cells}
    kept: set[int] = set()
    waiting: list[Record] = []

    def keep(record: Record) -> None:
        if id(record) not in kept:
            kept.add(id(record))
            waiting.append(record)

    for record in package:
        if (record["cell"] if "cell" in record.spec.fields else record.key) in wanted:
            keep(record)
    while waiting:
        record = waiting.pop()
        for name, field in record.spec.fields.items():
            target = package.by_id.get(record[name]) if field["kind"] == "ref" and record[name] else None
            if target is not None:
                keep(target)
    records = {table: [r for r in rows if id(r) in kept] for table, rows in package.records.items()}
    return Package(package.root, package.descriptor, {table: rows for table, rows in records.items() if rows})


# Writing a package


def turtle(package: Package) -> Iterator[str]:
    """The package in Turtle, in pieces: prefixes, then one block a record, under a comment for each table."""
    prefixes = {**load_model()["prefixes"], "rdf": _RDF}
    names = {space: prefix for prefix, space in sorted(prefixes.items())}

    def iri(text: str) -> str:
        if text == rdf.RDF_TYPE:
            return "a"  # it stands nowhere but as a predicate
        cut = max(text.rfind("/"), text.rfind("#")) + 1
        prefix = names.get(text[:cut])
        if prefix is None or not _LOCAL.fullmatch(text, cut):
            return f"<{text}>"
        return f"{prefix}:{text[cut:]}"

    def typed(text: str, datatype: str) -> str:
        # Turtle has a short form for these two, which keeps the text as it is.
        if datatype in (rdf.XSD + "boolean", rdf.XSD + "integer"):
            return text
        return f"{rdf.quoted(text)}^^{iri(datatype)}"

    yield _heading(package)
    yield "".join(f"@prefix {prefix}: <{space}> .\n" for prefix, space in sorted(prefixes.items()))
    table = None
    for block in rdf.blocks(package, rdf.Syntax(iri, typed)):
        if block.table != table:
            table = block.table
            yield f"\n# {table or 'words for the values of enumerations'}\n"
        body = " ;\n    ".join([f"{predicate} {term}" for predicate, term in block.pairs])
        yield f"\n{block.subject} {body} .\n"


def _heading(package: Package) -> str:
    """Comment lines that name the package, from its descriptor."""
    described = package.descriptor
    licences = described.get("licenses")
    names = [e.get("name") for e in licences if isinstance(e, dict)] if isinstance(licences, list) else []
    lines = [[described.get("title"), described.get("version"), *names], [described.get("description")]]
    # Anybody may have written the descriptor, and a line end in it would end the comment.
    cleaned = [[_printable(part) for part in line if isinstance(part, str)] for line in lines]
    return "".join(f"# {', '.join(filter(None, line))}\n" for line in cleaned if any(line)) + "\n"


def _printable(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def ntriples(package: Package) -> Iterator[str]:
    """The package in N-Triples, in pieces."""
    return rdf.ntriples(package)


def jsonld(package: Package) -> Iterator[str]:
    """The package in JSON-LD 1.1, in pieces: the generated context, then one line a record.

    A record is the JSON object that its JSON Schema describes, with ``@type``, names in the form of their IRI
    (:func:`rdf.record_iri`, relative to ``@base``) and, as triples have it, the id once more as
    ``dcterms:identifier``. A text that has not the form of its type is written as a value object, which keeps the
    context from reading it as one.
    """
    context = _context()
    yield f'{{\n"@context": {json.dumps(context, ensure_ascii=False, indent=2)},\n"@graph": ['
    as_json = json.JSONEncoder(ensure_ascii=False).encode
    writers: dict[str, Callable[[Record], dict[str, Any]]] = {}
    used: set[tuple[str, str]] = set()
    comma = ""
    for record in package:
        if record.spec.name not in writers:
            writers[record.spec.name] = _json_writer(record, context, used)
        yield f"{comma}\n{as_json(writers[record.spec.name](record))}"
        comma = ","
    notation = _compact(rdf.NOTATION, context)
    for meaning, text in sorted(used):
        yield f"{comma}\n{as_json({'@id': meaning, notation: text})}"
        comma = ","
    yield "\n]\n}\n"


def _context() -> dict[str, Any]:
    return json.loads(_generated("regatta.context.jsonld"))["@context"]


def _compact(iri: str, context: dict[str, Any]) -> str:
    """An IRI as a key: by a prefix of the context where one fits, else as it is."""
    for prefix, space in context.items():
        if isinstance(space, str) and space.endswith(("/", "#")) and prefix != "@base" and iri.startswith(space):
            return f"{prefix}:{iri.removeprefix(space)}"
    return iri


def _json_writer(
    first: Record, context: dict[str, Any], used: set[tuple[str, str]]
) -> Callable[[Record], dict[str, Any]]:
    """The function that turns records of one table into JSON objects; enum values in use go into ``used``."""
    spec = first.spec
    base = rdf.id_base()
    columns = [
        (_compact(field["uri"], context) if name == spec.identifier else name, _json_value(field, used))
        for name, field in spec.fields.items()
    ]

    def write(record: Record) -> dict[str, Any]:
        iri = rdf.subject(record)
        relative = iri.removeprefix(base)
        # Resolvers differ on empty segments, which only records without a key have.
        whole = not all(relative.split("/"))
        out: dict[str, Any] = {"@type": spec.class_name, spec.identifier or "@id": iri if whole else relative}
        for (key, value), text in zip(columns, record.values, strict=True):
            if text:
                out[key] = value(text)
        return out

    return write


def _json_value(field: dict[str, Any], used: set[tuple[str, str]]) -> Callable[[str], Any]:
    """The function that turns a filled cell of a field into a JSON value."""
    kind = field["kind"]
    if kind == "ref":
        base = rdf.id_base()
        return rdf.Memo(lambda text: rdf.record_iri(text).removeprefix(base)).__getitem__
    if kind == "enum":
        values = load_model()["enums"][field["enum"]]["values"]

        def word(text: str) -> Any:
            if text not in values:
                return {"@value": text}
            used.add((values[text]["meaning"], text))
            return text

        return rdf.Memo(word).__getitem__
    if not rdf.has_datatype(kind):
        return rdf.nfc

    def typed(text: str) -> Any:
        if not rdf.datatype_of(text, kind):
            return {"@value": text}
        return text == "true" if kind == "boolean" else text

    return rdf.Memo(typed).__getitem__


#: The forms by name.
FORMATS: dict[str, Callable[[Package], Iterator[str]]] = {"turtle": turtle, "ntriples": ntriples, "jsonld": jsonld}


# Writing the schema


def schema(what: str, form: str) -> str:
    """The OWL ontology (``schema``) or the SHACL shapes (``shapes``) in a form of :data:`FORMATS`.

    Turtle is the generated file itself. In the other forms blank nodes are numbered in the order of that file, so that
    the bytes do not depend on the run.
    """
    text = _generated(SCHEMA_FILES[what])
    if form == "turtle":
        return text
    import pyoxigraph as ox

    names: dict[Any, Any] = {}

    def named(term: Any) -> Any:
        if isinstance(term, ox.BlankNode):
            return names.setdefault(term, ox.BlankNode(f"b{len(names)}"))
        return term

    by_subject: dict[Any, list[Any]] = {}
    for quad in ox.parse(text.encode("utf-8"), format=ox.RdfFormat.TURTLE):
        triple = ox.Triple(named(quad.subject), quad.predicate, named(quad.object))
        by_subject.setdefault(triple.subject, []).append(triple)
    triples = [triple for group in by_subject.values() for triple in group]
    made = ox.serialize(triples, format=_oxigraph_format(form)).decode("utf-8")
    return made if made.endswith("\n") else made + "\n"


def _generated(name: str) -> str:
    try:
        return (paths.generated_dir() / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentProblem(f"the schema cannot be read: {error}", place=name, mend="make schema") from error


# Reading back


def _oxigraph_format(form: str) -> pyoxigraph.RdfFormat:
    import pyoxigraph as ox

    known = {"turtle": ox.RdfFormat.TURTLE, "ntriples": ox.RdfFormat.N_TRIPLES, "jsonld": ox.RdfFormat.JSON_LD}
    return known[form]


def parse(text: str | bytes, form: str) -> pyoxigraph.Store:
    """The triples of a text in a form of :data:`FORMATS`, as a store in memory. No address is opened.

    Raises :class:`InputError` (U127) where the text is not of the form.
    """
    import pyoxigraph as ox

    store = ox.Store()
    content = text.encode("utf-8") if isinstance(text, str) else text
    try:
        store.bulk_load(input=content, format=_oxigraph_format(form))
    except SyntaxError as error:
        place = f"line {error.lineno}, column {error.offset}" if error.lineno else ""
        said = " ".join(str(error).split())[:200]
        raise InputError(f"this is not {form}: {said}", code="U127", place=place) from error
    return store


def tables_from(graph: Any) -> dict[str, str]:
    """The tables of a package, from its triples: the text of each CSV file by path below the root.

    ``graph`` is what :func:`rdf.records_from` takes. The files are in the form of `regatta fmt`, rows by id, because a
    graph keeps no order. Write them, and ``regatta_tools.tables.descriptor`` makes the descriptor.
    """
    specs = table_specs()
    files: dict[str, list[list[str]]] = {}
    for table, rows in rdf.records_from(graph).items():
        spec = specs[table]
        for row in rows:
            path = _path(spec.scope, row.get("cell", ""), table)
            files.setdefault(path, []).append([row[name] for name in spec.columns])
    made = {}
    for path, cells in sorted(files.items()):
        spec = specs[Path(path).stem]
        made[path] = "".join(map(_csv_line, [spec.columns, *in_order(cells, spec)]))
    return made


def _csv_line(cells: list[str]) -> str:
    # Not the csv module: with LF for line ends it leaves a lone CR without quotes, and then reads two rows.
    quoted = ('"' + cell.replace('"', '""') + '"' if _TO_QUOTE.search(cell) else cell for cell in cells)
    return ",".join(quoted) + "\n"


def _path(scope: str, cell: str, table: str) -> str:
    if scope != "package" and not re.fullmatch("[a-z0-9-]+", cell):
        # It becomes the name of a folder, and the graph may be anybody's.
        raise InputError(f"a record of {table} is in the cell {cell!r}, which is no name of a folder", code="U127")
    parts = {"package": [], "cell": [cell], "context": [cell, "context"]}[scope]
    return "/".join(["instruments", *parts, f"{table}.csv"])


# Files


def write_file(path: Path | str, pieces: Iterable[str]) -> None:
    """Write pieces of text to a file in UTF-8, whole or not at all.

    Raises :class:`EnvironmentProblem` where the disk or the folder does not take it.
    """
    replace_file(path, (piece.encode("utf-8") for piece in pieces))


def write_stream(stream: IO[bytes], pieces: Iterable[str]) -> None:
    """Write pieces of text to a stream in UTF-8, only when all of them are made."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as made:
        made.writelines(piece.encode("utf-8") for piece in pieces)
        made.seek(0)
        shutil.copyfileobj(made, stream, 1024 * 1024)
    stream.flush()
