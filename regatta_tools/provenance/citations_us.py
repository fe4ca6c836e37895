"""The grammar of United States citations: federal regulations and statutes, and the state codes of the table.

``reporters.yaml`` says which codes there are and how their sections look; this module says how sections, paragraphs,
lists, ranges and "et seq." are put together. Two rules keep it honest. A text is read whole or not at all, so that no
shorter citation stands in for a longer one. And where a text has two readings it is refused, with the way to write
each: a hyphen between sections, a sign § before several of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.provenance.citation_model import PARAGRAPH, Citation, NotUnderstood, Place, Scanner, Step, prepared
from regatta_tools.provenance.labels import counts, follows, section_key

_TABLE = Path(__file__).with_name("reporters.yaml")
_KEYS = {"jurisdiction", "name", "written", "section", "examples"}
_MORE_KEYS = {"title", "of", "part", "act", "decimal"}


@dataclass(frozen=True)
class Reporter:
    """One entry of the table. ``written`` and ``of`` are the ways of writing its name, the canonical one first."""

    system: str
    jurisdiction: str
    name: str
    written: tuple[str, ...]
    of: tuple[str, ...]
    sections: tuple[str, ...]
    examples: dict[str, str] = field(repr=False, hash=False)
    title: str = ""
    part: str = ""
    act: str = ""
    decimal: bool = False

    @cached_property
    def section(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{s})" for s in self.sections))

    def key(self, section: str) -> Any:
        return section_key(section, self.decimal)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=1)
def reporters() -> dict[str, Reporter]:
    """The table of reporters by system. Raises :class:`EnvironmentProblem` where the file is not of its form."""
    from regatta_tools.documents import SyntaxProblem, read_document

    try:
        raw = read_document(_TABLE).value
        found = {}
        for system, entry in raw.items():
            if not _KEYS <= set(entry) <= _KEYS | _MORE_KEYS:
                raise ValueError(f"{system!r} has to have {', '.join(sorted(_KEYS))}")
            found[system] = Reporter(
                system=system, jurisdiction=entry["jurisdiction"], name=entry["name"], written=tuple(entry["written"]),
                of=tuple(entry.get("of", ())), sections=tuple(entry["section"]), examples=dict(entry["examples"]),
                title=entry.get("title", ""), part=entry.get("part", ""), act=entry.get("act", ""),
                decimal="decimal" in entry,
            )  # fmt: skip
            re.compile("|".join((*found[system].sections, found[system].title, found[system].part)))
        return found
    except (SyntaxProblem, OSError, ValueError, TypeError, AttributeError, KeyError, re.error) as error:
        raise EnvironmentProblem(
            f"the table of reporters cannot be used: {error}", code="E302", place=_TABLE.name, mend="reinstall REGATTA"
        ) from error


def jurisdictions() -> frozenset[str]:
    """The jurisdictions of which the table has a code."""
    return frozenset(r.jurisdiction for r in reporters().values())


def _words(way: str, title: str) -> str:
    """The pattern of a way of writing: its words as they are, with any run of spaces, and the title's number."""
    pattern = re.escape(way).replace(r"\{title\}", f"({title})" if title else "")
    return pattern.replace(r"\ ", " +")


@lru_cache(maxsize=1)
def _heads() -> tuple[re.Pattern[str], list[Reporter]]:
    """One pattern for all ways of writing, the longest first, with one group a way; and their reporters."""
    ways = sorted(((way, r) for r in reporters().values() for way in r.written), key=lambda w: -len(w[0]))
    # A way without a title has an empty group, so that the number of a group is that of its way.
    parts = [_words(way, r.title) if r.title else f"({_words(way, '')})" for way, r in ways]
    return re.compile(f"(?:{'|'.join(parts)})(?![A-Za-z0-9.])"), [r for _, r in ways]


