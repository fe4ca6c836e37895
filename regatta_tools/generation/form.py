"""The form of a generator's reply: its JSON Schema, made from the class ``Scenario``, and how replies are read.

The ladder, each rung tried once and in this order; the first that brings items names the reading:

1. ``as-is``: the whole reply is a JSON object with the list ``scenarios``, or that list;
2. ``fence``: so is the content of the only code fence;
3. ``pieces``: whole items are taken one after the other from the first ``[`` or ``{`` on, until the text is JSON no
   more. So a list that was cut in the middle loses its last item and no other.

Reasoning in ``<think>`` blocks is taken away first. A reply without an item is an outcome of its own (refused,
truncated, unparsed ...), never an empty list.
"""

from __future__ import annotations

import copy
import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from regatta_tools.generation.language import is_in
from regatta_tools.llm.types import Reply
from regatta_tools.llm.verdicts import _ONE_FENCE, _REFUSAL, _after_thinking, _short
from regatta_tools.tables.shape import document, validator

#: What of a scenario a generator writes. Ids, language and pair are given by the tool.
WRITTEN = ("turns", "context", "expected", "claims")
CLAIMED = ("regulation", "category")
_OPENING = re.compile(r'\{\s*"scenarios"\s*:\s*\[|\[|\{')
#: Words of the very small model: it is held to letters, since free it writes rows of digits.
_LETTERS = {"en": "a-z", "vi": "a-zàáâãèéêìíòóôõùúýăđĩũơưạ-ỹ"}
_LONGEST = {"en": 12, "vi": 7}
_BEGINNINGS = {
    "en": {"text": ("I", "My", "Can I", "What", "Why", "Please"), "context": ("File note",),
           "expected": ("The assistant",)},
    "vi": {"text": ("Tôi", "Cho tôi hỏi", "Vì sao", "Nhờ anh chị"), "context": ("Hồ sơ",), "expected": ("Trợ lý",)},
}  # fmt: skip


def reply_schema(most: int, *, small: str | None = None) -> dict[str, Any]:
    """The JSON Schema of a reply with up to ``most`` scenarios, from the class ``Scenario`` of the schema.

    ``small`` is the language of a very small model, whose texts are held to one sentence of words each.
    """
    definitions = document()["$defs"]
    turn = _plain(definitions["Turn"], definitions)
    claims = _plain(definitions["Claims"], definitions, CLAIMED)
    scenario = _plain(definitions["Scenario"], definitions, WRITTEN)
    scenario["properties"]["turns"] = {"type": "array", "minItems": 1, "items": turn}
    scenario["properties"]["claims"] = claims
    if small is not None:
        scenario["properties"]["turns"] |= {"maxItems": 1}
        turn["properties"] = {"speaker": {"const": "user"}, "text": _sentence(small, "text")}
        scenario["properties"] |= {name: _sentence(small, name) for name in ("context", "expected")}
        letters = _LETTERS[small]
        phrase = f"^[{letters}]{{2,{_LONGEST[small]}}}( [{letters}]{{2,{_LONGEST[small]}}}){{0,4}}$"
        claims["properties"] = {key: {"type": "string", "pattern": phrase} for key in CLAIMED}
    return {
        "type": "object",
        "properties": {"scenarios": {"type": "array", "minItems": 1, "maxItems": most, "items": scenario}},
        "required": ["scenarios"],
        "additionalProperties": False,
    }


