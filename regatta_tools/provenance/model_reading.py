"""Reading by a model: one narrow question a citation, and words quoted from the passage that must stand in it.

The machine checks (:mod:`.checks`) use no model. This is the other thing that may be recorded before a person has
looked: a reading of kind ``ai`` that names the model and the version of the question. It never counts as a person's. A
reply that is not of its form, was refused, cut or did not come, and one whose quotation is not in the passage letter by
letter, is an outcome of its own and records nothing.

What is asked is journalled with its reply, so that a reading that was broken off goes on and repeats no call.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from regatta_tools import prompts
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import append_line
from regatta_tools.llm import client, embedded, scripted
from regatta_tools.llm.types import Reply, Request
from regatta_tools.llm.verdicts import read_object
from regatta_tools.provenance import checks
from regatta_tools.provenance.checks import CLEAN, DEFECT, MISSTATES, Index
from regatta_tools.provenance.corpus import Corpus
from regatta_tools.provenance.outcomes import latest
from regatta_tools.provenance.passages import normalise
from regatta_tools.provenance.readings import NewReading, record
from regatta_tools.tables.package import Package, Record
from regatta_tools.text import canonical_json, shown

#: Raised by hand when the meaning of the question changes; readings name it, and its digest changes with every letter.
VERSION = "1"
TEMPLATE = "audit_read"
TOKENS = 1024
#: A quotation has to have so many words, or be the whole passage: one word occurs everywhere.
QUOTED_WORDS = 3
#: Words of the passage in a row that a recorded reason may not hold: the project ships no text of the law.
_COPIED_WORDS = 8
#: What a reply is besides a reading. None of them is recorded.
UNREAD = ("unparsed", "unquoted", "refused", "filtered", "truncated", "empty", "failed")
#: The reasons that a model may name: those that a reader of one passage can see.
REASONS = ("wrong-number", "wrong-unit", "wrong-day-count", "wrong-comparator", "wrong-actor", "wrong-trigger",
           "inverted-exception", "missing-exception", "overstated", "understated")  # fmt: skip
#: What a passage does in each role (CitationRole of the schema), as the question says it.
_DOES = {
    "basis": "it imposes the obligation, or the part of it that is said above to rest on this passage",
    "scope": "it says to whom or to what the obligation applies",
    "exception": "it takes cases out of the obligation",
    "transition": "it governs the passage from an earlier rule to this one",
}
_KEYS = {"answer", "reason_code", "quote", "why"}
_SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "enum": ["agrees", "differs", "absent"]},
        "reason_code": {"type": "string", "enum": ["", *REASONS]},
        "quote": {"type": "string"},
        "why": {"type": "string"},
    },
    "required": sorted(_KEYS),
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Question:
    """One item to be read: the citation with its passage, and the messages that would be sent."""

    citation: Record = field(repr=False)
    read: checks.Read = field(repr=False)
    item_hash: str
    messages: tuple[dict[str, str], ...] = field(repr=False)

    @property
    def key(self) -> str:
        """SHA-256 of what is sent. The same words are the same question."""
        return hashlib.sha256(canonical_json(list(self.messages)).encode()).hexdigest()


@dataclass
class Plan:
    """What would be asked of whom: ``questions``, who takes the texts (``vendor``), what cannot be asked and why.

    ``known`` counts the citations that this reader has read as they stand.
    """

    package: Package = field(repr=False)
    corpus: Corpus = field(repr=False)
    model: str
    reader: str
    vendor: str
    questions: list[Question]
    unasked: dict[str, str] = field(default_factory=dict)
    known: int = 0

    def texts(self) -> dict[str, tuple[int, int]]:
        """The texts of which passages would be sent: file, number of passages, characters."""
        found: dict[str, tuple[int, int]] = {}
        for question in self.questions:
            assert question.read.text is not None and question.read.passage is not None
            count, size = found.get(question.read.text.file, (0, 0))
            found[question.read.text.file] = count + 1, size + len(question.read.passage.normal)
        return dict(sorted(found.items()))


@dataclass
class Read:
    """The outcome of each question by citation, of the audit or of :data:`UNREAD`; ``added`` are the new readings."""

    outcomes: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    calls: int = 0

    @property
    def ok(self) -> bool:
        """Whether all was read, and as clean."""
        return all(outcome == CLEAN for outcome in self.outcomes.values())

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(self.outcomes.values()))


def plan(
    package: Package, corpus: Corpus, model: str, *, cells: Iterable[str] = (), requirements: Iterable[str] = ()
) -> Plan:
    """What is to be read: the citations of active requirements that this reader has not read as they stand.

    Nothing is sent. Raises :class:`InputError` for a model that nothing knows or that is no reader, and
    :class:`EnvironmentProblem` for a missing key.
    """
    if embedded.is_embedded(model):
        what = "the embedded model says yes to whatever it is asked (docs/embedded-judges.md), and is no reader"
        raise InputError(what, code="U106", mend="name a model as litellm does (provider/model)")
    known = client.check_model(model)
    reader = f"{_name(model, known)}, question {TEMPLATE} {VERSION} ({digest()[:8]})"
    made = Plan(package, corpus, model, reader, _vendor(model), [])
    index = Index(package)
    for requirement, citation in index.active_citations(cells, requirements):
        read, troubles = checks.read_citation(index, citation, corpus)
        if read.passage is None:
            made.unasked[citation.key] = troubles[0].message if troubles else "the passage is not held"
            continue
        current, _ = latest(index, citation, read.passage.sha256)
        if any(r["reader"] == reader for r in current):
            made.known += 1
            continue
        made.questions.append(
            Question(citation, read, checks.item_hash(index, citation), _messages(index, requirement, read))
        )
    return made


def digest() -> str:
    """SHA-256 of the question's words and version."""
    return hashlib.sha256("\0".join((VERSION, *prompts.template(TEMPLATE))).encode()).hexdigest()


