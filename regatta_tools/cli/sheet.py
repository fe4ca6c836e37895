"""``regatta sheet``: a cell as an Excel workbook, and back."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_json


@click.group()
def sheet() -> None:
    """Edit a cell in Excel: export it as a workbook, and bring it back through a check."""


@sheet.command("out")
@click.argument("cell")
@click.option("-o", "--out", type=click.Path(), help="File to write.  [default: CELL.xlsx]")
@click.option("--overwrite", is_flag=True, help="Drop edits that the file holds and the package does not.")
@package_option
def out(cell: str, out: str | None, overwrite: bool, package: str | None) -> None:
    """Write CELL as one workbook: a sheet a table, drop-downs, descriptions, sources to look up.

    A workbook of the same cell that is there already is made anew, and the notes on its cells are kept.
    """
    from regatta_tools.report.sheets import out_text
    from regatta_tools.sheets.export import sheet_out

    click.echo(out_text(sheet_out(cell, out=out, package=package, overwrite=overwrite)))


@sheet.command("in")
@click.argument("workbook", type=click.Path())
@click.option("--check", is_flag=True, help="Say what would change and what is wrong; write nothing.")
@click.option("--allow-removals", is_flag=True, help="Remove the records that have no row in the workbook.")
@click.option("--cell", help="Insist that it is a workbook of this cell.")
@package_option
@format_option
def in_(workbook: str, check: bool, allow_removals: bool, cell: str | None, package: str | None, form: str) -> None:
    """Bring WORKBOOK back into the CSV files of its cell.

    Damage by spreadsheets, edits made on both sides and whatever `regatta validate` would say of the
    result are found first; nothing is written where one of them is an error.
    """
    from regatta_tools.report.sheets import in_text
    from regatta_tools.sheets.bring_back import sheet_in

    done = sheet_in(workbook, package=package, cell=cell, check=check, allow_removals=allow_removals)
    if form == "json":
        write_json(done.as_dict())
    else:
        click.echo(in_text(done, check=check))
    if not done.ok:
        raise click.exceptions.Exit(1)
