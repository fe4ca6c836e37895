"""``regatta audit``: are the obligations true, binding and in force, and who has looked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from regatta_tools.cli.common import package_option, write_json

texts_option = click.option(
    "--texts", type=click.Path(file_okay=False), envvar="REGATTA_TEXTS", show_envvar=True,
    help="Folder with texts of the law (docs/audit.md).",
)  # fmt: skip
cell_option = click.option("--cell", "cells", multiple=True, help="Only this cell; repeatable.")


class AuditGroup(click.Group):
    """A group that is a command of its own where no subcommand is named."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        return super().resolve_command(ctx, args)


@click.group(cls=AuditGroup, invoke_without_command=True)
@texts_option
@cell_option
@click.option("--requirement", "requirements", multiple=True, help="Only this requirement; repeatable.")
@click.option("--as-of", metavar="DATE", help="Audit for this date (default: each cell's own date).")
@click.option("--format", "form", default="text", show_default=True, help="text, json, table, or a format of findings.")
@package_option
@click.pass_context
def audit(
    context: click.Context,
    texts: str | None,
    cells: tuple[str, ...],
    requirements: tuple[str, ...],
    as_of: str | None,
    form: str,
    package: str | None,
) -> None:
    """Hold each obligation against the text of the law, and say who has read it.

    With --texts the machine looks the passages up and compares numbers, units, kinds of days, dates and force; without,
    only recorded readings speak. No lawyer has read anything: the report says what is open.

    Leaves with 0 where nothing speaks against an obligation, and with 1 otherwise.
    """
    if context.invoked_subcommand is not None:
        return
    from regatta_tools.provenance.run import run_audit
    from regatta_tools.report import audit as reports

    report = run_audit(package, texts=texts, cells=cells, requirements=requirements, as_of=as_of)
    if form == "json":
        write_json(report.as_dict())
    elif form == "table":
        click.echo(reports.as_table(report))
    elif form == "text":
        click.echo(reports.as_text(report))
    else:
        raise click.UsageError(f"--format {form}: use text, json or table.")
    if not report.ok:
        raise click.exceptions.Exit(1)


@audit.command()
@texts_option
@cell_option
@click.option("--all", "everything", is_flag=True, help="Also what a person has read already.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the sheet to this file.")
@package_option
def todo(texts: str | None, cells: tuple[str, ...], everything: bool, output: str | None, package: str | None) -> None:
    """Write a review sheet (CSV) of what no person has read yet."""
    from regatta_tools.files import replace_file
    from regatta_tools.provenance import readings
    from regatta_tools.provenance.run import open_corpus
    from regatta_tools.tables.package import read

    sheet = readings.todo(read(package), open_corpus(texts) if texts else None, cells=cells, everything=everything)
    if output:
        replace_file(Path(output), sheet)
        click.echo(f"{output}: fill in {', '.join(readings.FILLED)}, then `regatta audit import {output}`", err=True)
    else:
        click.echo(sheet, nl=False)


@audit.command("import")
@click.argument("sheet", type=click.Path(exists=True, dir_okay=False))
@texts_option
@package_option
def import_(sheet: str, texts: str | None, package: str | None) -> None:
    """Add the readings of a filled review sheet to audit.csv. All of them, or none."""
    from regatta_tools.provenance import readings
    from regatta_tools.provenance.run import open_corpus
    from regatta_tools.tables.package import read
    from regatta_tools.tables.writing import locate_for_writing

    found = readings.import_sheet(Path(sheet))
    added = readings.record(read(locate_for_writing(package)), open_corpus(texts), found)
    click.echo(f"{len(added)} readings added")


@audit.command()
@click.argument("citation")
@click.option("--outcome", required=True, help="verified-clean, citation-defect, ...")
@click.option("--reader", required=True, help="Who read.")
@click.option("--kind", required=True, help="machine, ai, human or lawyer.")
@click.option("--reason-code", default="", help="What in particular is wrong.")
@click.option("--reason", default="", help="Why, in your words.")
@click.option("--evidence", default="", help="Where facts stand in the passage: fact=start-end ...")
@click.option("--decision", default="", help="What is to be done.")
@click.option("--date", "when", default=None, help="Day of the reading.  [default: today]")
@texts_option
@package_option
def record(citation: str, kind: str, when: str | None, texts: str | None, package: str | None, **said: str) -> None:
    """Add one reading of CITATION to audit.csv."""
    from datetime import date

    from regatta_tools.provenance import readings
    from regatta_tools.provenance.run import open_corpus
    from regatta_tools.tables.package import read
    from regatta_tools.tables.writing import locate_for_writing

    reading = readings.NewReading(citation, reader_kind=kind, date=when or date.today().isoformat(), **said)
    (added,) = readings.record(read(locate_for_writing(package)), open_corpus(texts), [reading])
    click.echo(added)


@audit.command("hash")
@texts_option
@cell_option
@click.option("--changed", is_flag=True, help="Also replace hashes of passages that have changed.")
@package_option
def hash_(texts: str | None, cells: tuple[str, ...], changed: bool, package: str | None) -> None:
    """Record the hash of each held passage in citations.csv."""
    from regatta_tools.provenance.hashes import record_hashes
    from regatta_tools.provenance.run import open_corpus
    from regatta_tools.tables.package import read
    from regatta_tools.tables.writing import locate_for_writing

    done = record_hashes(read(locate_for_writing(package)), open_corpus(texts), cells=cells, changed=changed)
    for citation, why in done.untaken.items():
        click.echo(f"{citation}: {why}", err=True)
    click.echo(f"{len(done.new)} new, {len(done.changed)} changed, {len(done.right)} as recorded, "
               f"{len(done.untaken)} not held")  # fmt: skip


@audit.command()
@package_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def agreement(package: str | None, form: str) -> None:
    """How far readers of the same citations agree."""
    from regatta_tools.provenance import readings
    from regatta_tools.report.audit import agreement_text
    from regatta_tools.tables.package import read

    found = readings.agreement(read(package))
    if form == "json":
        write_json(found)
    else:
        click.echo(agreement_text(found))
