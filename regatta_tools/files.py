"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from regatta_tools.errors import EnvironmentProblem


def replace_file(path: Path | str, content: bytes | Iterable[bytes]) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one, and nothing between.

    ``content`` may come in pieces. A file that is there keeps its permissions, and a link stays a link.
    What is no file (a device, a pipe) cannot be replaced and is written to as it is. Raises
    :class:`EnvironmentProblem` where the disk or the folder does not take the file; then the old one is
    untouched.
    """
    try:
        _replace(os.path.realpath(path), [content] if isinstance(content, bytes) else content)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise EnvironmentProblem(
            "the disk is full" if full else f"cannot be written: {error.strerror or error}",
            code="E305" if full else "E304",
            place=str(path),
            mend="make room and give the same command again" if full else "choose another place, or mend its rights",
        ) from error


def _replace(path: str, content: Iterable[bytes]) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as stream:
            stream.writelines(content)
        return
    # Not tempfile: it makes private files, and a new file is to have the permissions that files have here.
    temporary = os.path.join(os.path.dirname(path), f".regatta-{secrets.token_hex(8)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