def _name(model: str, known: dict[str, Any]) -> str:
    return f"scripted {known['fingerprint'][:8]}" if scripted.is_scripted(model) else model


def _vendor(model: str) -> str:
    """Who receives what is sent."""
    if scripted.is_scripted(model):
        return "nobody: the script answers on this machine"
    name, provider, address = client.provider_of(model)
    return f"{provider} (model {name}{f', at {address}' if address else ''})"


def _messages(index: Index, requirement: Record, read: checks.Read) -> tuple[dict[str, str], ...]:
    citation = read.citation
    assert read.passage is not None
    vietnamese = index.sources[citation["source"]]["jurisdiction"].startswith("VN") and requirement["duty_vi"]
    parts = [
        ("Obligation", requirement["duty_vi"] if vietnamese else requirement["duty_en"]),
        *([("Obligation in English", requirement["duty_en"])] if vietnamese else []),
        *((name, requirement[c]) for name, c in (("Who is bound", "actor"), ("Applies when", "applies_when"),
                                                 ("Starts with", "trigger")) if requirement[c]),
        *(("Rests on this passage", _fact(f)) for f in index.facts.get(requirement.key, ())
          if f["citation"] == citation.key),
    ]  # fmt: skip
    return prompts.render(
        TEMPLATE,
        item=prompts.fenced("obligation", parts),
        passage=prompts.fenced("passage", [(citation["locator"], read.passage.normal)]),
        role=citation["role"],
        does=_DOES[citation["role"]],
        codes=", ".join(REASONS),
    )


def _fact(fact: Record) -> str:
    cells = (fact[c] for c in ("label", "comparator", "value", "unit", "day_count", "clock_start", "base"))
    return " | ".join(cell for cell in cells if cell)


# Asking


def read_all(made: Plan, journal: Path, *, progress: Callable[[int, int], None] | None = None) -> Read:
    """Ask all questions of a plan, journal each reply, and record the readings in the package.

    A question that the journal has a reply to is not asked again, unless that reply never came. Raises
    :class:`EnvironmentProblem` where the model is out of reach or the journal cannot be written; what was answered
    until then is journalled, and the same call goes on from there.
    """
    done = Read()
    readings = []
    with Journal(journal) as kept:
        reach = client.Reach(made.model)
        for number, question in enumerate(made.questions, 1):
            entry = kept.replies.get((made.reader, question.key))
            if entry is None:
                reply = client.complete(_request(made.model, question))
                done.calls += 1
                entry = kept.add(made.reader, question, reply)
                reach.told(reply)
            _take(made, question, entry, done, readings)
            if progress is not None:
                progress(number, len(made.questions))
        done.added = record(made.package, made.corpus, readings)
    return done


def _request(model: str, question: Question) -> Request:
    purpose = {"stage": "audit", "target": question.citation["requirement"], "scenario": question.citation.key}
    return Request(model, question.messages, max_tokens=TOKENS, schema=_SCHEMA, purpose=purpose)


def _take(made: Plan, question: Question, entry: dict[str, Any], done: Read, readings: list[NewReading]) -> None:
    key = question.citation.key
    outcome, said = judge(Reply(entry["outcome"], text=entry["text"], error=entry.get("error")), question.read)
    done.outcomes[key], done.why[key] = outcome, said["why"]
    if outcome not in UNREAD:
        readings.append(
            NewReading(
                key, outcome, made.reader, "ai", entry["day"], reason_code=said["code"], reason=said["why"],
                item_hash=entry["item_hash"], passage_hash=entry["passage_hash"],
            )
        )  # fmt: skip