@lru_cache(maxsize=1)
def _tails() -> list[tuple[re.Pattern[str], Reporter]]:
    """Ways of writing the name behind its sections: sections 1331 and 1332 of title 28."""
    ways = sorted(((way, r) for r in reporters().values() for way in r.of), key=lambda w: -len(w[0]))
    return [
        (re.compile(rf"(?P<cut>,? +of +(?:the +)?|, +){_words(way, r.title) if r.title else _words(way, '')}$"), r)
        for way, r in ways
    ]


_SPACE = re.compile(" *")
_COMMA = re.compile(" *,")
_APPENDIX = re.compile(r" +[Aa]pp\.?(?= )")
_MANY = re.compile(r" *(?:§§|[Ss]ections(?= )|[Ss]ecs\.(?= )) *")
_ONE = re.compile(r" *(?:§|[Ss]ection(?= )|[Ss]ec\.(?= )) *")
_STARTS_WITH_SIGN = re.compile(r"(?:§|[Ss]ection|[Ss]ecs?\. )")
_PART = re.compile(r" *(?:[Pp]arts?|[Pp]ts?\.)(?= ) *")
_BELOW_PART = re.compile(
    r" *,? *(?:(?P<subpart>[Ss]ubpart|[Ss]ubpt\.)|(?P<appendix>[Aa]ppendix|[Aa]pp\.)"
    r"|(?P<supplement>[Ss]upplement|[Ss]upp\.)) +"
)
_DIVISION_FIRST = re.compile(r"((?:Subpart|Appendix|Supplement) [A-Z0-9][A-Za-z0-9-]{0,5}) (?:of|to) (?=.)")
_DIVISION = re.compile(r"[A-Z]{1,3}(?:-[0-9]{1,3})?|[IVX]{1,5}|[0-9]{1,2}")
_LABEL = re.compile(r" ?\(([0-9A-Za-z]{1,7}(?:[-.][0-9A-Za-z]{1,3})?)\)")
_HYPHEN = re.compile(r" *- *")
_TO = re.compile(r" +(?:to|through) +")
_LIST = re.compile(r" *(?:, *(?:and|or) +|,|;| and +| & +| or +) *")
_ET_SEQ = re.compile(r",? +et\.? +seq\.?")
_NOTE = re.compile(
    r"(?:,? +(?P<intro>introductory +(?:text|clause|paragraph|sentence))"
    r'|,? +\(?definition +of +"(?P<term>[^"]{1,80})"\)?|,? +(?P<note>note)(?![A-Za-z]))'
)
_WORD_GOES_ON = re.compile(r"[\w]|[.\-/][0-9A-Za-z]")


def parse(text: str) -> Citation:
    """The citation that a text is. Raises :class:`NotUnderstood` for anything else; see :mod:`.citations`."""
    text = prepared(text)
    if found := _DIVISION_FIRST.match(text):  # Subpart B of 45 CFR Part 158
        try:
            return parse(f"{text[found.end() :]}, {found.group(1)}")
        except NotUnderstood as problem:
            raise NotUnderstood(text, found.end(), problem.why) from problem
    scan = Scanner(text)
    head, named = _heads()
    match = scan.take(head)
    if match is not None:
        reporter, title = named[match.lastindex - 1], match.group(match.lastindex)  # type: ignore[operator]
    else:
        cut = _tail(scan.plain) if _STARTS_WITH_SIGN.match(scan.plain) else None
        if cut is None:
            raise scan.problem(_no_code(text))
        reporter, title, scan.end = cut
    scan.take(_COMMA)
    return _Reading(scan, reporter, title if reporter.title else "").citation()


def _no_code(text: str) -> str:
    """Why no name of a code is here: there is none, or there is and its title does not exist."""
    for reporter in reporters().values():
        if reporter.title and any(re.match(_words(way, "[0-9]+"), text) for way in reporter.written):
            return f"there is no such title of the {reporter.name}"
    return "no code of the table of reporters begins here"


def _tail(plain: str) -> tuple[Reporter, str, int] | None:
    for pattern, reporter in _tails():
        match = pattern.search(plain)
        if match is not None:
            return reporter, match.group(2) if reporter.title else "", match.start()
    return None


