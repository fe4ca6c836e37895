"""Small functions on text that everything above shares: decoding and places, showing values, hashing."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def decode(raw: bytes) -> tuple[str, tuple[str, int, int] | None]:
    """Decode UTF-8 with or without byte-order mark.

    Returns the text and, where a byte is not UTF-8, what to say with line and column. Offsets in the
    message count from 0 and from the start of the file.
    """
    body = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return body.decode("utf-8"), None
    except UnicodeDecodeError as error:
        at = error.start + len(raw) - len(body)
        good = body[: error.start].decode("utf-8")
        line, column = line_column(good, len(good))
        utf_16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        hint = "; the file looks like UTF-16" if utf_16 else ""
        return "", (f"byte {at} (0x{raw[at]:02x}) is not UTF-8{hint}", line, column)


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1 and in characters, of an offset into a text."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def shown(value: object, most: int = 80) -> str:
    """A value as it stands in a message: quoted, without control characters, cut after ``most`` characters."""
    text = value if isinstance(value, str) else str(value)
    return repr(text) if len(text) <= most else f"{text[:most]!r}... ({len(text):,} characters)"


def readable(name: str) -> str:
    """The name of a file as UTF-8 has it, for messages.

    Where the locale knows no UTF-8, Python decodes each odd byte of a name by itself (PEP 383), and
    ``bộ.yaml`` would be shown as a row of escapes. Bytes that are not UTF-8 are shown as escapes everywhere.
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half of a surrogate pair, which no file name of any system gives
        return name


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces."""
    return _CANONICAL.encode(content)


def sha256_json(content: Any) -> str:
    """SHA-256 of canonical JSON in UTF-8."""
    return hashlib.sha256(canonical_json(content).encode("utf-8")).hexdigest()
