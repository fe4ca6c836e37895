"""``regatta require``."""

from __future__ import annotations

import click


@click.group()
def require() -> None:
    """Fix what a suite has to reach, before it is run.

    Write thresholds into a file (docs/preregistration.md), lock it, name it when you start the run, and hold the run
    against it: `regatta run --require FILE`, then `regatta score RUN --require FILE`.
    """


@require.command("lock")
@click.argument("file", type=click.Path())
@click.option("--again", is_flag=True, help="Fix thresholds anew that changed after they were locked, with a new date.")
def lock(file: str, again: bool) -> None:
    """Write the date and the hash of its thresholds into FILE (YAML or JSON).

    A file that is locked and unchanged is left as it is.
    """
    from regatta_tools.measures.require import lock as write

    held = write(file, again=again)
    assert held.lock is not None
    click.echo(f"{file}: {len(held.value['thresholds'])} threshold(s) locked on {held.lock['at']}")
    click.echo(f"  sha256 {held.lock['sha256']}")
    click.echo(f"next: regatta run SUITE --cell CELL --require {file}")