class _Reading:
    """One reading of a text from behind the name of its code."""

    def __init__(self, scan: Scanner, reporter: Reporter, title: str) -> None:
        self.scan, self.reporter, self.title = scan, reporter, title
        self.places: list[Place] = []
        self.appendix = False
        self.items = 0  # sections and ranges of them that were named

    def citation(self) -> Citation:
        scan = self.scan
        self.appendix = self.reporter.system == "USC" and scan.take(_APPENDIX) is not None
        if self.reporter.part and scan.take(_PART):
            self._parts()
        elif self.reporter.act:
            scan.take(_SPACE)
            self._acts()
        else:
            self._sections()
        if not scan.done:
            raise scan.problem("this does not belong to a citation, or a comma is missing before it")
        return self._so_far()

    # Sections

    def _sections(self) -> None:
        scan, start = self.scan, self.scan.at
        many = scan.take(_MANY) is not None
        one = not many and scan.take(_ONE) is not None
        if not (many or one):
            scan.take(_SPACE)
        self._section()
        while scan.take(_LIST):
            if scan.sees(_LABEL) and not _spans_sections(self.places[-1]):
                self._paragraphs(self._section_steps(self.places[-1].path))
            else:
                one = one and not (scan.take(_MANY) or scan.take(_ONE))
                self._section()
        if scan.done:
            self._sign(one, many, start)

    def _sign(self, one: bool, many: bool, at: int) -> None:
        """Hold the sign against what followed: § announces one section, §§ several, and something may be lost."""
        several = self.items > 1 or any(_spans_sections(p) for p in self.places)
        if one and several:
            raise self.scan.problem("one § stands for one section, and here are several", at, render(self._so_far()))
        if many and not several and not self.places[-1].open_ended:
            if "-" in self.places[0].section:
                raise self.scan.problem("§§ stands for several sections: write the end of a range whole", at)
            raise self.scan.problem("§§ stands for several sections, and here is one", at, render(self._so_far()))

    def _so_far(self) -> Citation:
        return Citation(self.reporter.system, self.title, tuple(self.places), self.appendix)

    def _section_steps(self, path: tuple[Step, ...]) -> tuple[Step, ...]:
        """The steps of a path down to its section."""
        return path[: next(n for n, s in enumerate(path) if s.level == "section") + 1]

    def _section(self) -> None:
        scan, start = self.scan, self.scan.at
        label, last = self._number()
        self.items += 1
        first = (Step("section", label),)
        if last:
            self._range(first, (Step("section", last),), start)
        elif scan.sees(_LABEL):
            self._paragraphs(first)
        elif end := self._section_end():
            self._range(first, end, start)
        else:
            self._add(Place(first))

    def _number(self) -> tuple[str, str]:
        """A section number; with it the last one, where a hyphen in a section of the U.S. Code is one of a range."""
        scan, start = self.scan, self.scan.at
        match = scan.take(self.reporter.section)
        if match is None or (scan.sees(_WORD_GOES_ON) and not self._range_goes_on()):
            scan.at = start
            raise scan.problem(self._no_section())
        label = match.group()
        splits = _ranges_in(label, self.reporter.section) if self.reporter.system == "USC" and "-" in label else []
        if len(splits) > 1:
            raise scan.problem(f"the hyphens can be read in several ways: write {' to '.join(splits[0])}", start)
        return splits[0] if splits else (label, "")

    def _range_goes_on(self) -> bool:
        """Whether what follows a section number without a space is a hyphen and another section number."""
        match = _HYPHEN.match(self.scan.plain, self.scan.at, self.scan.end)
        return (
            match is not None and self.reporter.section.match(self.scan.plain, match.end(), self.scan.end) is not None
        )

    def _no_section(self) -> str:
        name = self.reporter.system
        if self.reporter.part and re.compile(self.reporter.part).match(self.scan.plain, self.scan.at, self.scan.end):
            return f"a section of the {name} has a part before its point (a whole part is written Part 149)"
        return f"here has to stand a section as the {name} numbers them"

    def _section_end(self) -> tuple[Step, ...]:
        """The last section of a range, with its paragraphs; empty where there is no range."""
        scan = self.scan
        if not (scan.take(_TO) or scan.take(_HYPHEN)):
            return ()
        scan.take(_ONE)
        return self._last_section()

    def _last_section(self, above: tuple[Step, ...] = ()) -> tuple[Step, ...]:
        """The section that ends a range, below the same act where the code has them, with its paragraphs."""
        start = self.scan.at
        if above and not self.scan.take(_compiled(f"{re.escape(above[0].label)}/")):
            raise self.scan.problem("the end of the range has to be written whole, with its act")
        match = self.scan.take(self.reporter.section)
        if match is None or self.scan.sees(_WORD_GOES_ON):
            self.scan.at = start
            raise self.scan.problem(self._no_section())
        return (*above, Step("section", match.group()), *self._labels())

    # Paragraphs

    def _labels(self) -> tuple[Step, ...]:
        steps = []
        while match := self.scan.take(_LABEL):
            if not counts(match.group(1)):
                raise self.scan.problem("this is no label of a paragraph", match.start())
            steps.append(Step(PARAGRAPH, match.group(1)))
        return tuple(steps)

    def _paragraphs(self, section: tuple[Step, ...]) -> None:
        """One path below a section, or a range that begins there."""
        scan, start = self.scan, self.scan.at
        path = section + self._completed(section, self._labels(), start)
        at = scan.at
        hyphen = scan.take(_HYPHEN)
        if not hyphen and not scan.take(_TO):
            self._add(Place(path))
        elif scan.sees(_LABEL):
            self._range(path, path[: len(section)] + self._elided(path[len(section) :], self._labels(), at), at)
        else:
            self._range(path, self._last_section(section[:-1]), at)

    def _completed(self, section: tuple[Step, ...], labels: tuple[Step, ...], at: int) -> tuple[Step, ...]:
        """The whole path of an item of a list: (3) after (a)(1) is (a)(3), and (b) after it is (b)."""
        before = self.places[-1].path if self.places else ()
        if before[: len(section)] != section:
            return labels
        if before == section:
            raise self.scan.problem("the whole section stands before this paragraph of it", at)
        above = tuple(s.label for s in before[len(section) :])
        if above[0] == labels[0].label or follows(above[0], labels[0].label):
            deeper = [n for n in range(1, len(above)) if follows(above[n], labels[0].label)]
            if deeper:
                whole = "".join(f"({s})" for s in (*above[: deeper[-1]], labels[0].label))
                raise self.scan.problem(f"this can be {whole} or a paragraph of the section: write it whole", at)
            return labels
        for depth in range(len(above) - 1, 0, -1):
            if follows(above[depth], labels[0].label):
                return before[len(section) : len(section) + depth] + labels
        raise self.scan.problem("this does not come after what stands before it: write the whole path", at)

    def _elided(self, path: tuple[Step, ...], end: tuple[Step, ...], at: int) -> tuple[Step, ...]:
        """The whole path of the end of a range: (3) after (a)(1) is (a)(3)."""
        deepest = follows(path[-1].label, end[0].label)
        whole = len(path) > 1 and (path[0] == end[0] or follows(path[0].label, end[0].label))
        if deepest and not (path[0] == end[0] and len(path) > 1 and len(end) > 1):
            return (*path[:-1], *end)
        if whole and not deepest:
            return end
        if deepest:
            raise self.scan.problem("the end of the range can be read in two ways: write its section again", at)
        raise self.scan.problem("the range ends before it begins, or counts in another way", at)

    def _range(self, first: tuple[Step, ...], last: tuple[Step, ...], at: int) -> None:
        differ = next((n for n, (a, b) in enumerate(zip(first, last)) if a != b), None)
        ordered = False
        if differ is not None and first[differ].level == last[differ].level:
            a, b = first[differ].label, last[differ].label
            if first[differ].level == PARAGRAPH:
                ordered = follows(a, b)
            else:
                ordered = self.reporter.key(a) < self.reporter.key(b)
        if not ordered:
            raise self.scan.problem("the range does not run forward", at)
        self._add(Place(first, last))

    def _add(self, place: Place) -> None:
        """Keep a place, with what stands behind it: a note, or et seq."""
        scan, start = self.scan, self.scan.at
        note = ""
        if match := scan.take(_NOTE):
            term = match["term"]
            note = f'definition of "{term}"' if term else "note" if match["note"] else "introductory text"
        open_ended = scan.take(_ET_SEQ) is not None
        if (note and (place.last or open_ended)) or (open_ended and place.last):
            raise scan.problem("a note or et seq. stands behind one place, not behind a range or another note", start)
        self.places.append(Place(place.path, place.last, open_ended, note))

    # Parts of regulations, and acts of Illinois

    def _parts(self) -> None:
        scan = self.scan
        number = _compiled(self.reporter.part)
        while True:
            match = scan.take(number)
            if match is None or scan.sees(re.compile("[0-9A-Za-z]")):
                raise scan.problem("here has to stand the number of a part", match.start() if match else None)
            path: tuple[Step, ...] = (Step("part", match.group()),)
            at = scan.at
            if (scan.take(_HYPHEN) or scan.take(_TO)) and (last := scan.take(number)):
                if scan.sees(_NOTE) or scan.sees(_ET_SEQ):
                    raise scan.problem("a note or et seq. stands behind a section")
                self._range(path, (Step("part", last.group()),), at)
            else:
                if scan.at != at:
                    raise scan.problem("here has to stand the number of a part")
                while below := scan.take(_BELOW_PART):
                    label = scan.take(_DIVISION)
                    if label is None or scan.sees(re.compile("[0-9A-Za-z]")):
                        raise scan.problem("here has to stand the letter or number of a division")
                    path = (*path, Step(below.lastgroup or "", label.group()))
                self.places.append(Place(path))
            at = scan.at
            if not scan.take(_LIST):
                return
            if scan.sees(_MANY) or scan.sees(_ONE):
                self._sections_of_part(at)
                return

    def _sections_of_part(self, at: int) -> None:
        """Part 225, § 225.352 is § 225.352, where the part is the same."""
        parts = {p.path[0].label for p in self.places}
        self.places = []
        self._sections()
        for place in self.places:
            if self.reporter.system and part_of(place) not in parts:
                raise self.scan.problem("the section is of another part than the one named before it", at)

    def _acts(self) -> None:
        scan = self.scan
        number = _compiled(rf"({self.reporter.act})(?![0-9A-Za-z])(/)?")
        while True:
            match = scan.take(number)
            if match is None:
                raise scan.problem("here has to stand the number of an act, as 155 or 155/20")
            act = Step("act", match.group(1))
            if match.group(2):
                self._section_of_act(act)
            else:
                self._add(Place((act,)))
            if not scan.take(_LIST):
                return
            while scan.sees(_LABEL) and self.places[-1].section:
                self._paragraphs(self._section_steps(self.places[-1].path))
                if not scan.take(_LIST):
                    return

    def _section_of_act(self, act: Step) -> None:
        scan, start = self.scan, self.scan.at
        match = scan.take(self.reporter.section)
        if match is None or scan.sees(_WORD_GOES_ON):
            raise scan.problem(self._no_section(), start)
        path = (act, Step("section", match.group()))
        if scan.sees(_LABEL):
            self._paragraphs(path)
        elif scan.take(_TO):
            self._range(path, self._last_section((act,)), start)
        else:
            self._add(Place(path))


