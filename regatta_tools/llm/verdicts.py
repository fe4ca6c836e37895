"""From a judge's raw reply to a verdict, by a fixed ladder, or to a missing verdict of a named kind.

The ladder, each rung tried once and in this order; the first that fits names the reading:

1. ``as-is``: the whole reply is a JSON object with the key that was asked for;
2. ``fence``: so is the content of the only code fence;
3. ``repair``: so is the only ``{...}`` in the reply after one repair (typographic or single quotes,
   Python's words, a trailing comma), or the object around which the reply has words;
4. ``word``: the whole reply is one word of a closed list, case and final punctuation aside.

Words around an object are let through only where they cannot turn it round: the object begins its
line, or follows a label that ends in a colon and denies nothing, it ends its line, and no other line
is a verdict of its own. A key that stands twice in one object is two answers, hence none. Of a
truncated reply only a closed object with nothing around it is read.

Reasoning in ``<think>`` blocks is taken away first; a block that never closes leaves no verdict.
Anything else is ``unparsed``: a missing verdict, never "no" (protocol, section 11).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regatta_tools.llm.types import Reply
from regatta_tools.tables.model import enum_values

_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad"
_THINK = re.compile(rf"<({_TAGS})>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THINK_OPEN = re.compile(rf"<({_TAGS})>", re.IGNORECASE)
_THINK_CLOSE = re.compile(rf"</({_TAGS})>", re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*[A-Za-z0-9_-]*[ \t]*\n?(.*?)```", re.DOTALL)
_ONE_FENCE = re.compile(r"```[ \t]*[A-Za-z0-9_-]*[ \t]*\n?(.*)```", re.DOTALL)
_DENIES = re.compile(
    r"n['’]t\b|\b(not?|never|nor|neither|cannot|wrong|false|instead|incorrect|except|unless|không|sai)\b", re.IGNORECASE
)
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_REFUSAL = re.compile(
    r"^((i['’]m|i am) (sorry|unable)|sorry|i (can['’]?t|cannot|can not|won['’]t)|xin lỗi|tôi không thể)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reading:
    """``outcome`` is a value of the schema's VerdictOutcome; ``value`` the verdict, score or category."""

    outcome: str
    value: bool | int | str | None = None
    rung: str | None = None
    error: str | None = None


def _boolean(raw: Any) -> bool | None:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        word = raw.strip().rstrip(".!").casefold()
        if word in _YES:
            return True
        if word in _NO:
            return False
    return None


def _score(raw: Any) -> int | None:
    if isinstance(raw, str) and re.fullmatch(r"[1-5]", raw.strip().rstrip(".!")):
        raw = int(raw.strip()[0])
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 1 <= raw <= 5 else None


def _category(raw: Any) -> str | None:
    if not isinstance(raw, str):
        return None
    word = re.sub(r"[\s_]+", "-", raw.strip().rstrip(".!").casefold())
    return word if word == "none" or word in enum_values("AdversarialCategory") else None


#: Per stage the key that the judge is asked for, and how its value is read.
FORMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rc": ("covered", _boolean),
    "design": ("exposed", _boolean),
    "execution": ("manifested", _boolean),
    "iss": ("score", _score),
    "ac": ("category", _category),
}


def reply_schema(stage: str) -> dict[str, Any]:
    """The JSON Schema that a judge's reply is asked to follow (a help for decoding, never relied on)."""
    key, _ = FORMS[stage]
    value: dict[str, Any] = {"type": "boolean"}
    if stage == "iss":
        value = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    elif stage == "ac":
        value = {"type": "string", "enum": [*enum_values("AdversarialCategory"), "none"]}
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def read_verdict(stage: str, reply: Reply) -> Reading:
    """Read the verdict of a call. See the module's docstring for the ladder.

    ``stage`` is a key of :data:`FORMS`. The outcome is ``positive`` or ``negative`` (rc, design,
    execution), ``rated`` (iss, ac), or the kind of missing verdict. Never raises on a reply's text.
    """
    if reply.outcome in ("refused", "filtered", "empty", "failed"):
        return Reading(reply.outcome, error=reply.error or reply.finish_reason)
    cut = reply.outcome == "truncated"
    reading = _whole(stage, reply.text.strip())
    text = reply.text
    if reading is None:
        text = _after_thinking(reply.text)
        reading = _climb(stage, text.strip(), cut) if text is not None else None
    if reading is not None:
        return reading
    if cut:
        return Reading("truncated", error="the token limit cut the reply before a verdict")
    if not (reply.text if text is None else text).strip():
        return Reading(
            "empty", error="the reply holds no text" + (" besides its reasoning" if reply.text.strip() else "")
        )
    if _REFUSAL.match((text or "").strip()):
        return Reading("refused", error=_short(text))
    return Reading("unparsed", error=_short(reply.text))


