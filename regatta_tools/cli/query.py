"""``regatta query``: ask the package a named question, or one's own in SPARQL."""

from __future__ import annotations

import click


@click.command("query")
@click.argument("name", required=False)
@click.option("--text", metavar="SPARQL", help="A query of your own.")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False),
    help="A file with a query of your own; its header may declare parameters (docs/queries.md).",
)
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="The value of a parameter; repeatable.")
@click.option("--list", "list_", is_flag=True, help="List the named queries with their parameters.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Form of the answer.",
)
@click.option("--suite", "suites", multiple=True, type=click.Path(), help="Ask a suite file too; repeatable.")
@click.option(
    "--package", "path", metavar="PATH", help="The package to ask; default: this folder's, or the built-in one."
)
def query(
    name: str | None,
    text: str | None,
    file: str | None,
    settings: tuple[str, ...],
    list_: bool,
    form: str,
    suites: tuple[str, ...],
    path: str | None,
) -> None:
    """Ask the package a question: a named query, or SPARQL of your own.

    Queries only read, and no address is ever opened. A CONSTRUCT or DESCRIBE query is answered in N-Triples.
    """
    import shutil

    from regatta_tools.errors import InputError
    from regatta_tools.graph import query as queries

    width = shutil.get_terminal_size().columns
    if list_:
        if name or text is not None or file or settings:
            raise click.UsageError("--list stands alone (with --format).")
        _write(queries.write(queries.listing(), form, width=width))
        return
    if sum(given is not None for given in (name, text, file)) != 1:
        raise click.UsageError("Give a NAME, --text or --file, and only one of them (--list shows the names).")
    values: dict[str, str] = {}
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not sign or not key:
            raise click.UsageError(f"--set {setting}: write it as NAME=VALUE.")
        if key in values:
            raise click.UsageError(f"--set {key} is given twice.")
        values[key] = value
    if name is not None:
        asked = queries.named_query(name)
    elif text is not None:
        asked = queries.parse_header(text)
    else:
        try:
            with open(file, encoding="utf-8-sig") as stream:
                asked = queries.parse_header(stream.read(), origin=file)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the query cannot be read: {error}", code="U120", place=file) from error
    bindings = queries.bind(asked, values)

    from regatta_tools.validation.run import load

    package = load(path)
    beside = ""
    if suites:
        from regatta_tools.graph.suites import read, triples

        beside = triples(read(suites))
    result = queries.run_query(package, asked.text, bindings, origin=file or "", beside=beside)
    _write(queries.write(result, form, width=width))
    if not result.rows:
        click.echo("The query can be read and found nothing.", err=True)
        for line in queries.unknown_names(asked.text, package):
            click.echo(f"  {line}", err=True)


def _write(text: str) -> None:
    # Bytes: UTF-8 whatever the locale says, and line ends as they are (CSV has its own).
    click.echo(text.encode("utf-8"), nl=False)