def _spans_sections(place: Place) -> bool:
    return bool(place.last) and place.last[0] != place.path[0]


def _ranges_in(label: str, section: re.Pattern[str]) -> list[tuple[str, str]]:
    """The ways to read a hyphenated section of the U.S. Code as a range: 201-219, 1692-1692p, 80a-1-80a-64.

    Code sections have hyphens of their own, and there what follows counts anew: 300gg-111, 1320a-7a, 78u-4.
    """
    found = []
    for at in (n for n, sign in enumerate(label) if sign == "-"):
        first, last = label[:at], label[at + 1 :]
        if not (section.fullmatch(first) and section.fullmatch(last)):
            continue
        one, two = section_key(first), section_key(last)
        same_number = one[0] == two[0] and one < two
        if same_number or (first.isdigit() and one[0] < two[0]):
            found.append((first, last))
    return found


def part_of(place: Place) -> str:
    """The part of a regulation in which a place is: 1005 of § 1005.6."""
    head = place.path[0]
    if head.level == "section":
        return head.label.split(".", 1)[0]
    return head.label if head.level == "part" else ""


# Writing


def render(citation: Citation) -> str:
    """A citation in canonical form, which :func:`parse` reads as the same citation."""
    reporter = reporters()[citation.system]
    name = reporter.written[0].replace("{title}", citation.title) + (" app." if citation.appendix else "")
    if reporter.act:
        return f"{name} {', '.join(_item(group, reporter) for group in _groups(citation.places))}"
    if citation.places[0].path[0].level == "part":
        plural = len(citation.places) > 1 or citation.places[0].last
        return f"{name} Part{'s' if plural else ''} {', '.join(_part(place) for place in citation.places)}"
    groups = _groups(citation.places)
    sign = "§§" if len(groups) > 1 or any(_spans_sections(p) for p in citation.places) else "§"
    return f"{name} {sign} {', '.join(_item(group, reporter) for group in groups)}"


