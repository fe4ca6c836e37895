"""Versioned prompt templates, one file a judge or agent, hashed into every run.

A template has a ``[system]`` and a ``[user]`` part with ``{{name}}`` for values. Values are put in
during one pass over the template and are never looked at again, so braces, percent signs and dollar
signs in a scenario reach the model byte for byte (case A20).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

#: Raised by hand when the meaning of a template changes; the hash changes with every letter.
VERSION = "1"
NAMES = ("rc", "design", "execution", "iss", "ac", "agent")
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")


@lru_cache(maxsize=16)
def template(name: str) -> tuple[str, str]:
    """The system and user part of a template."""
    text = resources.files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    head, _, user = text.partition("[user]\n")
    return head.removeprefix("[system]\n").strip(), user.strip()


def render(name: str, **values: str) -> tuple[dict[str, str], ...]:
    """The chat messages of a template. Every value must be used and every slot filled (``KeyError``)."""
    system, user = template(name)
    used: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        used.add(match.group(1))
        return values[match.group(1)]

    parts = [(role, _SLOT.sub(fill, text)) for role, text in (("system", system), ("user", user)) if text]
    if unused := set(values) - used:
        raise KeyError(f"template {name} has no slot for {sorted(unused)}")
    return tuple({"role": role, "content": content} for role, content in parts)


def digest() -> str:
    """SHA-256 over all templates and their version."""
    whole = hashlib.sha256(VERSION.encode())
    for name in NAMES:
        whole.update(f"\0{name}\0".encode())
        whole.update("\0".join(template(name)).encode("utf-8"))
    return whole.hexdigest()


def fenced(label: str, parts: Sequence[tuple[str, str]]) -> str:
    """Foreign texts between marks that they cannot close: the marks carry a hash of the texts themselves.

    ``parts`` are (name, text), such as ``("User", "Hello")``; each name carries the code of the mark too.
    Foreign text (a scenario, an answer) may try to end the data part and speak to the judge, or to put
    words into another speaker's mouth (case A24). It cannot know a hash of itself, and texts that
    happen to hold the code get another one. Texts stand in it byte for byte.
    """
    whole = "\n".join(text for _, text in parts)
    mark = hashlib.sha256(whole.encode("utf-8")).hexdigest()[:8]
    while mark in whole:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:8]
    body = "\n".join(f"{name} {mark}: {text}" for name, text in parts)
    return f"<{label} {mark}>\n{body}\n</{label} {mark}>"
