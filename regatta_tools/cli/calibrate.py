"""``regatta calibrate``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_json
from regatta_tools.cli.sending import ask_leave, yes_option


@click.command()
@click.argument("suite", required=False, type=click.Path())
@click.option("--labels", type=click.Path(), help="Labels of SUITE (a LabelSet file).")
@click.option("--cell", "cells", multiple=True, help="Cell; may be given more than once.  [default: all]")
@click.option(
    "--stage", "stages", multiple=True, type=click.Choice(["rc", "design", "execution"]), help="Stage.  [default: all]"
)  # fmt: skip
@click.option("--judge", default="embedded", show_default=True, help="Judge: a litellm name, embedded, scripted:FILE.")
@click.option("--run", "of_run", type=click.Path(), help="Also correct the rates of this run.")
@click.option("--folder", type=click.Path(), help="Where calls and figures are kept.  [default: runs/calibration]")
@click.option("--out", type=click.Path(), help="Also write the figures as JSON to this file.")
@click.option("--concurrency", type=click.IntRange(1), help="Calls at once to one provider, at most.")
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), help="Stop before all cells cost more.")
@click.option("--max-calls", type=click.IntRange(1), help="Stop after so many calls of all cells.")
@click.option("--cache", type=click.Path(), help="Folder of replies that runs share.")
@click.option("--prices", type=click.Path(), help="File of prices.  [default: the one that came with REGATTA]")
@click.option("--retry-failed", is_flag=True, help="Ask calls that failed once more.")
@yes_option
@package_option
@format_option
def calibrate(
    suite: str | None, labels: str | None, cells: tuple[str, ...], stages: tuple[str, ...], judge: str,
    of_run: str | None, folder: str | None, out: str | None, prices: str | None, yes: bool,
    package: str | None, form: str, **options: object,
) -> None:  # fmt: skip
    """Measure how often a judge errs: sensitivity and specificity, with exact intervals.

    Puts the gold probes of the package to the judge. The same command goes on where it was broken off. With SUITE and
    --labels it holds the similarity baseline against the labels of that suite instead.
    """
    import json

    from regatta_tools.files import replace_file
    from regatta_tools.harness import calibration

    if suite is not None or labels is not None:
        from regatta_tools.report.evidence import agreement_text

        if suite is None or labels is None or len(cells) != 1:
            raise click.UsageError("a labelled suite takes SUITE, --labels and one --cell")
        result = calibration.hold_against_labels(suite, labels, cell=cells[0], judge=judge, package=package)
        if form == "json":
            write_json(result)
        else:
            click.echo(agreement_text(result))
        return
    from regatta_tools.llm.client import check_model
    from regatta_tools.llm.prices import load as load_prices
    from regatta_tools.report.calibration import as_text, of_run_text

    check_model(judge)
    ask_leave({judge: ["calibration"]}, yes)
    found = calibration.calibrate(
        judge, cells=cells, stages=stages, package=package, folder=folder,
        prices=load_prices(prices) if prices else None, **options
    )  # fmt: skip
    rates = calibration.of_run(of_run, found) if of_run else None
    if out:
        replace_file(out, (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode())
    if form == "json":
        write_json(found if rates is None else {"calibration": found, "rates": rates})
        return
    click.echo(as_text(found))
    if rates is not None:
        click.echo("\n" + of_run_text(rates))
    click.echo(f"\n{calibration.file_of(found, folder)}")
