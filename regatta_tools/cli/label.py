"""``regatta label``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import as_typed, format_option, write_json


@click.group()
def label() -> None:
    """Have people label pairs of a run without knowing what the judge said."""


@label.command("out")
@click.argument("run", type=click.Path())
@click.option(
    "--stage", type=click.Choice(["rc", "design", "execution"]), default="design", show_default=True, help="Stage."
)  # fmt: skip
@click.option("-n", "n", type=click.IntRange(2), default=50, show_default=True, help="Pairs: half judged yes.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the draw and of the order.")
@click.option("-o", "--out", required=True, type=click.Path(), help="The sheet: .csv or .xlsx.")
def label_out(run: str, stage: str, n: int, seed: int, out: str) -> None:
    """Draw a blind, balanced sheet from RUN. The key that leads back stays in the folder of the run."""
    from regatta_tools.harness import labels

    made = labels.label_out(run, out, stage=stage, n=n, seed=seed)
    click.echo(f"{made['out']}: {made['items']} pairs, sheet {made['sheet']}")
    for note in made["notes"]:
        click.echo(f"note: {note}")
    click.echo(f"do not hand out {made['key']}: it says what the judge said")
    click.echo(f"next: fill in label (yes, no, or nothing), then regatta label in {out} --run {run} --by NAME")


@label.command("in")
@click.argument("sheet", type=click.Path())
@click.option("--run", required=True, type=click.Path(), help="Folder of the run that the sheet was drawn from.")
@click.option("--by", required=True, callback=as_typed, help="Who labelled.")
@click.option("--kind", type=click.Choice(["human", "lawyer", "ai"]), default="human", show_default=True, help="Kind.")
@click.option("--date", help="Day of the labels, such as 2026-12-31.  [default: today]")
@format_option
def label_in(sheet: str, run: str, by: str, kind: str, date: str | None, form: str) -> None:
    """Read a filled-in SHEET back and compare it with the judge. Labels are only ever added."""
    from regatta_tools.harness import labels
    from regatta_tools.report.agreement import as_text

    found = labels.label_in(sheet, run, by=by, kind=kind, date=date)
    if form == "json":
        write_json(found)
        return
    click.echo(f"{found['added']} labels added, {found['held']} there already, {found['open']} without a label")
    if found["agreement"] is not None:
        click.echo("\n" + as_text(found["agreement"]))
