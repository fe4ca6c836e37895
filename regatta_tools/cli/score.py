"""``regatta score``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_json


@click.command()
@click.argument("run", type=click.Path())
@format_option
@click.option("--out", type=click.Path(), help="Also write the evidence as JSON to this file.")
@package_option
def score(run: str, form: str, out: str | None, package: str | None) -> None:
    """Compute the evidence vector of a RUN folder: coverage, fault detection by stage, and what is missing."""
    import json

    from regatta_tools.files import replace_file
    from regatta_tools.measures.evidence import score as compute
    from regatta_tools.report.evidence import as_text

    evidence = compute(run, package=package)
    if out:
        text = json.dumps(evidence, ensure_ascii=False, indent=2, allow_nan=False)
        replace_file(out, f"{text}\n".encode())
    if form == "json":
        write_json(evidence)
    else:
        click.echo(as_text(evidence))
