"""What a change brought in: the findings of a check, less those that were there before it.

*Before* is the merge base of a revision and HEAD, as in ``git diff REV...HEAD``; *after* is the files as they
are on the disk, committed or not. A finding belongs to the change where

- its place lies on a line that differs between the two, or
- the files before do not have it: the same check is run on them, and findings are the same where code, file,
  record and message are (places that a message names left out, since lines move).

The second part sees a deletion that breaks a reference elsewhere, the first one a line that was wrong before
and has been touched without being mended. The files before are checked by today's rules and schema, so a new
rule alone brings nothing in. Nothing in the working tree, the index or the repository is changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.rules.findings import Finding, Report, identity
from regatta_tools.tables.package import DESCRIPTOR
from regatta_tools.tables.reader import MAX_BYTES
from regatta_tools.text import readable, shown

#: Lines of one file that a change has touched, as ranges of numbers from 1.
Lines = dict[str, list[range]]
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_PATCH = (
    "--unified=0", "--inter-hunk-context=0", "--text", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
    "--relative", "--ignore-submodules",
)  # fmt: skip
_FETCH = "fetch the whole history: `git fetch --unshallow`, or with actions/checkout `fetch-depth: 0`"


def brought_in(report: Report, revision: str, check: Callable[[Path], Report]) -> Report:
    """Narrow a report on a package or file to what the change since ``revision`` brought in.

    ``check`` is what made the report; it is run again on the files before, in a folder of their own. Raises
    :class:`InputError` where there is no repository or no such revision, and :class:`EnvironmentProblem` where
    git is missing, refuses, or lacks the history.
    """
    checked = Path(report.checked)
    folder, parts = (checked, ["instruments", DESCRIPTOR]) if checked.is_dir() else (checked.parent, [checked.name])
    git = _Git(folder)
    base = git.merge_base(revision)
    touched = git.changed_lines(base, parts)
    before = _findings_before(git, base, parts, set(touched), checked, check)
    if not checked.is_dir():
        touched = {readable(str(checked)): touched.get(checked.name, [])}
    new = _new(report.findings, before, touched)
    # Last, because services show the first ten annotations of a step.
    new = sorted((_helped(finding, touched) for finding in new), key=lambda finding: finding.code == "R011")
    return replace(report, findings=tuple(new), since=revision, older=len(report.findings) - len(new))


def changed_lines(package: Path, revision: str) -> Lines:
    """The lines of a package's files that differ from the merge base of ``revision`` and HEAD, by file.

    Raises as :func:`brought_in`.
    """
    git = _Git(package)
    return git.changed_lines(git.merge_base(revision), ["instruments", DESCRIPTOR])


def _new(after: tuple[Finding, ...], before: tuple[Finding, ...], touched: Lines) -> list[Finding]:
    """The findings that stand on a touched line or are not among those before, in their order."""
    left = Counter(identity(f) for f in before)
    new = []
    for finding in after:
        on_touched_line = any(finding.line in lines for lines in touched.get(finding.file, ()))
        if not on_touched_line and left[identity(finding)] > 0:
            left[identity(finding)] -= 1
        else:
            new.append(finding)
    return new


def _helped(finding: Finding, touched: Lines) -> Finding:
    """R011 follows from every edit of a table. Where the edit is part of the change, say so."""
    if finding.code != "R011" or finding.file not in touched:
        return finding
    mend = (
        "it follows from the edit: mend what else is found, see in the diff that no row was lost, then run "
        f"`make schema` and commit {DESCRIPTOR} with the table"
    )
    return replace(finding, mend=mend)


def _findings_before(
    git: _Git, base: str, parts: list[str], touched: set[str], checked: Path, check: Callable[[Path], Report]
) -> tuple[Finding, ...]:
    """The findings on the files before; none where they were no package or not there."""
    with tempfile.TemporaryDirectory(prefix="regatta-") as name:
        folder = Path(name)
        git.write_files(base, parts, touched, folder)
        if checked.is_dir():
            try:
                return check(folder).findings
            except InputError:
                return ()
        try:
            findings = check(folder / checked.name).findings
        except InputError:
            return ()
        return tuple(replace(finding, file=readable(str(checked))) for finding in findings)


@dataclass(frozen=True)
class _Git:
    """Questions to git about one folder of a repository. Paths are relative to that folder."""

    folder: Path

    def merge_base(self, revision: str) -> str:
        """The commit from which HEAD and ``revision`` both come."""
        self._repository()
        # A dash would be read as an option, and no revision holds a control character.
        if not revision or revision.startswith("-") or not revision.isprintable():
            raise InputError(
                f"{shown(revision)} is no revision", code="U113", mend="name a branch, a tag or a commit: origin/main"
            )
        commit = self._commit(revision)
        head = self._commit("HEAD")
        if head is None:
            raise InputError("the repository has no commit yet", code="U113", mend="commit first")
        shallow = self._run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
        if commit is None and not shallow:
            remote = f"origin/{revision}"
            mend = "name a branch, a tag or a commit, or fetch it first"
            if self._commit(remote):
                mend = f"the branch is here as {remote}"
            raise InputError(f"the repository knows no revision {shown(revision)}", code="U113", mend=mend)
        found = self._run("merge-base", commit, head, may_fail=True).stdout.strip() if commit else b""
        if found:
            return found.decode("ascii")
        if shallow:
            what = f"the history in this clone does not reach back to {shown(revision)}: the clone is shallow"
            raise EnvironmentProblem(what, code="E310", mend=_FETCH)
        raise InputError(f"HEAD and {shown(revision)} have no commit in common", code="U113", mend="name its own base")

    def changed_lines(self, base: str, parts: list[str]) -> Lines:
        """The lines that differ from ``base``, by file. A file of which lines were only deleted has no ranges."""
        names = self._run("diff", "--name-only", "-z", *_PATCH, base, "--", *parts).stdout
        lines: Lines = {}
        for name in _names(names):
            patch = self._run("diff", *_PATCH, base, "--", name).stdout
            hunks = ((int(start), int(count or 1)) for start, count in _HUNK.findall(patch))
            lines[name] = [range(start, start + count) for start, count in hunks if count]
        # Also what git ignores: the check reads it.
        for name in _names(self._run("ls-files", "--others", "-z", "--", *parts).stdout):
            lines[name] = [range(1, sys.maxsize)]
        return lines

    def write_files(self, base: str, parts: list[str], touched: set[str], target: Path) -> None:
        """Write the files of ``base`` below ``target`` as a checkout would: through git's filters (line ends)
        where they were touched since, and else as they are on the disk."""
        prefix = os.fsdecode(self._run("rev-parse", "--show-prefix").stdout.removesuffix(b"\n"))
        for entry in self._run("ls-tree", "-r", "-l", "-z", base, "--", *parts).stdout.split(b"\0"):
            about, _, raw_name = entry.partition(b"\t")
            name = os.fsdecode(raw_name)
            mode, _, oid, size = (*about.split(), b"", b"", b"", b"")[:4]
            # Links and submodules are no tables; a name that leads elsewhere is not written.
            if mode not in (b"100644", b"100755") or int(size) > MAX_BYTES or not _stays_inside(name):
                continue
            present = self.folder / name
            if name not in touched and present.is_file():
                content = present.read_bytes()
            else:
                content = self._run("cat-file", "--filters", f"--path={prefix}{name}", oid.decode("ascii")).stdout
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _repository(self) -> None:
        done = self._run("rev-parse", "--is-inside-work-tree", may_fail=True)
        said = done.stderr.decode("utf-8", errors="replace")
        if "dubious ownership" in said:
            what = "git refuses this repository, because it belongs to another user"
            mend = "git config --global --add safe.directory FOLDER, where FOLDER is the root of the repository"
            raise EnvironmentProblem(what, code="E310", place=str(self.folder), mend=mend)
        if done.returncode == 0 and done.stdout.strip() == b"true":
            return
        if done.returncode == 0 or "not a git repository" in said:
            what = "not in a working tree of a git repository, so nothing says what changed"
            mend = "leave --changed-since away, or give the command in a clone"
            raise InputError(what, code="U113", place=str(self.folder), mend=mend)
        raise _failed("rev-parse", said)

    def _commit(self, revision: str) -> str | None:
        """The commit that a revision names, or ``None``."""
        done = self._run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", may_fail=True
        )
        return done.stdout.decode("ascii").strip() or None if done.returncode == 0 else None

    def _run(self, command: str, *arguments: str, may_fail: bool = False) -> subprocess.CompletedProcess[bytes]:
        # Names are names, not patterns, and no program of the repository's configuration is started.
        options = ["--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false"]
        try:
            done = subprocess.run(
                ["git", *options, command, *arguments],
                cwd=self.folder, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            )  # fmt: skip
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            what = "git is not installed" if missing else f"git cannot be started: {error.strerror or error}"
            raise EnvironmentProblem(what, code="E310", mend="install git, or leave --changed-since away") from error
        if done.returncode and not may_fail:
            raise _failed(command, done.stderr.decode("utf-8", errors="replace"))
        return done


def _environment() -> dict[str, str]:
    """The environment for git: its messages in English, no questions, no locks, the repository found by folder."""
    # Inside a hook, git sets GIT_DIR and GIT_INDEX_FILE to paths that hold in another folder.
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith(_KEPT)}
    return own | {"LC_ALL": "C", "LANGUAGE": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


_KEPT = ("GIT_CONFIG_", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")


def _stays_inside(name: str) -> bool:
    """Whether a path of a tree leads where it says. Git makes no others, but somebody could."""
    pure = PurePosixPath(name)
    return not pure.is_absolute() and ".." not in pure.parts and "\\" not in name


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _failed(command: str, said: str) -> EnvironmentProblem:
    first = said.strip().splitlines()[:1] or ["it gave no reason"]
    what = f"git {command} failed: {first[0].removeprefix('fatal: ')}"
    return EnvironmentProblem(what, code="E310", mend="mend the repository, or leave --changed-since away")
