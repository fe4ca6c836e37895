"""``regatta export``: the package, or the schema, as RDF."""

from __future__ import annotations

import click

from regatta_tools.cli.common import package_option


@click.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["turtle", "ntriples", "jsonld"]),
    default="turtle",
    show_default=True,
    help="Form of RDF; all hold the same triples.",
)
@click.option(
    "--what",
    type=click.Choice(["package", "schema", "shapes"]),
    default="package",
    show_default=True,
    help="The instruments, the OWL ontology, or the SHACL shapes.",
)
@click.option("--cell", "cells", metavar="CELL", multiple=True, help="Only this cell with its sources; repeatable.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="File to write, whole or not at all.")
@package_option
def export(form: str, what: str, cells: tuple[str, ...], output: str | None, package: str | None) -> None:
    """Write the instruments as RDF (Turtle, N-Triples or JSON-LD).

    A package with errors is not exported. Equal packages give equal bytes. docs/graph.md says what the triples mean.
    """
    import sys

    from regatta_tools.graph import export as library

    if what != "package":
        if cells or package is not None:
            raise click.UsageError(f"--cell and --package do not go with --what {what}.")
        pieces = iter([library.schema(what, form)])
    else:
        from regatta_tools.validation.run import load

        loaded = load(package)
        pieces = library.FORMATS[form](library.of_cells(loaded, cells) if cells else loaded)
    if output is not None and output != "-":
        library.write_file(output, pieces)
    else:
        library.write_stream(sys.stdout.buffer, pieces)
