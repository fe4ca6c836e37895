"""Counting tokens the same way on every machine, without a network.

The tokenizer is ``cl100k_base``, from the vocabulary that litellm carries. It is a yardstick, the same for every
model: what a model itself counts differs, for Vietnamese by a third and more.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem

NAME = "cl100k_base"
#: The name under which litellm keeps the vocabulary of :data:`NAME` (tiktoken's cache: SHA-1 of its address).
_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"


def count(text: str) -> int:
    """The number of tokens of a text; text that looks like a control token is text."""
    return len(_encoding().encode(text, disallowed_special=()))


@lru_cache(maxsize=1)
def _encoding() -> Any:
    # Not through `import litellm`, which takes five seconds.
    spec = find_spec("litellm")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in (Path(f) / "litellm_core_utils" / "tokenizers" for f in folders):
        if (folder / _FILE).is_file() and find_spec("tiktoken"):
            return _load(folder)
    raise EnvironmentProblem(
        f"tokens cannot be counted: litellm does not carry the vocabulary of {NAME}",
        code="E311",
        mend="install the versions of requirements.lock (make setup)",
    )


def _load(folder: Path) -> Any:
    """The encoding from the file in ``folder``: with the cache named, tiktoken opens no address."""
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        return tiktoken.get_encoding(NAME)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