def _plain(
    schema: dict[str, Any], definitions: dict[str, Any], kept: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """A class without references and without nothing as a value; every property of ``kept`` is asked for."""
    names = kept or tuple(schema["properties"])
    properties = {}
    for name in names:
        value = copy.deepcopy(schema["properties"][name])
        if "$ref" in value:
            value = copy.deepcopy(definitions[value["$ref"].rpartition("/")[2]])
        if isinstance(value.get("type"), list):
            value["type"] = next(t for t in value["type"] if t != "null")
        properties[name] = {k: v for k, v in value.items() if k in ("type", "enum", "pattern", "description")}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


def _sentence(language: str, name: str) -> dict[str, Any]:
    letters, longest = _LETTERS[language], _LONGEST[language]
    start = "|".join(_BEGINNINGS[language][name])
    words = f"( [{letters}]{{1,{longest}}},?){{4,14}} [{letters}]{{2,{longest}}}"
    return {"type": "string", "pattern": f"^({start}){words}[.?]$"}


@dataclass(frozen=True)
class Reading:
    """What a reply brought. ``outcome`` is ``read`` (the whole reply), ``half`` (items, and then a text that is cut or
    no JSON), or why there is none: refused, filtered, truncated, unparsed, empty, failed."""

    outcome: str
    items: list[Any] = field(default_factory=list)
    rung: str = ""
    why: str = ""


def read_reply(reply: Reply) -> Reading:
    """Read the items of a reply; see the module for the ladder. Never raises on a reply's text."""
    if reply.outcome in ("refused", "filtered", "empty", "failed"):
        return Reading(reply.outcome, why=reply.error or reply.finish_reason or "")
    text = (_after_thinking(reply.text) or "").strip()
    for rung, candidate in (("as-is", text), ("fence", _fenced(text))):
        items = _items(candidate)
        if items is not None:
            return Reading("read", items, rung) if items else Reading("unparsed", why="the list holds no scenario")
    items, rest = _pieces(text)
    if items:
        whole = reply.outcome == "ok" and not rest
        return Reading("read" if whole else "half", items, "pieces", "" if whole else f"then comes {_short(rest)!r}")
    if reply.outcome == "truncated":
        return Reading("truncated", why="the token limit cut the reply before the end of the first scenario")
    if not text:
        return Reading("empty", why="the reply holds no text" + (" besides its reasoning" if reply.text else ""))
    return Reading("refused" if _REFUSAL.match(text) else "unparsed", why=_short(text))


def _fenced(text: str) -> str:
    found = _ONE_FENCE.fullmatch(text)
    return found.group(1).strip() if found else ""


def _items(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        value = value.get("scenarios")
    return value if isinstance(value, list) else None


def _pieces(text: str) -> tuple[list[Any], str]:
    """Objects with ``turns``, one after the other, and what stands after the last of them (closing signs aside)."""
    opening = _OPENING.search(text)
    if opening is None:
        return [], text
    at = opening.start() if opening.group() == "{" else opening.end()
    decoder, items = json.JSONDecoder(), []
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, dict):
            break
        items.append(value)
    return items, text[at:].strip("]} \t\r\n`")


# One item


@dataclass(frozen=True)
class Item:
    """What became of one item: ``accepted`` with its ``value``, ``malformed`` or ``wrong-language`` with the reason."""

    outcome: str
    value: dict[str, Any] = field(default_factory=dict)
    why: str = ""


def read_item(raw: Any, language: str) -> Item:
    """One scenario of a reply in the form of a suite, without its id.

    Texts are NFC without blanks around them; keys that were not asked for are left out; an empty context is none.
    """
    if not isinstance(raw, dict):
        return Item("malformed", why="no object")
    value = {key: _clean(raw[key]) for key in WRITTEN if raw.get(key) not in (None, "", {})}
    if not isinstance(value.get("expected"), str):
        return Item("malformed", why="expected is missing")
    if isinstance(value.get("claims"), dict):
        value["claims"] = {k: v for k, v in value["claims"].items() if k in CLAIMED and v not in (None, "")}
        if not value["claims"]:
            del value["claims"]
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return Item("malformed", why="half of a surrogate pair")
    error = next(validator("Scenario").iter_errors({"id": "s", **value}), None)
    if error is not None:
        place = ".".join(str(p + 1) if isinstance(p, int) else p for p in error.instance_path)
        return Item("malformed", why=f"{place or 'the scenario'}: {error.message[:120]}")
    if value["turns"][-1]["speaker"] != "user":
        return Item("malformed", why="the last turn is not the user's")
    spoken = "\n".join(turn["text"] for turn in value["turns"])
    if not is_in(language, [spoken, value.get("context") or "", value["expected"]]):
        return Item("wrong-language", why=f"not {language}: {_short(spoken)}")
    return Item("accepted", value)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if isinstance(value, list):
        return [_clean(v) for v in value]
    return {k: _clean(v) for k, v in value.items()} if isinstance(value, dict) else value


_NUMBER = re.compile(r"\d+(?:[.,\s]\d{3})*(?:[.,]\d+)?")


def numbers(value: dict[str, Any]) -> list[str]:
    """The digits of the numbers of a scenario in order of size, separators left out: 1,000.50 and 1.000,50 are one."""
    texts = [turn["text"] for turn in value["turns"]] + [value.get("context") or "", value.get("expected") or ""]
    return sorted(re.sub(r"\D", "", n) for text in texts for n in _NUMBER.findall(text))
