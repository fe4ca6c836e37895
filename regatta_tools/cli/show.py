"""``regatta show``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import as_typed, format_option, write_result


@click.command()
@click.argument("run", type=click.Path())
@click.argument("call", callback=as_typed)
@format_option
def show(run: str, call: str, form: str) -> None:
    """Show a CALL of RUN: the prompt as it was sent, the reply as it came, and the verdicts read in it.

    CALL is its number in the journal, its key, or a part of its key that no other call has.
    """
    from regatta_tools.harness import showing
    from regatta_tools.report.planning import call_as_text

    write_result(showing.show(run, call), form, None, call_as_text, None)
