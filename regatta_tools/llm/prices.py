"""What a call costs, by a dated file and nothing else.

The file that comes with REGATTA is made from the price list inside litellm, which its maintainers collect from the
providers' pages::

    python -m regatta_tools.llm.prices            write regatta_tools/llm/prices.json anew

A file of the user's own has the same form. Prices are for plain tokens in and out: discounts for cached or batched
prompts are left out, so a price is an upper bound where a provider gives them; so is the estimate of a call before it
is sent. An unknown price is ``None`` and never 0.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.llm import embedded, replay, scripted
from regatta_tools.llm.types import Request

PINNED = Path(__file__).with_name("prices.json")
MILLION = 1_000_000
#: Tokens that a message has besides its text (role and separators), more than any known form needs.
AROUND = 16


@dataclass(frozen=True)
class Prices:
    """Prices of models in US dollars per million tokens: ``models[name] = (provider, in, out)``.

    ``sha256`` is the hash of the file's bytes, ``dated`` the day on which it says it was made.
    """

    models: dict[str, tuple[str, float, float]]
    sha256: str
    dated: str
    source: str

    def of(self, model: str) -> tuple[float, float] | None:
        """Dollars per million tokens in and out; ``None`` where the file does not know the model."""
        if scripted.is_scripted(model) or embedded.is_embedded(model) or replay.is_replay(model):
            return 0.0, 0.0
        provider, _, rest = model.partition("/")
        for name, by in ((model, ""), (rest, provider)):
            found = self.models.get(name)
            if found is not None and by in ("", found[0]):
                return found[1], found[2]
        return None

    def cost(self, model: str, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Dollars for one call; ``None`` where the price or a number of tokens is not known."""
        price = self.of(model)
        if price is None or prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * price[0] + completion_tokens * price[1]) / MILLION

    def at_most(self, request: Request) -> float | None:
        """Dollars that a try of this request can cost at most: a byte of UTF-8 is at most one token, the reply is as
        long as it may be."""
        return self.cost(request.model, tokens_at_most(request.messages), request.max_tokens)

    def refuse_unpriced(self, models: Iterable[str]) -> None:
        """Raise :class:`InputError` (U171) where a budget cannot be held because a price is not known."""
        unknown = [m for m in dict.fromkeys(models) if self.of(m) is None]
        if unknown:
            raise InputError(
                f"no price is known for {', '.join(unknown)}, so a budget cannot be held",
                code="U171",
                mend="give --prices FILE with its price (docs/providers.md), or leave --budget-usd out",
            )


def tokens_at_most(messages: Iterable[dict[str, str]]) -> int:
    """More tokens than any tokenizer makes of these messages: those of byte-level vocabularies are bytes at worst."""
    return sum(len(m["content"].encode("utf-8", "replace")) + AROUND for m in messages)


@functools.lru_cache(maxsize=1)
def pinned() -> Prices:
    """The prices that come with REGATTA."""
    return load(PINNED)


def load(path: Path | str | None = None) -> Prices:
    """Read a file of prices, by default the pinned one. Raises :class:`InputError` (U170) where it is of another form.

    Form: ``{"dated": DAY, "source": TEXT, "usd_per_million_tokens": {MODEL: {"provider": NAME, "in": X, "out": Y}}}``.
    ``provider`` may be left out.
    """
    path = Path(path or PINNED)
    mend = "see docs/providers.md for its form"
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"the prices cannot be read: {error.strerror}", code="U170", place=str(path)) from error
    try:
        held = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {error}", code="U170", place=str(path), mend=mend) from error
    table = held.get("usd_per_million_tokens") if isinstance(held, dict) else None
    if not isinstance(table, dict) or not table:
        raise InputError("it holds no prices (usd_per_million_tokens)", code="U170", place=str(path), mend=mend)
    models = {}
    for name, entry in table.items():
        if not isinstance(entry, dict) or not all(_is_price(entry.get(k)) for k in ("in", "out")):
            what = f"the price of {name!r} is not two numbers `in` and `out` that are not negative"
            raise InputError(what, code="U170", place=str(path), mend=mend)
        models[name] = (str(entry.get("provider") or ""), float(entry["in"]), float(entry["out"]))
    digest = hashlib.sha256(raw).hexdigest()
    return Prices(models, digest, str(held.get("dated") or ""), str(held.get("source") or ""))


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def make(day: str) -> bytes:
    """The pinned file, from the price list inside the installed litellm. ``day`` is the day it is made."""
    import importlib.metadata

    from regatta_tools.llm.client import _litellm

    table = {}
    for name, entry in sorted(_litellm().model_cost.items()):
        once = any(k in entry for k in ("input_cost_per_request", "input_cost_per_second"))
        if entry.get("mode") not in ("chat", "completion", "responses") or once:
            continue
        into, out = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
        if not (_is_price(into) and _is_price(out)):
            continue
        out = max(out, entry.get("output_cost_per_reasoning_token") or 0.0)
        table[name] = {"provider": entry.get("litellm_provider") or "", "in": _round(into), "out": _round(out)}
    head = {
        "dated": day,
        "source": f"the price list inside litellm {importlib.metadata.version('litellm')}",
        "usd_per_million_tokens": None,
    }
    lines = ",\n".join(
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(entry)}" for name, entry in table.items()
    )
    text = json.dumps(head, ensure_ascii=False, indent=1).replace("null", "{\n" + lines + "\n }")
    return (text + "\n").encode("utf-8")


def _round(per_token: float) -> float:
    return float(f"{per_token * MILLION:.10g}")


if __name__ == "__main__":
    import datetime

    from regatta_tools.files import replace_file

    replace_file(PINNED, make(datetime.date.today().isoformat()))
    print(f"wrote {PINNED.name}: {len(load().models)} models")
