"""``regatta cell``: begin a cell, and see how far it is."""

from __future__ import annotations

import click

from regatta_tools.cli.common import as_typed, format_option, package_option, write_json


@click.group()
def cell() -> None:
    """Begin a cell of your own, and see how far it is (docs/new-cell.md)."""


@cell.command()
@click.argument("id", callback=as_typed)
@click.option("--title", required=True, callback=as_typed, help='Title for people, such as "Insurance, United States".')
@click.option("--domain", required=True, callback=as_typed, help="Line of business, such as insurance.")
@click.option("--jurisdiction", required=True, help="Country as ISO 3166 code, such as US or VN.")
@click.option("--languages", help="en, or vi-en for Vietnamese with English beside it.  [default: by jurisdiction]")
@click.option("--persona", callback=as_typed, help="Who the agent under test is, as its base prompt says.")
@click.option("--as-of", metavar="DATE", help="Day for which the cell states the law.  [default: today]")
@click.option("--start-package", is_flag=True, help="Make a package of the folder, where it holds none.")
@package_option
def new(
    id: str,
    title: str,
    domain: str,
    jurisdiction: str,
    languages: str | None,
    persona: str | None,
    as_of: str | None,
    start_package: bool,
    package: str | None,
) -> None:
    """Write the folder of a new cell ID: headers of all tables, and one worked example.

    The example is a true item of a cell that REGATTA ships. It shows the form, is no item of the new
    cell, and nothing is scored as long as it is there. Works on the package in the current folder.
    """
    from regatta_tools.cells.new import new_cell
    from regatta_tools.report.cells import new_text

    done = new_cell(
        id,
        title=title,
        domain=domain,
        jurisdiction=jurisdiction,
        languages=languages,
        persona=persona,
        as_of=as_of,
        package=package,
        start_package=start_package,
    )
    click.echo(new_text(done))


@cell.command()
@click.argument("id", required=False)
@click.option("--runs", type=click.Path(), default="runs", show_default=True, help="Folder that holds runs.")
@format_option
@package_option
def status(id: str | None, runs: str, form: str, package: str | None) -> None:
    """Show the six steps of a cell (of all cells without ID): what is there, what is missing, what shows it."""
    from regatta_tools.cells.status import cell_status
    from regatta_tools.report.cells import status_text

    found = cell_status(id, package=package, runs=runs)
    if form == "json":
        write_json([status.as_dict() for status in found])
    else:
        click.echo(status_text(found))
