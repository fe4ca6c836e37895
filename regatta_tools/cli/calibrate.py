"""``regatta calibrate``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_json


@click.command()
@click.argument("suite", type=click.Path())
@click.option("--labels", required=True, type=click.Path(), help="Labels of the suite (a LabelSet file).")
@click.option("--cell", required=True, help="Cell of the package.")
@click.option("--judge", default="embedded", show_default=True, help="Judge to hold against the labels.")
@package_option
@format_option
def calibrate(suite: str, labels: str, cell: str, judge: str, package: str | None, form: str) -> None:
    """Hold a judge against labels: sensitivity, specificity and kappa of J_RC and J_D over all pairs of SUITE."""
    from regatta_tools.harness.calibration import hold_against_labels
    from regatta_tools.report.evidence import agreement_text

    result = hold_against_labels(suite, labels, cell=cell, judge=judge, package=package)
    if form == "json":
        write_json(result)
    else:
        click.echo(agreement_text(result))
