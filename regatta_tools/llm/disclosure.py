"""Which text goes to whom, said before anything is sent.

``regatta run``, ``plan``, ``generate`` and ``calibrate`` say it in the same words. A model in this process, a script, a
stored run and a server on this machine get text too, and nobody else does: they need no leave.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from regatta_tools.errors import InputError
from regatta_tools.llm import client

#: What each part of a command sends, in words.
TEXTS = {
    "judge": (
        "the scenarios of the suite (turns, context, expected behaviour)",
        "the obligations and faults of the cell",
        "the agent's answers",
    ),
    "agent": (
        "the turns and context of the scenarios",
        "the agent's instructions, with the planted faults and their fixtures",
    ),
    "generator": ("the ontology context of the cell and the instructions of the strategies",),
    "calibration": ("the gold probes of the cell (scenarios and answers written for this project)",
                    "the obligations and faults of the cell"),
}  # fmt: skip


def vendor(model: str) -> str | None:
    """Who receives what is sent to a model, in words; ``None`` where it stays on this machine.

    For a model that :func:`~regatta_tools.llm.client.check_model` knows.
    """
    if client.stays_here(model):
        return None
    name, provider, address = client.provider_of(model)
    host = urlsplit(address).hostname or ""
    if _is_here(host):
        return None
    return f"{provider} (model {name}{f', at {host}' if host else ''})"


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def disclosure(models: Mapping[str, Iterable[str]]) -> list[str]:
    """Lines that say which text goes to which vendor, one for each vendor; none where all stays on this machine.

    ``models`` gives for each model the parts that it plays (keys of :data:`TEXTS`), such as
    ``{"gpt-x": ["judge"], "embedded": ["agent"]}``.
    """
    parts: dict[str, list[str]] = {}
    for model, plays in models.items():
        who = vendor(model)
        if who is not None:
            texts = parts.setdefault(who, [])
            texts += [t for part in plays for t in TEXTS[part] if t not in texts]
    return [f"to {who} go: {'; '.join(texts)}" for who, texts in parts.items()]


def refuse_unasked(lines: list[str], *, yes: bool, terminal: bool) -> None:
    """Raise :class:`InputError` (U137) where text would leave this machine and nobody said yes or can be asked."""
    if lines and not yes and not terminal:
        raise InputError("nothing was sent: " + "; ".join(lines), code="U137", mend="give --yes to send it")
