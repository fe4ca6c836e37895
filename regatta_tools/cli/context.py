"""``regatta context``: what a generator of suites would be told of a cell."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_json


@click.command()
@click.option("--cell", required=True, help="Cell whose context is given, such as banking-vn.")
@click.option("--strategy", required=True, help="S1, S2, S3 or S4 (docs/generation.md).")
@click.option("-n", "n", type=int, default=30, show_default=True, help="Scenarios that the prompt asks for.")
@click.option("--budget-tokens", type=int, metavar="N", help="Most tokens of the whole prompt.  [default: no limit]")
@click.option("--hold-out", type=int, default=0, metavar="K", help="Take K rules, and what leans on them, out first.")
@click.option("--seed", default="0", show_default=True, help="Decides which rules are held out; any word.")
@click.option("--language", help="en or vi.  [default: the leading language of the cell]")
@format_option
@package_option
def context(
    cell: str,
    strategy: str,
    n: int,
    budget_tokens: int | None,
    hold_out: int,
    seed: str,
    language: str | None,
    form: str,
    package: str | None,
) -> None:
    """Show the exact prompt that a generator of suites would get, and what of the context is in it.

    The prompt goes to standard output, the summary of its receipt to standard error. With --format
    json: `prompt`, `tokens`, `cases`, and `receipt` with `included` and `left_out`. No model is called.
    """
    from regatta_tools.generation.run import prompt_for
    from regatta_tools.report.context import receipt_text

    done = prompt_for(
        cell, strategy, n, budget=budget_tokens, hold_out=hold_out, seed=seed, language=language, package=package
    )
    if form == "json":
        write_json(done.as_dict())
    else:
        click.echo(done.text)
        click.echo("\n" + receipt_text(done), err=True)
