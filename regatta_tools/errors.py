"""The errors that reach a user, each with the exit code that the command line gives it.

Exit codes: 0 clean, 1 findings of severity error, 2 unusable input or usage, 3 environment or
provider.
"""

from __future__ import annotations

from regatta_tools.text import readable


class RegattaError(Exception):
    """An error with a message for people: what is wrong, where, and the mend."""

    exit_code = 2

    def __init__(self, message: str, *, code: str = "", mend: str = "", place: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.mend, self.place = message, code, mend, place

    def __str__(self) -> str:
        head = f"{readable(self.place)}: " if self.place else ""
        code = f" [{self.code}]" if self.code else ""
        mend = f"\n  mend: {self.mend}" if self.mend else ""
        return f"{head}{self.message}{code}{mend}"


class InputError(RegattaError):
    """The input cannot be used (missing file, wrong form, unknown name)."""

    exit_code = 2


class EnvironmentProblem(RegattaError):
    """The machine or a provider stands in the way (no weights, wrong key, read-only folder)."""

    exit_code = 3
