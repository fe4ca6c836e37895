"""``regatta compare``: strategies and generators beside each other."""

from __future__ import annotations

import sys
from typing import Any

import click

from regatta_tools.cli.common import csv_format_option, output_option, package_option, write_result


@click.command()
@click.argument("plan", type=click.Path())
@click.option("--out", type=click.Path(file_okay=False), help="Folder of suites and runs.  [default: comparisons/<id>]")
@click.option("--judge", help="Model that judges.  [default: that of the plan, or embedded]")
@click.option("--agent", help="Model that plays the agent.  [default: that of the plan, or embedded]")
@click.option("--answers", type=click.Choice(["per-fault", "per-scenario"]), help="A new answer a fault, or one.")
@click.option("--scan", type=click.Choice(["first", "exhaustive"]), help="Whether a scan stops at its first success.")
@click.option("--seed", type=int, help="Seed of the runs.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Most calls of a run at once to one provider.")
@click.option("--cache", type=click.Path(file_okay=False), help="Folder of replies that runs share.")
@click.option("--parity", is_flag=True, help="Also compare Vietnamese and English versions of scenarios.")
@click.option("--resamples", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True, help="Resamples.")
@click.option("--resampling-seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the resamples.")
@click.option("--yes", is_flag=True, help="Send the text that is named to hosted models without being asked.")
@csv_format_option
@output_option
@package_option
def compare(
    plan: str, out: str | None, parity: bool, resamples: int, resampling_seed: int, yes: bool, form: str,
    output: str | None, package: str | None, **settings: Any,
) -> None:  # fmt: skip
    """Generate, run and diagnose the suites of PLAN, and say where strategies differ and where nobody can tell.

    PLAN is a YAML file (docs/comparing.md) or a folder of suites. The same command goes on where it stopped.
    """
    from regatta_tools.harness import compare as comparing
    from regatta_tools.llm.disclosure import disclosure, refuse_unasked
    from regatta_tools.report import compare as report

    todo = comparing.plan(plan, out=out, package=package, **settings)
    lines = disclosure(todo.models())
    suites = len(todo.files) + sum(len(p.jobs) for p in todo.made)
    click.echo(f"{suites} suites into {todo.out}", err=True)
    for line in lines or ["nothing leaves this machine"]:
        click.echo(line, err=True)
    refuse_unasked(lines, yes=yes, terminal=sys.stdin.isatty())
    if lines and not yes:
        click.confirm("Send it?", abort=True, err=True)
    try:
        result = comparing.compare(
            todo, parity=parity, resamples=resamples, resampling_seed=resampling_seed,
            tell=lambda text: click.echo(text, err=True),
        )  # fmt: skip
    except KeyboardInterrupt:
        click.echo("interrupted: every finished call is kept, the same command goes on from here", err=True)
        raise click.exceptions.Exit(130) from None
    write_result(result, form, output, report.as_text, report.as_csv)