def read_object(reply: Reply, keys: set[str]) -> tuple[dict[str, Any] | None, str, str]:
    """The JSON object of a reply that has exactly these keys; else ``None``, the kind of missing reply, and why.

    The first two rungs of the ladder: the whole reply, or the content of the only fence that the whole reply is.
    Nothing is mended, since an object of several texts is no single word. A truncated reply is none.
    """
    if reply.outcome != "ok":
        return None, reply.outcome, reply.error or reply.finish_reason or "the reply is not whole"
    text = _after_thinking(reply.text)
    for candidate in (reply.text, text or ""):
        stripped = candidate.strip()
        fence = _ONE_FENCE.fullmatch(stripped)
        for value in (_load(stripped), _load(fence.group(1).strip()) if fence else None):
            if isinstance(value, dict) and value.keys() == keys:
                return value, "", ""
    if not (reply.text if text is None else text).strip():
        return None, "empty", "the reply holds no text"
    if _REFUSAL.match((text or "").strip()):
        return None, "refused", _short(text or "")
    return None, "unparsed", _short(reply.text)


def _after_thinking(text: str) -> str | None:
    """The reply without its reasoning; ``None`` where reasoning began and never ended.

    A closing tag without its opening one comes from templates that open the block in the prompt:
    all before the last of them is reasoning.
    """
    text = _THINK.sub("\n", text)
    closing = list(_THINK_CLOSE.finditer(text))
    if closing:
        text = text[closing[-1].end() :]
    return None if _THINK_OPEN.search(text) else text


def _reading(value: Any, rung: str) -> Reading | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Reading("positive" if value else "negative", value, rung)
    return Reading("rated", value, rung)


def _take(stage: str, candidate: Any, rung: str) -> Reading | None:
    key, read = FORMS[stage]
    return _reading(read(candidate[key]), rung) if isinstance(candidate, dict) and key in candidate else None


def _whole(stage: str, text: str) -> Reading | None:
    """Rung 1, and rung 2 where the fence is all there is (it may then quote other fences)."""
    reading = _take(stage, _load(text), "as-is")
    if reading is None and (fence := _ONE_FENCE.fullmatch(text)):
        reading = _take(stage, _load(fence.group(1).strip()), "fence")
    return reading


def _climb(stage: str, text: str, cut: bool) -> Reading | None:
    reading = _whole(stage, text)
    if reading is not None or cut:
        return reading
    if _load(text) is None:
        fences = list(_FENCE.finditer(text))
        if len(fences) > 1:
            return None
        if fences:
            fence = fences[0]
            if not _plain(stage, text[: fence.start()], text[fence.end() :]):
                return None
            inside = fence.group(1).strip()
            return _take(stage, _load(inside), "fence") or _take(stage, _repair(stage, inside), "repair")
        reading = _take(stage, _repair(stage, text), "repair")
        if reading is not None:
            return reading
    # A reply that is JSON as it stands is judged as it stands: looking on would read quotations.
    return _word(stage, text)


class _Twice(ValueError):
    """A key stands twice in one object."""


def _load(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({k for k, _ in items}) < len(items):
            raise _Twice
        return dict(items)

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None


def _repair(stage: str, text: str) -> Any:
    """The only object of a text after one repair. Two objects are two answers, hence none."""
    start, end = text.find("{"), text.find("}")
    if text.count("{") != 1 or text.count("}") != 1 or start > end or not _plain(stage, text[:start], text[end + 1 :]):
        return None
    body = text[start : end + 1]
    no_comma = re.sub(r",\s*}$", "}", body)
    straight = no_comma.translate(str.maketrans("“”„‟‘’", '""""\'\''))
    quoted = straight if '"' in straight else straight.replace("'", '"')
    words = re.sub(r"(?<=[:\s])(True|False|None)(?=\s*[,}])", lambda m: _PYTHON[m[1]], quoted)
    return next((v for v in map(_load, (body, no_comma, straight, quoted, words)) if v is not None), None)


def _plain(stage: str, before: str, after: str) -> bool:
    """Whether words around an object leave it as it is (see the module's docstring)."""
    if "{" in before + after or "}" in before + after:
        return False
    label = before.rpartition("\n")[2].strip()
    if label.strip("`*_# ") and (not label.strip("`*_# ").endswith(":") or _DENIES.search(label)):
        return False
    if after.partition("\n")[0].strip("`*_. \t\r"):
        return False
    lines = [line.strip("`*_#>- \t\r").rpartition(":")[2].strip() for line in (before + "\n" + after).splitlines()]
    return all(not line or _word(stage, line) is None for line in lines)


def _word(stage: str, text: str) -> Reading | None:
    _, read = FORMS[stage]
    if len(text) > 40 or "\n" in text:
        return None
    return _reading(read(text.strip().strip('"')), "word")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:157] + "..."