def _groups(places: tuple[Place, ...]) -> list[list[Place]]:
    """Places that share a section and follow each other, which is then written once."""

    def head(numbered: tuple[int, Place]) -> Any:
        number, place = numbered
        alone = not place.subdivisions or _spans_sections(place)
        return number if alone else tuple(s for s in place.path if s.level != PARAGRAPH)

    return [[place for _, place in group] for _, group in groupby(enumerate(places), key=head)]


def _item(group: list[Place], reporter: Reporter) -> str:
    first = group[0].path
    number = "/".join(s.label for s in first if s.level != PARAGRAPH)
    return number + ", ".join(_paragraph(place, reporter) for place in group)


def _paragraph(place: Place, reporter: Reporter) -> str:
    """The brackets of a place, the end of its range, and what stands behind it."""
    text = "".join(f"({s.label})" for s in place.path if s.level == PARAGRAPH)
    if place.last:
        last = "".join(f"({s.label})" for s in place.last if s.level == PARAGRAPH)
        number = "/".join(s.label for s in place.last if s.level != PARAGRAPH)
        siblings = place.last[: len(place.path) - 1] == place.path[:-1] and not _spans_sections(place)
        below = place.last[len(place.path) - 1 :]
        # Where the end begins like the path, it would read as the path written again.
        again = len(below) > 1 and below[0].label in place.subdivisions[:1]
        if siblings and place.path[-1].level == PARAGRAPH and not again:
            text += "-" + "".join(f"({s.label})" for s in below)
        elif text or last or reporter.act or not _plain_range(place.path[-1].label, number, reporter):
            text += f" to {number}{last}"
        else:
            text += f"-{number}"
    if place.note:
        text += f", {place.note}" if place.note == "introductory text" else f" ({place.note})"
        text = text.replace(" (note)", " note")
    return text + (" et seq." if place.open_ended else "")


def _plain_range(first: str, last: str, reporter: Reporter) -> bool:
    """Whether a hyphen between two sections can only be that of a range."""
    if "-" in first + last:
        return False
    return reporter.system != "USC" or _ranges_in(f"{first}-{last}", reporter.section) == [(first, last)]


def _part(place: Place) -> str:
    head, *below = place.path
    text = head.label + "".join(f", {s.level.capitalize()} {s.label}" for s in below)
    return f"{text}-{place.last[0].label}" if place.last else text
