"""``regatta rejudge``."""

from __future__ import annotations

import click

from regatta_tools.cli.common import format_option, write_json
from regatta_tools.cli.sending import ask_leave, yes_option


@click.command()
@click.argument("run", type=click.Path())
@click.option("--judge", "judges", multiple=True, help="A further judge; may be given more than once.")
@click.option(
    "--stage", "stages", multiple=True, type=click.Choice(["rc", "iss", "ac", "design", "execution"]),
    help="Stage.  [default: all]",
)  # fmt: skip
@click.option("--concurrency", type=click.IntRange(1), help="Calls at once to one provider, at most.")
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), help="Stop before a judge costs more.")
@click.option("--max-calls", type=click.IntRange(1), help="Stop after so many calls of a judge.")
@click.option("--cache", type=click.Path(), help="Folder of replies that runs share.")
@yes_option
@format_option
def rejudge(run: str, judges: tuple[str, ...], yes: bool, form: str, **options: object) -> None:
    """Have further judges judge the pairs of a stored RUN, from the same prompts, and print how far all agree.

    Verdicts go into RUN/panel; the run itself stays as it is. Without --judge the panel that is there is compared.
    """
    from regatta_tools.harness import panel
    from regatta_tools.llm.client import check_model
    from regatta_tools.report.calibration import panel_text

    for judge in judges:
        check_model(judge)
    ask_leave({judge: ["judge"] for judge in judges}, yes)
    for judge in judges:
        store = panel.rejudge(run, judge, **options)
        for note in store.notes:
            click.echo(f"note: {note}", err=True)
    result = panel.panel_agreement(run)
    if form == "json":
        write_json(result)
    else:
        click.echo(panel_text(result))
