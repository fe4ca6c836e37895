"""Passages: the words at a locator, cut out of a held text, and the one form in which they are hashed.

A passage is what a locator names *and what governs it*: the subdivision itself with all below it, after the
introductory words of each subdivision above it (in ``§ 5(b)(1)`` the words of (b) before (1) carry the "shall").
Where a locator names a range, the passage has every subdivision from the first to the last.

The form that is hashed, :data:`NORMALISATION`, version 1:

- Unicode form NFC; typographic quotes and dashes as their plain forms; soft hyphens and zero-width marks taken out;
- lines that begin with ``>`` (notes of whoever copied the text) and codification lines of Vietnamese copies left out;
- runs of white space, line breaks among them, as one space; none at either end.

So a text that was wrapped anew or retyped with other quotation marks has the same hash, and a changed word, number or
comma has another. Change the form and its version changes with it, so that old hashes are known as such.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from regatta_tools.provenance.corpus import Section, SourceText, cut
from regatta_tools.provenance.labels import counts as label_counts

NORMALISATION = "regatta-passage/1"

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)
# Notes of those who copied a text: "> [68 FR 8376, ...]", and the line with which the Vietnamese codification
# (Bộ pháp điển) names the article that it took over.
_COPIER = re.compile(r"^(>.*|\((Điều|Khoản|Điểm) .*có hiệu lực thi hành.*\))$", re.MULTILINE)


# An article held as an amending text words it: its own clauses stand in quotes between the instructions.
_AMENDED = re.compile(r"\((amended|added|replaced) by ")
_INSTRUCTION = re.compile(r"^[0-9]{1,2}\. (Sửa đổi|Bổ sung|Thay thế|Bãi bỏ)[^\n]*$", re.MULTILINE)


def normalise(text: str) -> str:
    """A text in the form :data:`NORMALISATION`. Doing it twice changes nothing."""
    text = _COPIER.sub("", unicodedata.normalize("NFC", text).replace("\r\n", "\n"))
    return " ".join(unicodedata.normalize("NFC", text.translate(_PLAIN)).split())


def passage_hash(text: str) -> str:
    """SHA-256, in lower-case hexadecimal, of a passage in the form :data:`NORMALISATION`."""
    return hashlib.sha256(normalise(text).encode("utf-8")).hexdigest()


# Labels of subdivisions


def _counts(label: str) -> dict[str, float]:
    """The ways of counting to which a label can belong, each with its position from 0 (1-c stands between 1 and 2)."""
    return {
        way: place - 1 + (0.5 if added else 0.0)
        for way, (place, added) in label_counts(label).items()
        if not way.endswith("pair")
    }


@dataclass
class Node:
    """A subdivision: its label, where it starts and ends in the body, and what is below it. The root has no label."""

    label: str
    count: str
    start: int
    end: int = 0
    children: list[Node] = field(default_factory=list)

    def named(self, label: str) -> list[Node]:
        """The subdivisions of this label: one, none, or several where a count starts anew (definitions do that)."""
        return [c for c in self.children if c.label == label]

    @property
    def lead_end(self) -> int:
        """Where the introductory words end: at the first subdivision below, or at the end."""
        return self.children[0].start if self.children else self.end


@dataclass(frozen=True)
class _Label:
    label: str
    start: int
    last: bool  # whether it is the last label of its line


# The labels with which a line begins: (b)(1)  (i) Maintain ...; and 1. or a) in Vietnamese law.
_US_LINE = re.compile(r"^[ \t]*((?:\([0-9A-Za-z]{1,5}(?:-[0-9a-z]{1,2})?\)[ \t]*(?:—[ \t]*)?)+)", re.MULTILINE)
_US_LABELS = re.compile(r"(?:\([0-9A-Za-z]{1,5}\)[ \t]*(?:—[ \t]*)?)+")
_US_LABEL = re.compile(r"\(([0-9A-Za-z]{1,5}(?:-[0-9a-z]{1,2})?)\)")
_VN_LINE = re.compile(r"^[ \t“\"]*(?:([0-9]{1,2}[a-zđ]?)\.|\(([0-9]{1,2})\)|([a-zđ][0-9]?)\))(?=[ \t])", re.MULTILINE)


# A paragraph heading after which the first paragraph below goes on in the same line: (c) Time limits. (1) A person ...
_US_TITLE = re.compile(r"[ \t]*[A-Z][^.()\n]{1,120}(?:\.|—|-)[ \t]*(?=\((?:1|i|A)\))")


def _us_labels(body: str) -> Iterator[_Label]:
    for line in _US_LINE.finditer(body):
        start, end = line.span(1)
        while end > start:
            found = [m for m in _US_LABEL.finditer(body, start, end) if _counts(m.group(1))]
            for n, match in enumerate(found):
                yield _Label(match.group(1), match.start(), n == len(found) - 1)
            title = _US_TITLE.match(body, end)
            start = title.end() if title else end
            more = _US_LABELS.match(body, start) if title else None
            end = more.end() if more else start


@lru_cache(maxsize=4096)
def us_tree(body: str, above: tuple[str, ...] = ()) -> Node:
    """The subdivisions of a US section.

    ``above`` are labels that the heading of the section names and the body does not repeat. Labels do not say their
    level, and levels differ between codes, so a label goes where it continues a count: next after the label of an open
    level (the deepest first), else first of a new level below, else after a gap (extracts leave paragraphs out).
    """
    root = Node("", "", 0, len(body))
    stack = [root]
    for label in above:
        _open(stack, len(stack) - 1, label, next(iter(_counts(label) or {"": 0.0})), 0)
    labels = list(_us_labels(body))
    for n, found in enumerate(labels):
        following = labels[n + 1].label if n + 1 < len(labels) else ""
        again = None if found.last else next((d for d, o in enumerate(stack) if d and o.label == found.label), None)
        if again is not None:  # (b)(2) after (b)(1): the line names (b) again
            _close(stack, again, found.start)
            continue
        depth, count = _level(stack, found, following)
        _open(stack, depth, found.label, count, found.start)
    for node in stack[1:]:
        node.end = len(body)
    return root


def _open(stack: list[Node], depth: int, label: str, count: str, start: int) -> None:
    """Open a node below ``stack[depth]``, closing what is open below it."""
    _close(stack, depth, start)
    node = Node(label, count, start)
    stack[depth].children.append(node)
    stack.append(node)


def _close(stack: list[Node], depth: int, end: int) -> None:
    for node in stack[depth + 1 :]:
        node.end = end
    del stack[depth + 1 :]


def _level(stack: list[Node], found: _Label, following: str) -> tuple[int, str]:
    """The depth of the node below which a label opens, and the way of counting that it belongs to."""
    counts = _counts(found.label)
    steps = []  # (gap, how far up, depth of the parent, count)
    for depth in range(len(stack) - 1, 0, -1):
        node = stack[depth]
        if node.count in counts:
            gap = counts[node.count] - _counts(node.label)[node.count]
            # (ii) is the 35th letter only after (hh); nobody leaves out as many.
            if 0 < gap <= (1 if counts[node.count] >= 26 else 25):
                steps.append((gap, len(stack) - depth, depth - 1, node.count))
    following_on = min((s for s in steps if s[0] <= 1), key=lambda s: s[1], default=None)
    first = next((c for c, at in counts.items() if at == 0 and all(c != n.count for n in stack[1:])), None)
    if first and found.label in ("i", "I") and (following_on or len(stack) == 1) and following not in ("ii", "II"):
        # After (h), or as the first label of an extract, (i) is a letter unless a roman count goes on from it.
        first = None
    elif found.label in ("i", "I") and following in ("ii", "II"):
        following_on, steps = None, []
    if following_on:
        return following_on[2:]
    if first:
        return len(stack) - 1, first
    if steps:
        return min(steps)[2:]
    again = next((c for c, at in counts.items() if at == 0), None)
    open_at = [depth for depth, node in enumerate(stack) if node.count == again]
    if open_at and stack[-1].count not in ("upper letter", "upper roman"):
        # A count that starts anew, as in a list of definitions; only below (A) do federal rules count (1), (i) again.
        return open_at[-1] - 1, again  # type: ignore[return-value]  # there is one where it is open
    # A count that begins in the middle, since the extract leaves out what comes before.
    return len(stack) - 1, next(iter(counts))


@lru_cache(maxsize=4096)
def vn_tree(body: str, above: tuple[str, ...] = ()) -> Node:
    """The subdivisions of a Vietnamese article: khoản (1.) and in them điểm (a)); levels are plain from the form."""
    root = Node("", "", 0, len(body))
    stack = [root]
    for label in above:
        _open(stack, len(stack) - 1, label, "number" if label[0].isdigit() else "letter", 0)
    for match in _VN_LINE.finditer(body):
        clause, point = match.group(1) or match.group(2), match.group(3)
        # With the bracket or quotation mark before the label, which is none of the subdivision before.
        start = match.end() - len(match.group().lstrip())
        if clause:
            _open(stack, 0, clause, "number", start)
        else:
            depth = 1 if len(stack) > 1 and stack[1].count == "number" else 0
            _open(stack, depth, point, "letter", start)
    for node in stack[1:]:
        node.end = len(body)
    return root


# Passages


@dataclass(frozen=True)
class Target:
    """What a locator names: one section, the path of labels in it, and for a range the last label of that level."""

    section: str
    path: tuple[str, ...] = ()
    last: str = ""

    def __str__(self) -> str:
        return self.section + "".join(f"({p})" for p in self.path) + (f"-({self.last})" if self.last else "")


@dataclass(frozen=True)
class Passage:
    """A passage that was found. ``text`` is as it stands, lead-ins first; ``headings`` name the sections it is from."""

    text: str = field(repr=False)
    headings: tuple[str, ...]

    @property
    def normal(self) -> str:
        return normalise(self.text)

    @property
    def sha256(self) -> str:
        return passage_hash(self.text)


def find_passage(text: SourceText, target: Target, country: str) -> tuple[Passage | None, str]:
    """The passage of ``target`` in a text, or ``None`` and why not.

    ``country`` is ``US`` or ``VN``: it says how sections are headed and counted. Where the text holds the section in
    several pieces, all pieces that have the path belong to the passage.
    """
    pieces: list[str] = []
    headings: list[str] = []
    reasons: list[str] = []
    for section in text.sections:
        heads = heading_paths(section.heading, target.section, country)
        if heads is None:
            continue
        piece, reason = _within(section, target, heads, country)
        if piece is None:
            reasons.append(reason)
        else:
            pieces.append(piece)
            headings.append(section.heading)
    if pieces:
        return Passage("\n".join(dict.fromkeys(pieces)), tuple(headings)), ""
    return None, "; ".join(reasons) or f"the text has no section {target.section}"


def is_empty_at(text: SourceText, target: Target, country: str) -> bool:
    """Whether the text has the section of a target as a heading alone, with no word of the law below it."""
    held = [s.body for s in text.sections if heading_paths(s.heading, target.section, country) is not None]
    return bool(held) and not any(normalise(body) for body in held)


def find_passages(text: SourceText, targets: Sequence[Target], country: str) -> tuple[Passage | None, str]:
    """The passages of several places as one, in their order; all of them, or ``None`` and why not."""
    found = []
    for target in targets:
        passage, why = find_passage(text, target, country)
        if passage is None:
            return None, why
        found.append(passage)
    return Passage("\n".join(p.text for p in found), tuple(h for p in found for h in p.headings)), ""


#: Lines above the words of the law that somebody may have copied with them: a title, an address, a date.
_LINES_ABOVE = 4


def known_passage(words: str, targets: Sequence[Target], country: str, sha256: str) -> Passage | None:
    """The passage of a recorded hash in words that somebody copied from the law, or ``None``.

    People copy the paragraph alone, or the section with it, or its title too. Each is tried as the section or as a
    subdivision on the way to the place, and the hash decides: no other words have it.
    """
    whole = Passage(words, ())
    if whole.sha256 == sha256:
        return whole
    bodies = [words]
    for _ in range(_LINES_ABOVE):
        bodies.append(bodies[-1].lstrip().partition("\n")[2])
    sections = [tuple(cut(words))]
    for target in targets[:1]:
        for body in bodies:
            for depth in range(len(target.path) + 1):
                sections.append((Section(_heading(target, depth, country), body, 1),))
    for held in sections:
        if held and held[0].body.strip():
            found, _ = find_passages(SourceText("", "", {}, held, ""), targets, country)
            if found is not None and found.sha256 == sha256:
                return found
    return None


def _heading(target: Target, depth: int, country: str) -> str:
    """How a text would head a section, or a subdivision of it."""
    if country == "US":
        return f"§ {Target(target.section, target.path[:depth])}"
    steps = zip(("khoản", "điểm"), target.path[:depth], strict=False)
    return ", ".join([target.section, *(f"{name} {label}" for name, label in steps)])


_US_GROUP = re.compile(r"(?:\([0-9A-Za-z]{1,5}(?:-[0-9a-z]{1,2})?\))+")
_US_TAIL = re.compile(r"(?:[\s,\-–]|and|\([0-9A-Za-z]{1,5}(?:-[0-9a-z]{1,2})?\))*")
_VN_STEP = re.compile(r"(khoản|điểm)\s+([0-9]{1,2}[a-zđ]?|[a-zđ][0-9]?)(?![\wÀ-ỹ])", re.IGNORECASE)


def heading_paths(heading: str, section: str, country: str) -> list[tuple[str, ...]] | None:
    """Paths that a heading names in a section; ``None`` where it is about another one, an empty list for all of it."""
    if re.search(r"history note|source note|superseded", heading, re.IGNORECASE):
        return None
    # Not in a bracket: "(sửa đổi Điều 51 ...)" says what the article amends, and is not that article.
    plain = re.sub(r"\s\(.*", "", heading) if country == "VN" else heading
    match = re.search(rf"(?<![\w.\-/]){re.escape(section)}(?!\w|[.\-/]\w)", plain)
    if not match:
        return None
    if country == "VN":
        return _vn_paths(plain[match.end() :])
    tail = _US_TAIL.match(plain, match.end()).group()  # type: ignore[union-attr]  # matches the empty text
    return [tuple(_US_LABEL.findall(group)) for group in _US_GROUP.findall(tail)]


def _vn_paths(tail: str) -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    clause = ""
    for kind, label in _VN_STEP.findall(tail):
        if kind.lower() == "khoản":
            clause = label
            paths.append((label,))
        else:
            if paths and paths[-1] == (clause,):
                paths.pop()  # the clause was named only to say where the point is
            paths.append((clause, label) if clause else (label,))
    return paths


def _within(section: Section, target: Target, heads: list[tuple[str, ...]], country: str) -> tuple[str | None, str]:
    body = _COPIER.sub(_blank, section.body)
    if _AMENDED.search(section.heading):
        body = _INSTRUCTION.sub(_blank, body)
    tree = us_tree if country == "US" else vn_tree
    root = tree(body, _above(body, heads, country))
    node, lead = root, [_lead(root, body)]
    for depth, label in enumerate(target.path[:-1] if target.last else target.path):
        below = node.named(label)
        if len(below) != 1:
            what = "more than one" if below else "no"
            return None, f"{section.heading!r} has {what} {Target(target.section, target.path[: depth + 1])}"
        node = below[0]
        lead.append(_lead(node, body))
    if not target.last:
        return _joined([*lead[:-1], body[node.start : node.end]]) if node is not root else body, ""
    chosen = _range(node.children, target.path[-1], target.last)
    if chosen is None:
        return None, f"{section.heading!r} has no {target}"
    return _joined([*lead, *(body[c.start : c.end] for c in chosen)]), ""


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _joined(parts: Sequence[str]) -> str:
    return "\n".join(part for part in parts if part)


def _lead(node: Node, body: str) -> str:
    """The introductory words of a node, or nothing where there are labels and dashes alone."""
    lead = body[node.start : node.lead_end].strip()
    return lead if re.search(r"\w", _US_LABEL.sub("", lead)) else ""


def _above(body: str, heads: list[tuple[str, ...]], country: str) -> tuple[str, ...]:
    """The labels that a heading gives and the body leaves out."""
    if not heads:
        return ()
    head = heads[0]
    first = next(_us_labels(body), None) if country == "US" else None
    if country == "VN":
        match = _VN_LINE.search(body)
        label = match.group(match.lastindex or 0) if match else ""
    else:
        label = first.label if first else ""
    return head[: head.index(label)] if label in head else head


def _range(children: Sequence[Node], first: str, last: str) -> list[Node] | None:
    labels = [c.label for c in children]
    if first not in labels or last not in labels or labels.index(last) < labels.index(first):
        return None
    return list(children[labels.index(first) : labels.index(last) + 1])
