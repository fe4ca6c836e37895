"""Saying which text goes to whom, and asking for leave; for every command that calls models."""

from __future__ import annotations

import sys

import click

yes_option = click.option("--yes", is_flag=True, help="Send text to hosted models without asking (for CI).")


def ask_leave(models: dict[str, list[str]], yes: bool) -> None:
    """Say what goes where, and ask where a terminal is there. ``models`` as
    :func:`~regatta_tools.llm.disclosure.disclosure` takes it. Aborts where the answer is no."""
    from regatta_tools.llm.disclosure import disclosure, refuse_unasked

    lines = disclosure(models)
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    refuse_unasked(lines, yes=yes, terminal=terminal)
    for line in lines:
        click.echo(line, err=True)
    if lines and not yes:
        click.confirm("Send it?", abort=True, err=True)
