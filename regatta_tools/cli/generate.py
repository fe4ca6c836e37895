"""``regatta generate``: suites written by a model from the context of a cell."""

from __future__ import annotations

import sys

import click

from regatta_tools.cli.common import package_option, write_json


@click.command()
@click.option("--cell", "cells", required=True, multiple=True, help="Cell, such as banking-vn; repeatable.")
@click.option("--strategy", "strategies", required=True, multiple=True, help="S1, S2, S3 or S4; repeatable.")
@click.option("--model", required=True, help="Who writes: a litellm name, embedded, scripted:FILE.")
@click.option("-n", "n", type=int, default=30, show_default=True, help="Scenarios of a suite.")
@click.option("--repeat", type=int, default=3, show_default=True, help="Suites of each cell and strategy.")
@click.option("--seed", default="0", show_default=True, help="Any word, for the calls and the hold-out.")
@click.option("--language", help="en or vi.  [default: the leading language of the cell]")
@click.option("--budget-tokens", type=int, metavar="N", help="Most tokens of a strategy's prompt.  [default: no limit]")
@click.option("--hold-out", type=int, default=0, metavar="K", help="Take K rules, and what leans on them, out first.")
@click.option("--batch", type=int, metavar="N", help="Scenarios of one call.  [default: 10; embedded: 1]")
@click.option("--pairs", is_flag=True, help="Ask for each scenario in both languages of the cell.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder.  [default: suites/<generator>]")
@click.option("--yes", is_flag=True, help="Send the text that is named to a hosted model without being asked.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the result.")  # fmt: skip
@package_option
def generate(
    cells: tuple[str, ...], strategies: tuple[str, ...], model: str, n: int, repeat: int, seed: str,
    language: str | None, budget_tokens: int | None, hold_out: int, batch: int | None, pairs: bool, out: str | None,
    yes: bool, form: str, package: str | None,
) -> None:  # fmt: skip
    """Have a model write suites, each with a receipt of what it was told and what became of every reply.

    The same command goes on where it stopped and asks nothing twice. Leaves with 1 where a suite is short.
    """
    from regatta_tools.generation import making
    from regatta_tools.llm.disclosure import disclosure, refuse_unasked
    from regatta_tools.report.generate import made_text, plan_text

    planned = making.plan(
        cell=cells, strategy=strategies, model=model, n=n, repeat=repeat, seed=seed, language=language,
        budget=budget_tokens, hold_out=hold_out, batch=batch, pairs=pairs, out=out, package=package,
    )  # fmt: skip
    lines = disclosure({model: ["generator"]})
    click.echo(plan_text(planned, lines), err=True)
    terminal = sys.stdin.isatty()
    refuse_unasked(lines, yes=yes, terminal=terminal)
    if lines and not yes:
        click.confirm("Send it?", abort=True, err=True)

    def progress(at: making.Progress) -> None:
        click.echo(f"{at.suite}: {at.done}/{at.n}, {at.calls} calls", err=True)

    done = []
    try:
        for made in planned.run(progress):
            done.append(made)
            if form == "text":
                click.echo(made_text(made))
    except KeyboardInterrupt:
        click.echo("interrupted: every reply is kept, the same command goes on from here", err=True)
        raise click.exceptions.Exit(130) from None
    if form == "json":
        write_json([made.as_dict() for made in done])
    if not all(made.complete for made in done):
        raise click.exceptions.Exit(1)
