"""``regatta validate``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, write_json


@click.command()
@click.argument("path", required=False, type=click.Path())
@click.option("--as-of", metavar="DATE", help="Check the law for this date (default: each cell's own date).")
@format_option
def validate(path: str | None, as_of: str | None, form: str) -> None:
    """Check a package, or a suite or label file.

    PATH is a folder with a datapackage.json, that file, or a suite file (.yaml, .json). Without it the
    package in this folder is checked, or else the one that came with REGATTA.

    Leaves with 0 where no finding is an error, and with 1 otherwise.
    """
    import regatta_tools
    from regatta_tools.report.findings import as_text

    report = regatta_tools.validate(path, as_of=as_of)
    if form == "json":
        write_json(report.as_dict())
    else:
        click.echo(as_text(report))
    if not report.ok:
        raise click.exceptions.Exit(1)
