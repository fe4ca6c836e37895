"""Versioned prompts of the strategies, a file for each strategy and language, and the words that they share.

A template has ``{{name}}`` for values, which are put in during one pass and never looked at again.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

#: Raised by hand when the meaning of a template changes; the hash changes with every letter.
VERSION = "1"
LANGUAGES = ("en", "vi")
NAMES = ("s1", "s2", "s3", "s4", "form", "already", "translate")
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")


@lru_cache(maxsize=16)
def template(name: str, language: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.{language}.txt").read_text(encoding="utf-8").strip()


@lru_cache(maxsize=1)
def words() -> dict[str, Any]:
    """Labels, kinds of situations and kinds of cases, by language."""
    text = resources.files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def render(name: str, language: str, **values: str) -> str:
    """A template with its slots filled. Every value must be used and every slot filled (``KeyError``)."""
    used: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        used.add(match[1])
        return values[match[1]]

    text = _SLOT.sub(fill, template(name, language))
    if unused := set(values) - used:
        raise KeyError(f"template {name} has no slot for {sorted(unused)}")
    return text


def digest() -> str:
    """SHA-256 over all templates, the shared words and the version."""
    whole = hashlib.sha256(VERSION.encode())
    for name in NAMES:
        for language in LANGUAGES:
            whole.update(f"\0{name}.{language}\0{template(name, language)}".encode())
    whole.update(resources.files(__package__).joinpath("words.yaml").read_bytes())
    return whole.hexdigest()
