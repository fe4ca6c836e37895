"""``regatta plan``."""

from __future__ import annotations

from typing import Any

import click

from regatta_tools.cli.common import format_option, package_option, write_result


@click.command()
@click.argument("suite", type=click.Path())
@click.option("--cell", required=True, help="Cell of the package, such as insurance-us.")
@click.option("--judge", default="embedded", show_default=True, help="Model that would judge.")
@click.option("--agent", default="embedded", show_default=True, help="Model that would play the agent under test.")
@click.option("--answers", type=click.Choice(["per-fault", "per-scenario"]), help="As for `regatta run`.")
@click.option("--arms", help="As for `regatta run`.")
@click.option("--draws", type=click.IntRange(1), help="As for `regatta run`.")
@click.option("--scan", type=click.Choice(["first", "exhaustive"]), help="As for `regatta run`.")
@click.option("--prices", type=click.Path(), help="File of prices.  [default: the one that came with REGATTA]")
@format_option
@package_option
def plan(
    suite: str, cell: str, judge: str, agent: str, answers: str | None, arms: str | None, draws: int | None,
    scan: str | None, prices: str | None, form: str, package: str | None,
) -> None:  # fmt: skip
    """Say what a run of SUITE would take: calls, tokens, money, and which text would go to whom. Nothing is sent."""
    from regatta_tools.harness.planning import plan as make
    from regatta_tools.llm.prices import load
    from regatta_tools.report.planning import as_text

    wanted = {"answers": answers, "arms": arms, "draws": draws, "scan": scan, "package": package}
    options: dict[str, Any] = {k: v for k, v in wanted.items() if v is not None}
    result = make(suite, cell=cell, judge=judge, agent=agent, prices=load(prices), **options)
    write_result(result, form, None, as_text, None)
