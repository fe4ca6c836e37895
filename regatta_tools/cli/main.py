"""The command ``regatta``: it parses words, calls the library, writes the result. No logic lives here.

Exit codes: 0 clean, 1 findings of severity error, 2 unusable input or usage, 3 environment or
provider, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

import click

from regatta_tools import __version__
from regatta_tools.cli.agree import agree
from regatta_tools.cli.audit import audit
from regatta_tools.cli.calibrate import calibrate
from regatta_tools.cli.cell import cell
from regatta_tools.cli.compare import compare
from regatta_tools.cli.context import context
from regatta_tools.cli.diagnose import diagnose
from regatta_tools.cli.explain import explain
from regatta_tools.cli.export import export
from regatta_tools.cli.fmt import fmt
from regatta_tools.cli.generate import generate
from regatta_tools.cli.label import label
from regatta_tools.cli.plan import plan
from regatta_tools.cli.power import power
from regatta_tools.cli.query import query
from regatta_tools.cli.rejudge import rejudge
from regatta_tools.cli.require import require
from regatta_tools.cli.run import run
from regatta_tools.cli.runs import runs
from regatta_tools.cli.score import score
from regatta_tools.cli.sheet import sheet
from regatta_tools.cli.show import show
from regatta_tools.cli.sources import sources
from regatta_tools.cli.validate import validate
from regatta_tools.errors import RegattaError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="regatta")
def cli() -> None:
    """Would your tests show that an AI agent breaks the law it works under?

    REGATTA scores a test suite against a cited checklist of legal obligations and a corpus of planted
    faults, and checks that the rules it leans on are true, binding and in force.

    Exit codes: 0 clean, 1 findings, 2 unusable input or usage, 3 environment or provider.
    """


for command in (
    validate, audit, sources, fmt, explain, query, export, sheet, cell, run, score, diagnose, calibrate, agree, power,
    require, context, generate, compare, plan, runs, show, label, rejudge,
):  # fmt: skip
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code. Errors are told in a few lines, never as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Law speaks Vietnamese; a C locale must not turn it into question marks or a crash.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        # Not cli.main(): it turns a closed pipe into exit 1, which would call a clean package faulty.
        with cli.make_context("regatta", sys.argv[1:] if arguments is None else arguments) as context:
            cli.invoke(context)
        sys.stdout.flush()
        _leave(0)
    except click.exceptions.Exit as leave:
        _leave(leave.exit_code)
    except click.exceptions.Abort:
        _say("interrupted")
        _leave(130)
    except click.ClickException as error:
        error.show()
        _leave(error.exit_code)
    except RegattaError as error:
        _say(f"error: {error}")
        _leave(error.exit_code)
    except KeyboardInterrupt:
        _say("interrupted")
        _leave(130)
    except BrokenPipeError:
        # Whoever read our output has enough (regatta ... | head): no message, and none from the interpreter.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _leave(0)
    except OSError as error:
        _say(f"error: the result cannot be written or read: {error.strerror or error} [E304]")
        _say("  mend: make room where the output goes, or send it to another place")
        _leave(3)
    except Exception as error:
        if os.environ.get("REGATTA_DEBUG"):
            raise
        text = " ".join(str(error).split())[:300]
        _say(f"error: a defect of REGATTA: {type(error).__name__}: {text} [E399]")
        _say("  mend: report it; REGATTA_DEBUG=1 shows where")
        _leave(3)


def _say(message: str) -> None:
    click.echo(message, err=True)


def _leave(code: int) -> None:
    sys.exit(code)
