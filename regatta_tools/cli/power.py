"""``regatta power``."""

from __future__ import annotations

from typing import Any

import click

from regatta_tools.cli.common import csv_format_option, output_option, package_option


def variances(_: Any, option: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """Pairs NAME=NUMBER as a dictionary (a click callback)."""
    out: dict[str, float] = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            out[name.strip()] = float(number)
        except ValueError as error:
            raise click.BadParameter(f"{text!r} is not of the form NAME=NUMBER", param=option) from error
    return out


@click.command()
@click.argument("runs", nargs=-1, type=click.Path())
@click.option("--archive", type=click.Path(), help="Folder of the study's public archive, instead of RUNS.")
@click.option("--records", type=click.Path(), help="A table of verdicts (CSV or Parquet), instead of RUNS.")
@click.option("--suites", type=click.Path(), help="CSV file: suite,strategy,generator,repeat (how suites were made).")
@click.option("--judge", "judges", multiple=True, help="Take the verdicts of this judge only (may be given again).")
@click.option("--arm", default="joint", show_default=True, help="Arm of the execution stage.")
@click.option("--any-target", is_flag=True, help="With --records: take requirements and faults that no package has.")
@click.option(
    "--measure", type=click.Choice(["RC", "FDR_d", "FDR_e", "Delta"]), default="FDR_e", show_default=True,
    help="What strategies are compared by.",
)  # fmt: skip
@click.option("--rate", type=float, help="Without verdicts: the rate that you expect, such as 0.5.")
@click.option(
    "--variance", "stated", multiple=True, callback=variances, metavar="EFFECT=NUMBER",
    help="State a variance, such as suite=0.01 (may be given again).",
)  # fmt: skip
@click.option("--cells", type=click.IntRange(1, 100_000), help="Cells of the study you plan.")
@click.option("--generators", type=click.IntRange(1, 100_000), help="Generators.")
@click.option("--repeats", type=click.IntRange(1, 100_000), help="Suites of a strategy in each cell by each generator.")
@click.option("--targets", type=click.IntRange(1, 100_000), help="Faults (requirements for RC) of a cell.")
@click.option("--draws", type=click.IntRange(1, 100_000), help="Draws of the agent's answers.")
@click.option("--difference", type=float, default=0.1, show_default=True, help="Difference that you want to see.")
@click.option("--power", "chance", type=float, default=0.8, show_default=True, help="Chance of seeing it.")
@click.option("--level", type=float, default=0.95, show_default=True, help="One minus the error of the test.")
@click.option(
    "--comparisons", type=click.IntRange(1, 10_000), default=1, show_default=True,
    help="Pairs of strategies that share this error (4 strategies: 6).",
)  # fmt: skip
@csv_format_option
@output_option
@package_option
def power(runs: tuple[str, ...], stated: dict[str, float], form: str, output: str | None, **options: Any) -> None:
    """Plan a comparison of strategies: the smallest difference it can see, what it takes, and where verdicts vary.

    Variances come from RUNS, --records or --archive, or are stated with --rate and --variance.
    """
    import regatta_tools
    from regatta_tools.cli.common import write_result
    from regatta_tools.report import power as report

    result = regatta_tools.power(runs=runs, variances=stated, **options)
    write_result(result, form, output, report.as_text, report.as_csv)
