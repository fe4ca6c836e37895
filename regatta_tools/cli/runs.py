"""``regatta runs``: stored runs, and a run as a table."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, package_option, write_result


@click.group(invoke_without_command=True)
@click.option("--in", "folder", type=click.Path(), default="runs", show_default=True, help="Folder of the runs.")
@format_option
@package_option
@click.pass_context
def runs(context: click.Context, folder: str, form: str, package: str | None) -> None:
    """List stored runs: how far they are, their calls and price, and what has no verdict."""
    if context.invoked_subcommand:
        return
    from regatta_tools.harness import showing
    from regatta_tools.report.planning import runs_as_text

    write_result(showing.runs(folder, package=package), form, None, runs_as_text, None)


@runs.command()
@click.argument("run", type=click.Path())
@click.option("--to", required=True, type=click.Path(), help="File to write: .jsonl, .csv or .parquet.")
def export(run: str, to: str) -> None:
    """Write everything that RUN holds as one table: verdicts, replies, prompts, tokens, prices."""
    from regatta_tools.harness import showing

    count = showing.export(run, to)
    click.echo(f"wrote {to}: {count} rows", err=True)
