"""Pausing Python's search for garbage while a package is read and checked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def search_paused() -> Iterator[None]:
    """Pause the search for objects that refer to each other and are of no more use.

    Reading makes millions of objects that stay, and the search would look at all of them again and again, which takes
    a third of the time. Memory that nothing refers to is given back as always.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