def judge(reply: Reply, read: checks.Read) -> tuple[str, dict[str, str]]:
    """The outcome of a reply, with ``code`` and ``why``. No likeness: a quotation stands in the passage or does not."""
    value, missing, error = read_object(reply, _KEYS)
    if value is None:
        return missing, {"code": "", "why": error}
    answer, code, quote, why = (value[k] for k in ("answer", "reason_code", "quote", "why"))
    if not all(isinstance(v, str) for v in (answer, code, quote, why)):
        return "unparsed", {"code": "", "why": "a value of the reply is no text"}
    if answer not in ("agrees", "differs", "absent") or (answer == "differs") != (code in REASONS):
        return "unparsed", {"code": "", "why": f"the answer {shown(answer)} with the reason {shown(code)}"}
    place = _place(quote, read)
    if place is None:
        return "unquoted", {"code": "", "why": f"the passage does not have the words {shown(quote)}"}
    outcome = {"agrees": CLEAN, "differs": MISSTATES, "absent": DEFECT}[answer]
    return outcome, {
        "code": {"agrees": "", "differs": code, "absent": "wrong-locator"}[answer],
        "why": f"{_own_words(why, read)} [rests on characters {place[0]}-{place[1]} of the passage]".strip(),
    }


def _place(quote: str, read: checks.Read) -> tuple[int, int] | None:
    """Where a quotation begins and ends in the normalised passage: letter by letter, at the edges of words."""
    assert read.passage is not None
    words, whole = normalise(quote), read.passage.normal
    if not words or (len(words.split()) < QUOTED_WORDS and words != whole):
        return None
    start = whole.find(words)
    while start >= 0:
        end = start + len(words)
        inside = (start and whole[start - 1].isalnum() and words[0].isalnum()) or (
            end < len(whole) and whole[end].isalnum() and words[-1].isalnum()
        )
        if not inside:
            return start, end
        start = whole.find(words, start + 1)
    return None


def _own_words(why: str, read: checks.Read) -> str:
    """A model's reason in one line, or a word about it where it copies the passage or is no sentence to keep."""
    assert read.passage is not None
    line = normalise(why)
    words, whole = line.split(), read.passage.normal
    copied = any(" ".join(words[i : i + _COPIED_WORDS]) in whole for i in range(max(0, len(words) - _COPIED_WORDS + 1)))
    if copied:
        return "The model gave its reason in the words of the passage."
    if not line or line[0] in "=+-@" or not line.isprintable():
        return "The model gave no reason that a table can hold."
    return line if len(line) <= 300 else f"{line[:297]}..."


# The journal


class Journal:
    """Replies by reader and question, one JSON object a line, each on the disk before the next call is made.

    ``replies`` are those that came; a call that failed may be made again. Raises :class:`EnvironmentProblem` where the
    file cannot be written or another process writes to it, and :class:`InputError` for a file that is no journal.
    """

    _FIELDS = ("reader", "key", "citation", "item_hash", "passage_hash", "day", "outcome", "text")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replies: dict[tuple[str, str], dict[str, Any]] = {}

    def __enter__(self) -> Journal:
        import filelock

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = filelock.FileLock(f"{self.path}.lock", timeout=0)
            self._lock.acquire()
            raw = self.path.read_bytes() if self.path.exists() else b""
        except filelock.Timeout as error:
            what = "another process reads with this journal"
            raise EnvironmentProblem(what, code="E306", place=str(self.path), mend="wait for it") from error
        except OSError as error:
            raise self._unwritable(error) from error
        # Half a line is a reply that did not get to the disk: its call counts as not made.
        whole = raw[: raw.rfind(b"\n") + 1]
        try:
            self._read(whole)
            if len(whole) < len(raw):
                os.truncate(self.path, len(whole))
            self._stream = open(self.path, "ab")
        except OSError as error:
            self._lock.release()
            raise self._unwritable(error) from error
        except InputError:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._stream.close()
        self._lock.release()

    def _read(self, raw: bytes) -> None:
        for number, line in enumerate(raw.split(b"\n")[:-1], 1):
            try:
                entry = json.loads(line)
                if not all(isinstance(entry[name], str) for name in self._FIELDS):
                    raise ValueError
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                what = "this line is no entry of a journal of readings"
                mend = "name another file with --journal"
                raise InputError(what, code="U136", place=f"{self.path}:{number}", mend=mend) from error
            if entry["outcome"] != "failed":
                self.replies[entry["reader"], entry["key"]] = entry

    def add(self, reader: str, question: Question, reply: Reply) -> dict[str, Any]:
        """Write down the reply to a question, with what was asked about."""
        assert question.read.passage is not None
        entry = {
            "reader": reader,
            "key": question.key,
            "citation": question.citation.key,
            "item_hash": question.item_hash,
            "passage_hash": question.read.passage.sha256,
            "day": date.today().isoformat(),
            "outcome": reply.outcome,
            "text": reply.text,
            "error": reply.error,
            "served_model": reply.served_model,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "cost_usd": reply.cost_usd,
        }
        try:
            append_line(self._stream.fileno(), json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        except OSError as error:
            raise self._unwritable(error) from error
        return entry

    def _unwritable(self, error: OSError) -> EnvironmentProblem:
        what = f"the journal cannot be written: {error.strerror or error}"
        return EnvironmentProblem(what, code="E304", place=str(self.path), mend="name another file with --journal")
