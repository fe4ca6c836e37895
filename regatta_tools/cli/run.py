"""``regatta run``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import ProgressLine, package_option


@click.command()
@click.argument("suite", type=click.Path())
@click.option("--cell", required=True, help="Cell of the package, such as insurance-us.")
@click.option("--out", type=click.Path(), help="Folder of the run.  [default: runs/<suite>-<cell>]")
@click.option(
    "--judge", default="embedded", show_default=True, help="Model that judges: a litellm name, embedded, scripted:FILE."
)
@click.option("--agent", default="embedded", show_default=True, help="Model that plays the agent under test.")
@click.option(
    "--answers",
    type=click.Choice(["per-fault", "per-scenario"]),
    default="per-fault",
    show_default=True,
    help="A fresh answer for each fault (as published), or one answer judged for all faults (five times cheaper).",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the agent's sampling.")
@click.option("--require", type=click.Path(), help="Locked thresholds, which the run records (see `regatta require`).")
@package_option
def run(
    suite: str, cell: str, out: str | None, judge: str, agent: str, answers: str, seed: int, require: str | None,
    package: str | None,
) -> None:  # fmt: skip
    """Run SUITE against a faulty agent and journal every call and verdict.

    The same command goes on with a run that was broken off and repeats no journalled call. With the
    default, embedded, no key and no network are needed, and the result shows the way rather than
    judging. Score the run with `regatta score`.
    """
    import regatta_tools
    from regatta_tools.harness.store import RunStore
    from regatta_tools.report.evidence import who_judged

    line = ProgressLine()
    try:
        store: RunStore = regatta_tools.run(
            suite,
            cell=cell,
            out=out,
            judge=judge,
            agent=agent,
            answers=answers,
            seed=seed,
            require=require,
            package=package,
            progress=line,
        )
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
