"""``regatta agree``."""

from __future__ import annotations

from typing import Any

import click

from regatta_tools.cli.common import as_typed, csv_format_option, output_option, package_option


def words(context: Any, option: click.Parameter, text: str | None) -> list[str]:
    """A list of words with commas between them, each as it was typed (a click callback)."""
    typed = as_typed(context, option, text)
    return [] if typed is None else [word.strip() for word in typed.split(",") if word.strip()]


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--item", callback=words, help="Columns that say what was rated: run,stage,target.  [default: item]")
@click.option("--rater", default="rater", show_default=True, callback=as_typed, help="Column of raters (tidy table).")
@click.option("--value", default="value", show_default=True, callback=as_typed, help="Column of values (tidy table).")
@click.option("--rater-columns", callback=words, help="Columns of ratings, one a rater (wide table).")
@click.option("--scale", callback=words, help="All values in order, such as no,yes or 1,2,3,4,5.")
@click.option(
    "--weights", type=click.Choice(["nominal", "linear", "quadratic"]), default="nominal", show_default=True,
    help="How far values are apart: all alike, or by steps on the scale (needs --scale).",
)  # fmt: skip
@click.option("--strata", callback=as_typed, help="Column, or rater: resample within its values.")
@click.option("--cluster", callback=as_typed, help="Column of what hangs together, resampled whole.")
@click.option("--by", callback=words, help="Columns by which to give results apart, such as stage.")
@click.option("--missing", callback=words, help="Further words for no rating, such as NA,unsure.")
@click.option("--resamples", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True, help="Resamples.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the resamples.")
@csv_format_option
@output_option
@package_option
def agree(files: tuple[str, ...], form: str, output: str | None, **options: Any) -> None:
    """Compare raters (people, judges): agreement, kappa, PABAK, AC1, alpha, and which way they differ.

    FILES is one CSV table, tidy (columns item, rater, value) or wide (one column a rater), or label files of one
    suite (YAML, JSON). An empty cell or an outcome without a verdict is no rating.
    """
    import regatta_tools
    from regatta_tools.cli.common import write_result
    from regatta_tools.report import agreement as report

    write_result(regatta_tools.agree(*files, **options), form, output, report.as_text, report.as_csv)
