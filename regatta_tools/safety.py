"""What a file of foreign origin may lead to: nothing outside its own folder, and no address at all.

A package or a schema comes from a pull request. A path in it is judged by its text, before anything is
touched, and in the same way on every system: what Windows would read as a drive, a stream, a device or
a way up is refused everywhere.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_WINDOWS_SIGNS = re.compile(r'[<>:"|?*]')
_WINDOWS_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.I)

# Properties of a descriptor that a reader may follow to another file. Those that name pages for people
# (licences, sources, contributors) are not among them, and paths of resources are judged where they are read.
_FOLLOWED = frozenset({"$schema", "$ref", "profile", "schema", "dialect", "package", "extrapaths", "basepath"})
# Profiles are names: readers know these without looking them up.
_PROFILE = re.compile(
    r"https://datapackage\.org/profiles/[0-9.]+/(datapackage|dataresource|tabledialect|tableschema)\.json"
    r"|(tabular-)?data-(package|resource)"
)


def unsafe(root: Path, name: Any) -> str | None:
    """Why the path ``name`` below ``root`` must not be opened, or ``None``.

    Decided from the text first; only a path that passes is followed through links, without opening what
    they lead to.
    """
    if not isinstance(name, str) or not name:
        return "is not the name of a file"
    if not name.isprintable():
        return "holds a character that cannot be printed"
    if _SCHEME.match(name) or name.startswith(("//", "\\\\")):
        return "is an address or a drive, not a path inside the package"
    if "\\" in name:
        return "holds a backslash"
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or name.startswith("~"):
        return "leaves the package"
    if any(map(_not_on_windows, pure.parts)):
        return "is no file name on Windows"
    try:
        # realpath bears links that form a loop.
        if not Path(os.path.realpath(root / name)).is_relative_to(os.path.realpath(root)):
            return "leads out of the package through a link"
    except ValueError:  # UnicodeEncodeError: file names of this system are bytes, and its locale has none for it
        return "holds a letter that file names of this system cannot have"
    return None


def _not_on_windows(part: str) -> bool:
    # Windows drops spaces and dots at the end, so that ".. " is ".." there.
    return bool(part.endswith((".", " ")) or _WINDOWS_SIGNS.search(part) or _WINDOWS_DEVICE.fullmatch(part.strip()))


class Below:
    """:func:`unsafe` for many paths below one root in one go, where each folder is followed through links once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root = os.fspath(root)
        self._folders: dict[str, str | None] = {}

    def unsafe(self, name: Any) -> str | None:
        """Why the path must not be opened, or ``None``."""
        folder, slash, base = name.rpartition("/") if isinstance(name, str) else ("", "", "")
        if not slash or not base.isprintable() or "\\" in base or base in ("", ".", "..") or _not_on_windows(base):
            return unsafe(self.root, name)
        if folder not in self._folders:
            self._folders[folder] = unsafe(self.root, folder)
        if self._folders[folder] is None:
            with suppress(OSError, ValueError):  # such as a name that is none on this system
                if not stat.S_ISLNK(os.lstat(os.path.join(self._root, name)).st_mode):
                    return None
        return unsafe(self.root, name)


def references_at_most(text: str) -> int | None:
    """How many references a descriptor in JSON can hold (:func:`unsafe_references`); ``None`` where that takes reading.

    A large package has a descriptor of a hundred megabytes, and one reference.
    """
    if "\\u" in text:
        return None  # any letter of a key may be written as an escape
    keys = [f'"{key}"' for key in sorted(_FOLLOWED)]
    return sum(len(re.findall(re.escape(key) + r'\s*:\s*["\[]', text)) for key in keys if key in text)


def unsafe_references(root: Path, descriptor: Any, most: int | None = None) -> Iterator[tuple[str, str, str]]:
    """The references of a Data Package descriptor that other readers might follow out of the package.

    Yields the name of the property, its value and why it is refused. REGATTA itself follows none of them:
    it takes tables and columns from its own schema. Nothing is looked for beyond ``most`` references.
    """
    stack = [descriptor] if most != 0 else []
    seen = 0
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(reversed(node))
        if not isinstance(node, dict):
            continue
        for key, value in node.items():
            if key not in _FOLLOWED or not isinstance(value, str | list):
                continue
            seen += 1
            for text in [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)]:
                reason = None if key in ("$schema", "profile") and _PROFILE.fullmatch(text) else unsafe(root, text)
                if reason:
                    yield key, text, reason
        if seen == most:
            return
        stack.extend(reversed([v for v in node.values() if isinstance(v, (dict, list))]))
