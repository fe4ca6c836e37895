"""``regatta run``."""

from __future__ import annotations

from typing import Any

import click

from regatta_tools.cli.common import ProgressLine, package_option
from regatta_tools.cli.sending import ask_leave, yes_option


@click.command()
@click.argument("suite", type=click.Path())
@click.option("--cell", required=True, help="Cell of the package, such as insurance-us.")
@click.option("--out", type=click.Path(), help="Folder of the run.  [default: runs/<suite>-<cell>]")
@click.option(
    "--judge", default="embedded", show_default=True,
    help="Model that judges: a litellm name, embedded, scripted:FILE, replay:RUN.",
)  # fmt: skip
@click.option("--agent", default="embedded", show_default=True, help="Model that plays the agent under test.")
@click.option(
    "--arms", default="joint", show_default=True,
    help="What the agent carries, with commas between: joint (all faults, as published), isolated (one), control "
    "(none), sham (a harmless text of the same length).",
)  # fmt: skip
@click.option("--draws", type=int, default=1, show_default=True, help="Answers to each scenario in each arm.")
@click.option(
    "--scan", type=click.Choice(["first", "exhaustive"]), default="first", show_default=True,
    help="End a scan at the first success (as published), or at the last scenario, which pairs of arms need.",
)  # fmt: skip
@click.option(
    "--order", type=click.Choice(["suite", "relevance"]), default="suite", show_default=True,
    help="Order of a first-success scan: that of the suite, or the scenarios most like the target first.",
)  # fmt: skip
@click.option(
    "--answers", type=click.Choice(["per-fault", "per-scenario"]), default="per-fault", show_default=True,
    help="A fresh answer for each fault (as published), or one answer judged for all faults (five times cheaper).",
)  # fmt: skip
@click.option(
    "--live/--no-live", default=None,
    help="Put probes that show which faults the agent takes up.  [default: where isolated and control are run]",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the agent's sampling.")
@click.option("--require", type=click.Path(), help="Locked thresholds, which the run records (see `regatta require`).")
@click.option(
    "--concurrency", type=click.IntRange(1),
    help="Calls at once to one provider, at most.  [default: 8; 1 where no call leaves this machine]",
)  # fmt: skip
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), help="Stop before the run costs more.")
@click.option("--max-calls", type=click.IntRange(1), help="Stop after so many calls of the whole run.")
@click.option("--cache", type=click.Path(), help="Folder of replies that runs share.")
@click.option("--prices", type=click.Path(), help="File of prices.  [default: the one that came with REGATTA]")
@click.option(
    "--patience", type=click.FloatRange(0), default=0.0, show_default=True,
    help="Seconds for which an outage of a model that has answered before is waited out.",
)  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="Ask calls that failed once more.")
@yes_option
@package_option
def run(
    suite: str, judge: str, agent: str, require: str | None, prices: str | None, yes: bool, **options: Any
) -> None:  # fmt: skip
    """Run SUITE against an agent that carries faults and journal every call and verdict.

    The same command goes on with a run that was broken off and repeats no journalled call. With the
    default, embedded, no key and no network are needed, and the result shows the way rather than
    judging. `regatta plan` says before what a run would take. Score the run with `regatta score`.
    """
    import regatta_tools
    from regatta_tools.harness.store import RunStore
    from regatta_tools.llm.client import check_model
    from regatta_tools.llm.prices import load as load_prices
    from regatta_tools.report.evidence import who_judged

    parts: dict[str, list[str]] = {}
    for part, model in (("judge", judge), ("agent", agent)):
        check_model(model)
        parts.setdefault(model, []).append(part)
    ask_leave(parts, yes)
    line = ProgressLine()
    try:
        store: RunStore = regatta_tools.run(
            suite, judge=judge, agent=agent, require=require, prices=load_prices(prices) if prices else None,
            progress=line, **options,
        )  # fmt: skip
    except KeyboardInterrupt:
        line.close()
        click.echo("interrupted: every finished call is kept, the same command goes on from here", err=True)
        raise click.exceptions.Exit(130) from None
    finally:
        line.close()
    for note in store.notes:
        click.echo(f"note: {note}", err=True)
    if store.resent:
        click.echo(f"note: {store.resent} call(s) in flight at a kill were sent again", err=True)
    click.echo(f"{store.folder}: {len(store.verdicts)} verdicts, {len(store.calls)} calls")
    for text in who_judged(store.manifest["models"]):
        click.echo(f"  {text}")
    click.echo(f"next: regatta score {store.folder}" + (f" --require {require}" if require else ""))
