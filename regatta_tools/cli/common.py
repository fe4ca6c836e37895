"""What several commands share: options, JSON writing, progress."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, ClassVar

import click

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the result.",
)
csv_format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True,
    help="Form of the result.",
)  # fmt: skip
output_option = click.option("--output", type=click.Path(), help="Write the result to this file.")
package_option = click.option(
    "--package", type=click.Path(), default=None,
    help="Folder of another package (default: the one here, or the one that came with REGATTA).",
)  # fmt: skip


def as_typed(_: Any, option: click.Parameter, text: str | None) -> str | None:
    """A word of the command line as it was typed (a click callback).

    Under the C locale Python does not decode what is no ASCII and hands over its bytes as lone surrogates.
    """
    try:
        return None if text is None else os.fsencode(text).decode("utf-8")
    except UnicodeError as error:
        raise click.BadParameter("this is not UTF-8", param=option) from error


def write_json(value: Any) -> None:
    """Strict JSON (no NaN), text as itself."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def name_of_time(seconds: float) -> str:
    """A length of time in the unit that people would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class ProgressLine:
    """Progress on standard error: one line that renews itself on a terminal, a line every ten seconds elsewhere."""

    NAMES: ClassVar = {
        "rc": "coverage of requirements",
        "iss": "specificity and attacks",
        "design": "faults as designed",
        "execution": "faults as run",
    }

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.last = 0.0
        self.tty = sys.stderr.isatty()
        self.width = 0
        self.stage = ""
        self.stage_began, self.stage_done = self.started, 0

    def __call__(self, progress: Any) -> None:
        now = time.monotonic()
        ends = progress.done == progress.total
        if now - self.last < (0.1 if self.tty else 10.0) and not ends:
            return
        self.last = now
        name = self.NAMES.get(progress.stage, progress.stage)
        text = f"{name}: {progress.done}/{progress.total}, {progress.calls} calls, {now - self.started:.0f} s"
        text += self._pace(progress, now)
        if self.tty:
            click.echo("\r" + text.ljust(self.width), err=True, nl=False)
            self.width = len(text)
        else:
            click.echo(text, err=True)

    def _pace(self, progress: Any, now: float) -> str:
        """Calls a minute, money, and how long the rest of the stage takes at the rate of its jobs so far."""
        pace = getattr(progress, "pace", None)
        if pace is None:
            return ""
        if progress.stage != self.stage:
            self.stage, self.stage_began, self.stage_done = progress.stage, now, progress.done
        text = f", {pace.per_minute:.0f} calls/min, {pace.cost_usd:.2f} USD"
        text += f" and {pace.unpriced} unpriced" if pace.unpriced else ""
        done, left = progress.done - self.stage_done, progress.total - progress.done
        if done and left:
            text += f", {name_of_time((now - self.stage_began) / done * left)} left in this stage"
        return text

    def close(self) -> None:
        if self.tty and self.width:
            click.echo("", err=True)


def write_result(result: Any, form: str, output: str | None, as_text: Any, as_csv: Any) -> None:
    """A result as text, strict JSON or CSV, on the screen or as a file (whole or not at all)."""
    from regatta_tools.files import replace_file

    if form == "json":
        text = json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False)
    else:
        text = (as_csv if form == "csv" else as_text)(result).rstrip("\n")
    if output:
        replace_file(output, f"{text}\n".encode())
        click.echo(f"wrote {output}", err=True)
    else:
        click.echo(text)
