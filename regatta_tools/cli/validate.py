"""``regatta validate``."""

from __future__ import annotations

import click

from regatta_tools.report.findings import WRITERS


@click.command()
@click.argument("path", required=False, type=click.Path())
@click.option("--as-of", metavar="DATE", help="Check the law for this date (default: each cell's own date).")
@click.option(
    "--changed-since", metavar="REV",
    help="Only what was brought in since REV and HEAD parted (git), uncommitted edits included.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(list(WRITERS)), default="text", show_default=True,
    help="Form of the result: github annotates lines of a pull request; sarif and junit are read by CI servers.",
)  # fmt: skip
@click.option("--output", metavar="FILE", type=click.Path(), help="Write the result to FILE, whole or not at all.")
def validate(path: str | None, as_of: str | None, changed_since: str | None, form: str, output: str | None) -> None:
    """Check a package, or a suite or label file.

    PATH is a folder with a datapackage.json, that file, or a suite file (.yaml, .json). Without it the
    package in this folder is checked, or else the one that came with REGATTA.

    Leaves with 0 where no finding is an error, and with 1 otherwise.
    """
    import regatta_tools
    from regatta_tools.report.findings import closing

    report = regatta_tools.validate(path, as_of=as_of, changed_since=changed_since)
    text = WRITERS[form](report)
    if output in (None, "-"):
        click.echo(text)
    else:
        from regatta_tools.files import replace_file

        replace_file(output, f"{text}\n".encode("utf-8", "backslashreplace"))
        click.echo(closing(report))
    if not report.ok:
        raise click.exceptions.Exit(1)
