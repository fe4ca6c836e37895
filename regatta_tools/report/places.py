"""Names of files as the reader of a report knows them: from the root of the repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePath

from regatta_tools.rules.findings import Report
from regatta_tools.text import readable


def from_repository(report: Report) -> Callable[[str], str]:
    """A function from the file of a finding to its path from the root of the repository, with forward slashes.

    The repository is the nearest folder with a ``.git``; without one, paths count from the current folder, and
    stay whole where the file is not below it.
    """
    here = Path(os.path.realpath("."))
    is_package = bool(report.checked) and os.path.isdir(report.checked)
    if is_package:
        base = Path(os.path.realpath(report.checked))
    else:
        # A suite is named as it was given, from the current folder; its name may lead out of it.
        base = Path(os.path.realpath(os.path.dirname(report.checked) or "."))
    around = (folder for folder in (base, *base.parents) if (folder / ".git").exists())
    root = next(around, here)

    def path(file: str) -> str:
        whole = base / (file if is_package else PurePath(file).name)
        return readable((whole.relative_to(root) if whole.is_relative_to(root) else whole).as_posix())

    return path
