"""``regatta sources``: the texts of the law that you hold."""

from __future__ import annotations

from pathlib import Path

import click

from regatta_tools.cli.audit import texts_option
from regatta_tools.cli.common import as_typed, format_option, package_option, write_json
from regatta_tools.report.findings import WRITERS


@click.group()
def sources() -> None:
    """Hold texts of the law, for `regatta audit` to read (docs/texts.md). The project ships none."""


@sources.command("list")
@texts_option
@format_option
@package_option
def list_(texts: str | None, form: str, package: str | None) -> None:
    """List the sources of the package with the texts that are held of them."""
    from regatta_tools.provenance.holding import holdings
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.report.sources import list_text

    held = holdings(open_package(package), open_corpus(texts))
    if form == "json":
        write_json({"sources": [holding.as_dict() for holding in held]})
    else:
        click.echo(list_text(held))


@sources.command()
@texts_option
@click.option("--format", "form", type=click.Choice(list(WRITERS)), default="text", show_default=True,
              help="Form of the result, as of `regatta validate`.")  # fmt: skip
@package_option
def verify(texts: str | None, form: str, package: str | None) -> None:
    """Check each held text: encoding, header, date, sections, language, and that its source is one of the package.

    Leaves with 1 where a finding is an error.
    """
    from regatta_tools.provenance.holding import verify as verify_texts
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.rules.findings import Report

    corpus = open_corpus(texts)
    held = [text for texts_ in corpus.texts.values() for text in texts_]
    found = verify_texts(open_package(package), corpus)
    sections = sum(len(text.sections) for text in held)
    report = Report(tuple(found), files=corpus.files, records=sections, checked=str(corpus.folder))
    click.echo(WRITERS[form](report))
    if not report.ok:
        raise click.exceptions.Exit(1)


@sources.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--source", required=True, help="Id of the source, as in sources.csv.")
@click.option("--as-of", metavar="DATE", required=True, help="Day or month of the text: 2026-11-30, 2026-11.")
@texts_option
@click.option("--retrieved-from", callback=as_typed, default="", help="Where the text was taken from.")
@package_option
def add(file: str, source: str, as_of: str, texts: str | None, retrieved_from: str, package: str | None) -> None:
    """Cut FILE into sections and add it to the folder of texts.

    FILE is plain text, HTML, a PDF with a text layer, or XML of the eCFR. Sections are recognised by headings
    (§ 1005.6, Section 12, Điều 5) or by lines `## LOCATOR`. Look at what was added before you rely on it.
    """
    from regatta_tools.provenance.corpus import Corpus
    from regatta_tools.provenance.holding import add as add_text
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.report.sources import added_text

    corpus = Corpus(Path(texts)) if texts and not Path(texts).exists() else open_corpus(texts)
    added = add_text(
        open_package(package), corpus, Path(file), source=source, as_of=as_of, retrieved_from=retrieved_from
    )
    click.echo(added_text(added))


@sources.command()
@click.argument("source")
@click.argument("old", default="")
@click.argument("new", default="")
@texts_option
@format_option
@package_option
def diff(source: str, old: str, new: str, texts: str | None, form: str, package: str | None) -> None:
    """What a newer text of SOURCE touches: the passages that changed, and the facts that no longer stand.

    OLD and NEW are dates or names of files; without them the two latest texts are compared. Leaves with 1 where a
    passage is touched.
    """
    from regatta_tools.provenance.holding import diff as compare
    from regatta_tools.provenance.run import open_corpus, open_package
    from regatta_tools.report.sources import diff_text

    found = compare(open_package(package), open_corpus(texts), source, old, new)
    if form == "json":
        write_json(found.as_dict())
    else:
        click.echo(diff_text(found))
    if found.touched:
        raise click.exceptions.Exit(1)
