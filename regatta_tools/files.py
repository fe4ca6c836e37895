"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from regatta_tools.errors import EnvironmentProblem

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file may not grow",
}


def cannot_write(path: Path | str, error: OSError) -> EnvironmentProblem:
    """The error for a disk or a folder that does not take a file."""
    if error.errno in _FULL:
        mend = "make room and give the same command again: nothing is lost"
        return EnvironmentProblem(_FULL[error.errno], code="E305", place=str(path), mend=mend)
    mend = "choose another place, or mend the rights of this one"
    if isinstance(error, PermissionError):
        mend = f"close the file where another program (Excel) holds it, or {mend}"
    return EnvironmentProblem(f"cannot be written: {error.strerror or error}", code="E304", place=str(path), mend=mend)


def replace_file(path: Path | str, content: bytes | Iterable[bytes]) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one, and nothing between.

    ``content`` may come in pieces. A file that is there keeps its permissions, and a link stays a link.
    What is no file (a device, a pipe) cannot be replaced and is written to as it is. Raises
    :class:`EnvironmentProblem` where the disk or the folder does not take the file; then the old one is
    untouched.
    """
    pieces = [content] if isinstance(content, bytes) else content
    try:
        target = os.path.realpath(path)
        mode = _mode(target)
        if mode is None or stat.S_ISREG(mode):
            temporary = _stage(target, mode, pieces)
            _put(temporary, target)
        else:
            with open(target, "wb") as stream:
                stream.writelines(pieces)
    except OSError as error:
        raise cannot_write(path, error) from error


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write several files. All are on the disk beside their places before the first one takes its place.

    So a full disk or a folder without rights leaves every old file as it was
    (:class:`EnvironmentProblem`). A kill in the middle of the renaming leaves some new and some old
    files, each of them whole; the descriptor goes last, so R011 then says which ones.
    """
    staged: dict[str, str] = {}
    place: Path | str = ""
    try:
        for place, content in contents.items():
            target = os.path.realpath(place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            staged[target] = _stage(target, _mode(target), [content])
        for target, temporary in staged.items():
            place = target
            os.replace(temporary, target)
    except OSError as error:
        raise cannot_write(place, error) from error
    finally:
        for temporary in staged.values():
            with suppress(OSError):
                os.unlink(temporary)


def append_line(descriptor: int, line: bytes, *, sync: bool = True) -> None:
    """Append a line to an open file, whole or not at all; with ``sync`` it is on the disk when this returns.

    Raises :class:`OSError`. Where even cutting the half line off fails, it stays: whoever opens the file next has to
    look at its end.
    """
    size = os.fstat(descriptor).st_size
    try:
        if os.write(descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, "short write")
        if sync:
            os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _stage(path: str, mode: int | None, pieces: Iterable[bytes]) -> str:
    """Write a new file beside ``path`` to the disk, and return its name."""
    # Not tempfile: it makes private files, and a new file is to have the permissions that files have here.
    temporary = os.path.join(os.path.dirname(path), f".regatta-{secrets.token_hex(8)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def _put(temporary: str, path: str) -> None:
    try:
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
