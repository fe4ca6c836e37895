"""``regatta diagnose``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import csv_format_option, output_option, package_option


@click.command()
@click.argument("runs", nargs=-1, type=click.Path())
@click.option("--archive", type=click.Path(), help="Folder of the study's public archive, instead of RUNS.")
@click.option("--records", type=click.Path(), help="A table of verdicts (CSV or Parquet), instead of RUNS.")
@click.option(
    "--suites", type=click.Path(),
    help="CSV file that says how the suites of RUNS were made: suite,strategy,generator,repeat.",
)  # fmt: skip
@click.option("--judge", "judges", multiple=True, help="Take the verdicts of this judge only (may be given again).")
@click.option("--arm", default="joint", show_default=True, help="Arm of the execution stage.")
@click.option("--any-target", is_flag=True, help="With --records: take requirements and faults that no package has.")
@csv_format_option
@output_option
@click.option("--plots", type=click.Path(), help="Also write the figures to this folder, as SVG and PNG.")
@click.option("--reproduction", type=click.Path(), help="With --archive: write the page on reproduction to this file.")
@click.option("--resamples", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True, help="Resamples.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the resamples.")
@package_option
def diagnose(
    runs: tuple[str, ...], archive: str | None, records: str | None, suites: str | None, judges: tuple[str, ...],
    arm: str, any_target: bool, form: str, output: str | None, plots: str | None, reproduction: str | None,
    resamples: int, seed: int, package: str | None,
) -> None:  # fmt: skip
    """Compute the diagnostics V1 to V4 over many suites: of RUNS, of a table of verdicts, or of the study's archive.

    RUNS are run folders, such as runs/*. With --archive the published figures stand beside ours.
    """
    import json
    from pathlib import Path

    import regatta_tools
    from regatta_tools.files import replace_file
    from regatta_tools.measures import reproduction as published
    from regatta_tools.report import diagnose as report

    if reproduction and not archive:
        raise click.UsageError("--reproduction needs --archive")
    result = regatta_tools.diagnose(
        archive=archive, runs=runs, records=records, package=package, suites=suites, any_target=any_target,
        judges=judges, arm=arm, resamples=resamples, seed=seed,
    )  # fmt: skip
    rows, outside = None, ()
    if archive and (form == "text" or reproduction):
        rows, outside = published.beside(archive, result)
    if form == "json":
        text = json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False)
    elif form == "csv":
        text = report.as_csv(result).rstrip("\n")
    else:
        text = report.as_text(result, rows, outside)
    if plots:
        from regatta_tools.report.plots import draw

        for path in draw(result, Path(plots)):
            click.echo(f"wrote {path}", err=True)
    if reproduction and rows is not None:
        command = "regatta diagnose --archive DIR --reproduction docs/reproduction.md"
        replace_file(reproduction, report.reproduction_page(result, rows, outside, command).encode("utf-8"))
        click.echo(f"wrote {reproduction}", err=True)
    if output:
        replace_file(output, (text + "\n").encode("utf-8"))
    else:
        click.echo(text)
