"""``regatta explain``."""

from __future__ import annotations

import re

import click


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Say what a rule CODE means, why it matters and how to mend it (without CODE: list all)."""
    from regatta_tools.errors import InputError
    from regatta_tools.rules.registry import rules

    known = rules()
    if code is None:
        for rule in known.values():
            click.echo(f"{rule.code}  {rule.severity:<7}  {rule.title}")
        return
    found = known.get(code.upper())
    if found is None:
        if re.fullmatch("(U1|E)[0-9]{2,3}", code.upper()):
            # Errors that stop a command; a rule finds something and goes on.
            what = f"{code!r} is no rule but marks an error of input or environment, which its own message explains"
        else:
            what = f"there is no rule {code!r}"
        raise InputError(what, code="U111", mend="`regatta explain` lists all rules")
    click.echo(f"{found.code}  {found.title}  ({found.severity}, since {found.since})")
    click.echo(f"\nWhy   {found.why}\nMend  {found.mend}")
    if found.query:
        click.echo(f"\nThe rule points at {found.table}.{found.field} of what this query finds:\n\n{found.query}")
