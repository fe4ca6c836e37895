"""``regatta score``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_json


@click.command()
@click.argument("run", type=click.Path())
@click.option("--require", type=click.Path(), help="Thresholds to hold the run against (see `regatta require`).")
@format_option
@click.option("--out", type=click.Path(), help="Also write the evidence as JSON to this file.")
@click.option("--kill-matrix", type=click.Path(), help="Also write which scenario exposes which fault, as CSV.")
@package_option
def score(
    run: str, require: str | None, form: str, out: str | None, kill_matrix: str | None, package: str | None
) -> None:  # fmt: skip
    """Compute the evidence vector of a RUN folder: coverage, fault detection by stage, and what is missing.

    With --require it leaves with 0 where all thresholds are met, 1 where one is not met, 4 where missing verdicts
    leave one undecided, and 5 where the file changed after it was locked or was not fixed before the run.
    """
    import json

    from regatta_tools.files import replace_file
    from regatta_tools.harness.store import RunStore
    from regatta_tools.measures.evidence import score as compute
    from regatta_tools.report.evidence import as_text

    store = RunStore.read(run)
    evidence = compute(store, package=package)
    if kill_matrix:
        from regatta_tools.measures.exposure import kill_table

        replace_file(kill_matrix, kill_table(store, package=package).encode("utf-8"))
    if require:
        from regatta_tools.measures.require import decide, exit_code

        evidence["decision"] = decide(require, evidence, store)
    if out:
        text = json.dumps(evidence, ensure_ascii=False, indent=2, allow_nan=False)
        replace_file(out, f"{text}\n".encode())
    if form == "json":
        write_json(evidence)
    else:
        click.echo(as_text(evidence))
    if require:
        if form != "json":
            from regatta_tools.report.require import as_text as decision_text

            click.echo("\n" + decision_text(evidence["decision"]))
        raise click.exceptions.Exit(exit_code(evidence["decision"]))
