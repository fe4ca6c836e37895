"""``regatta fmt``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, write_json


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@click.option("--check", is_flag=True, help="Write nothing; say which files differ, from which line.")
@format_option
def fmt(paths: tuple[str, ...], check: bool, form: str) -> None:
    """Bring tables into their canonical form, without losing anything.

    Columns in the order of the schema, rows in the order of their ids, commas, UTF-8 without byte-order
    mark, LF, Unicode form NFC, no white space at the edges of cells, quotes only where they are needed.
    Semicolon and tab files are converted. A file that cannot be read beyond doubt is refused and stays.

    PATH is a package folder, a folder or tables inside one (default: the package around this folder).

    Leaves with 1 where a file is refused, or with --check where one is not canonical, and else with 0.
    """
    from regatta_tools.report.formatting import as_dict, as_text
    from regatta_tools.tables.formatter import format_paths

    reports = format_paths(paths or (".",), check=check)
    if form == "json":
        write_json(as_dict(reports))
    else:
        click.echo(as_text(reports))
    if not all(report.ok for report in reports):
        raise click.exceptions.Exit(1)
