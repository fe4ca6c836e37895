"""``regatta explain``."""

from __future__ import annotations

import re
import shutil

import click

#: Lines of an example that are shown: some change a whole file.
MOST_LINES = 12


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Say what a rule CODE means, why it matters and how to mend it (without CODE: list all).

    Two examples show what is wrong by the rule, and a near miss that is right: files of examples/rules, with
    the places where they differ from the clean package there.
    """
    from regatta_tools.errors import InputError
    from regatta_tools.rules.registry import rules
    from regatta_tools.validation.examples import differences, examples, shown_path

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
    width = min(shutil.get_terminal_size().columns, 100)
    click.echo()
    for name, text in (("Why ", found.why), ("Mend", found.mend)):
        click.echo(click.wrap_text(text, width, initial_indent=f"{name}  ", subsequent_indent=" " * 6))
    if found.query:
        click.echo(f"\nThe rule points at {found.table}.{found.field} of what this query finds:\n\n{found.query}")
    for example in examples(code=found.code):
        click.echo(f"\n{'Right' if example.right else 'Wrong'}  {shown_path(example.path)}")
        lines = differences(example)
        for line in lines[:MOST_LINES]:
            click.echo(f"       {line}")
        if len(lines) > MOST_LINES:
            click.echo(f"       and {len(lines) - MOST_LINES} more lines")
