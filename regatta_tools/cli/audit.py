"""``regatta audit``: are the obligations true, binding and in force, and who has looked."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from regatta_tools.cli.common import as_typed, package_option, write_json
from regatta_tools.report.findings import WRITERS, counted

texts_option = click.option(
    "--texts", type=click.Path(file_okay=False), envvar="REGATTA_TEXTS", show_envvar=True,
    help="Folder with texts of the law (docs/texts.md).",
)  # fmt: skip
cell_option = click.option("--cell", "cells", multiple=True, help="Only this cell; repeatable.")


@click.group(invoke_without_command=True)
@texts_option
@cell_option
@click.option("--requirement", "requirements", multiple=True, help="Only this requirement; repeatable.")
@click.option(
    "--checklist",
    type=click.Path(),
    metavar="DIR",
    help="Audit the JSON checklists of DIR instead of the package (docs/audit-checklist.md).",
)
@click.option("--as-of", metavar="DATE", help="Audit for this date (default: each cell's own date).")
@click.option(
    "--within-days",
    "within",
    metavar="N",
    type=click.IntRange(0, 36_525),
    help="Also list what starts or ends within N days of the date.",
)
@click.option(
    "--changed-since", metavar="REV",
    help="Only what was touched since REV and HEAD parted (git), uncommitted edits included.",
)  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "table", "github", "sarif", "junit"]),
    default="text",
    show_default=True,
    help="Form of the result; the last three hold the findings alone, as of `regatta validate`.",
)
@click.option("--output", metavar="FILE", type=click.Path(), help="Write the result to FILE, whole or not at all.")
@package_option
@click.pass_context
def audit(
    context: click.Context,
    texts: str | None,
    cells: tuple[str, ...],
    requirements: tuple[str, ...],
    checklist: str | None,
    as_of: str | None,
    within: int | None,
    changed_since: str | None,
    form: str,
    output: str | None,
    package: str | None,
) -> None:
    """Hold each obligation against the text of the law, and say who has read it.

    With --texts the machine looks the passages up and compares numbers, units, kinds of days, dates and force; without,
    only recorded readings speak. The report says by whom, and what is open.

    Leaves with 0 where nothing speaks against an obligation, and with 1 otherwise. What is not assessed is a warning.
    """
    if context.invoked_subcommand is not None:
        given = [p.opts[0] for p in context.command.params
                 if context.get_parameter_source(str(p.name)) is ParameterSource.COMMANDLINE]  # fmt: skip
        if given:
            raise click.UsageError(f"{', '.join(given)}: write options behind {context.invoked_subcommand}.")
        return
    import regatta_tools
    from regatta_tools.report import audit as reports

    if checklist is not None:
        _audit_checklist(
            checklist, texts, as_of, form, output, package,
            bool(cells or requirements or within is not None or changed_since),
        )  # fmt: skip
        return
    report = regatta_tools.audit(
        package, texts=texts, cells=cells, requirements=requirements, as_of=as_of, within=within,
        changed_since=changed_since,
    )  # fmt: skip
    text = reports.FORMS[form](report) if form in reports.FORMS else WRITERS[form](report.as_report())
    if output in (None, "-"):
        click.echo(text)
    else:
        from regatta_tools.files import replace_file

        replace_file(output, f"{text}\n".encode("utf-8", "backslashreplace"))
        click.echo(reports.closing(report))
    if not report.ok:
        raise click.exceptions.Exit(1)


def _audit_checklist(
    folder: str,
    texts: str | None,
    as_of: str | None,
    form: str,
    output: str | None,
    package: str | None,
    narrowed: bool,
) -> None:
    """The audit of a checklist of another making, which has no cells of ours and no findings of its own."""
    from regatta_tools.provenance.checklist import run_checklist
    from regatta_tools.report import checklist as reports

    if narrowed:
        raise click.UsageError(
            "--cell, --requirement, --within-days and --changed-since are about the package, not about a checklist."
        )
    if form not in reports.FORMS:
        raise click.UsageError(f"--format {form} is not for a checklist: use {', '.join(reports.FORMS)}.")
    report = run_checklist(folder, texts=texts, package=package, as_of=as_of)
    text = reports.FORMS[form](report)
    if output in (None, "-"):
        click.echo(text)
    else:
        from regatta_tools.files import replace_file

        replace_file(output, f"{text}\n".encode("utf-8", "backslashreplace"))
        click.echo(reports.closing(report))
    if not report.ok:
        raise click.exceptions.Exit(1)


@audit.command()
@texts_option
@cell_option
@click.option("--requirement", "requirements", multiple=True, help="Only this requirement; repeatable.")
@click.option("--all", "everything", is_flag=True, help="Also what a person has read already.")
@click.option("--unread", is_flag=True, help="Only what nobody has read as it stands: what `regatta validate` refuses.")
@click.option("--list", "listed", is_flag=True, help="A few words on each and no sheet; the default on a terminal.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the sheet to this file.")
@package_option
def todo(
    texts: str | None, cells: tuple[str, ...], requirements: tuple[str, ...], everything: bool, unread: bool,
    listed: bool, output: str | None, package: str | None,
) -> None:  # fmt: skip
    """Write a review sheet of what no person has read yet: CSV, or a workbook where FILE ends in .xlsx."""
    import sys

    from regatta_tools.files import replace_file
    from regatta_tools.provenance import review
    from regatta_tools.provenance.run import open_corpus, open_package, see_requirements

    if everything and unread:
        raise click.UsageError("--all and --unread contradict each other.")
    if listed and output:
        raise click.UsageError("--list is for the terminal, --output for the sheet.")
    held = open_package(package, cells=cells)
    see_requirements(held, cells, requirements)
    write = review.todo_workbook if output and output.lower().endswith(".xlsx") else review.todo
    which = review.ALL if everything else review.UNREAD if unread else review.NO_PERSON
    if listed or (not output and sys.stdout.isatty()):
        from regatta_tools.report.audit import todo_text

        click.echo(todo_text(review.wanted(held, cells=cells, requirements=requirements, which=which)))
        return
    sheet = write(held, open_corpus(texts) if texts else None, cells=cells, requirements=requirements, which=which)
    if output:
        replace_file(output, sheet)
        click.echo(f"{output}: fill in {', '.join(review.FILLED)}, then `regatta audit import {output}`", err=True)
    else:
        click.echo(sheet, nl=False)


@audit.command("read")
@click.option("--model", required=True, help="Model that reads, as litellm names it, or scripted:FILE.")
@texts_option
@cell_option
@click.option("--requirement", "requirements", multiple=True, help="Only this requirement; repeatable.")
@click.option("--yes", is_flag=True, help="Send the passages. Without it, only what would be sent to whom is said.")
@click.option(
    "--journal", type=click.Path(dir_okay=False), default="runs/audit-read.jsonl", show_default=True,
    help="File of all replies; with it the same command goes on where it stopped.",
)  # fmt: skip
@package_option
def read_(
    model: str, texts: str | None, cells: tuple[str, ...], requirements: tuple[str, ...], yes: bool, journal: str,
    package: str | None,
) -> None:  # fmt: skip
    """Have a model read what it has not read as it stands, and record that as readings of an AI.

    One question a citation. The reply has to quote the passage letter by letter; what does not, was refused or is not
    of its form records nothing. Leaves with 0 where all was read and is clean, and with 1 otherwise.
    """
    from regatta_tools.errors import InputError
    from regatta_tools.provenance import model_reading
    from regatta_tools.provenance.run import open_corpus, open_package, see_requirements
    from regatta_tools.report.audit import plan_text, read_text
    from regatta_tools.tables.writing import locate_for_writing

    held = open_package(locate_for_writing(package), cells=cells)
    see_requirements(held, cells, requirements)
    made = model_reading.plan(held, open_corpus(texts), model, cells=cells, requirements=requirements)
    click.echo(plan_text(made), err=True)
    if not made.questions:
        return
    if not yes:
        raise InputError("nothing was sent", code="U137", mend="give --yes to send these passages")

    def progress(done: int, total: int) -> None:
        click.echo(f"{done}/{total}", err=True)

    try:
        done = model_reading.read_all(made, Path(journal), progress=progress)
    except KeyboardInterrupt:
        click.echo("interrupted: every reply is kept, the same command goes on from here", err=True)
        raise click.exceptions.Exit(130) from None
    click.echo(read_text(made, done))
    if not done.ok:
        raise click.exceptions.Exit(1)


@audit.command("import")
@click.argument("sheet", type=click.Path(exists=True, dir_okay=False))
@texts_option
@package_option
def import_(sheet: str, texts: str | None, package: str | None) -> None:
    """Add the readings of a filled review sheet to audit.csv. All of them, or none.

    Without --texts the passages in the sheet are the evidence: each has to be the one whose hash is recorded.
    """
    from regatta_tools.provenance import readings, review
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.tables.writing import locate_for_writing

    found = review.import_sheet(Path(sheet))
    corpus = open_corpus(texts) if texts else None
    added = readings.record(open_package(locate_for_writing(package)), corpus, found)
    known = len(found) - len(added)
    click.echo(f"{counted(len(added), 'reading')} added" + (f", {known} known already" if known else ""))


@audit.command()
@click.argument("citation")
@click.option("--outcome", required=True, help="verified-clean, citation-defect, ...")
@click.option("--reader", required=True, callback=as_typed, help="Who read.")
@click.option("--kind", required=True, help="machine, ai, human or lawyer.")
@click.option("--reason-code", default="", help="What in particular is wrong.")
@click.option("--reason", default="", callback=as_typed, help="Why, in your words.")
@click.option("--evidence", default="", help="Where facts stand in the passage: fact=start-end ...")
@click.option("--decision", default="", callback=as_typed, help="What is to be done.")
@click.option("--date", "when", default=None, help="Day of the reading.  [default: today]")
@click.option(
    "--passage", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
    help="The words that you read, where you hold no text: they have to be the passage whose hash is recorded.",
)  # fmt: skip
@texts_option
@package_option
def record(
    citation: str, kind: str, when: str | None, passage: str | None, texts: str | None, package: str | None, **said: str
) -> None:
    """Add one reading of CITATION to audit.csv, with its evidence: --texts, or --passage (docs/reading.md)."""
    from datetime import date

    from regatta_tools.provenance import readings
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.tables.writing import locate_for_writing

    words = readings.words_of(Path(passage)) if passage else ""
    # The words given are the evidence, also where REGATTA_TEXTS names a folder.
    corpus = open_corpus(texts) if texts and not passage else None
    reading = readings.NewReading(
        citation, reader_kind=kind, date=when or date.today().isoformat(), passage=words, **said
    )
    added = readings.record(open_package(locate_for_writing(package)), corpus, [reading])
    click.echo(added[0] if added else "the reading is there already")


@audit.command("hash")
@texts_option
@cell_option
@click.option("--requirement", "requirements", multiple=True, help="Only this requirement; repeatable.")
@click.option("--changed", is_flag=True, help="Also replace hashes of passages that have changed.")
@package_option
def hash_(
    texts: str | None, cells: tuple[str, ...], requirements: tuple[str, ...], changed: bool, package: str | None
) -> None:
    """Record the hash of each held passage in citations.csv."""
    from regatta_tools.provenance.hashes import record_hashes
    from regatta_tools.provenance.run import open_corpus, open_package, see_requirements
    from regatta_tools.tables.writing import locate_for_writing

    held = open_package(locate_for_writing(package), cells=cells, described=True)
    see_requirements(held, cells, requirements)
    done = record_hashes(held, open_corpus(texts), cells=cells, requirements=requirements, changed=changed)
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
    from regatta_tools.provenance.run import open_package
    from regatta_tools.report.audit import agreement_text

    found = readings.agreement(open_package(package))
    if form == "json":
        write_json(found)
    else:
        click.echo(agreement_text(found))
