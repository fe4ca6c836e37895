"""The instruments held against the law as read.

The law's text is not part of the project. Where it lies beside it (``../shared/legal/texts``), these tests prove that
every source has a held text, that every locator resolves in it, that every number of the tables stands in the cited
passage with its unit and its kind of day, and that no passage of law has been copied. Where it is absent they skip.

The readers below are deliberately this file's own and use the standard library alone: they share no code, and hence no
error, with the tools.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
import unicodedata
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
LEGAL = REPO.parent / "shared" / "legal"
INSTRUMENTS = REPO / "instruments"
CELLS = sorted(p.parent.name for p in INSTRUMENTS.glob("*/requirements.csv"))
US_CELLS = [cell for cell in CELLS if cell.endswith("-us")]  # Vietnamese locators have a reader of their own

needs_law = pytest.mark.skipif(not (LEGAL / "texts").is_dir(), reason="../shared/legal is absent: the law was not read")


# ----- tables and held texts


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, strict=True))


def table(cell: str, name: str) -> list[dict[str, str]]:
    return rows(INSTRUMENTS / cell / f"{name}.csv")


def sources() -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in rows(INSTRUMENTS / "sources.csv")}


def split_sections(text: str) -> list[tuple[str, str]]:
    """Heading and body of each ``## `` section; what stands above the first is the header and is no law."""
    parts = re.split(r"^## (.*)$", unicodedata.normalize("NFC", text), flags=re.M)
    return [(parts[i].strip(), parts[i + 1]) for i in range(1, len(parts), 2)]


@cache
def held(source: str) -> list[tuple[str, str]]:
    return split_sections((LEGAL / "texts" / f"{source}.txt").read_text(encoding="utf-8"))


# ----- locators (US forms; another form is an error, not a pass)

LABEL = r"\([0-9A-Za-z]{1,5}(?:-[a-z])?\)"
LOCATOR = re.compile(
    rf"^(?P<code>\S.*?)\s(?:§\s?)?(?P<section>\d[\w.\-/]*?)(?P<path>(?:{LABEL})*)(?:-(?P<last>(?:{LABEL})+))?$"
)
LEADING = re.compile(rf"^\s*((?:{LABEL}\s*(?:—\s*)?)+)")
ROMAN = re.findall(r"\w+", "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx")


class NotFound(LookupError):
    """The locator names what the held text does not have."""


def labels(path: str) -> list[str]:
    return [label[1:-1] for label in re.findall(LABEL, path or "")]


def followers(label: str) -> set[str]:
    """Labels that can come next on the same level, with which a paragraph ends."""
    if label.isdigit():
        return {str(int(label) + 1)}
    if re.fullmatch(r"\d+-[a-z]", label):
        number, letter = label.split("-")
        return {str(int(number) + 1), f"{number}-{chr(ord(letter) + 1)}"}
    out = set()
    if len(label) == 1 and label not in "zZ":
        out.add(chr(ord(label) + 1))
    if label in ROMAN[:-1]:
        out.add(ROMAN[ROMAN.index(label) + 1])
    return out


def heading_paths(heading: str, section: str) -> list[list[str]] | None:
    """Paragraph paths that a heading names after its section: None if it is about another section, [] if none."""
    match = re.search(rf"(?<![\w.\-]){re.escape(section)}(?!\w|[.\-]\w)", heading)
    if not match or re.search(r"history note|source note|superseded", heading, re.I):
        return None
    tail = re.match(rf"(?:[\s,\-–]|and|{LABEL})*", heading[match.end() :]).group(0)
    return [labels(group) for group in re.findall(rf"(?:{LABEL})+", tail)]


def covered(first: str, heading: str, paths: list[list[str]]) -> bool:
    """Does a heading with these paths reach the first label of a locator? A range covers what lies between its ends."""
    tops = [path[0] for path in paths]
    if not tops or first in tops:
        return True
    span = re.search(rf"({LABEL})-({LABEL})", heading)
    if span and len(tops) >= 2:
        low, high = tops[0], tops[1]
        return len(low) == len(high) == len(first) == 1 and low < first < high
    return False


def passage(sections: list[tuple[str, str]], locator: str) -> str:
    """The cited paragraph, with the introductory words of the paragraphs above it."""
    parsed = LOCATOR.match(locator)
    if not parsed:
        raise NotFound(f"no reader for this form of locator: {locator!r}")
    section, path, last = parsed["section"], labels(parsed["path"]), labels(parsed["last"])
    reasons = []
    found = []
    for heading, body in sections:
        paths = heading_paths(heading, section)
        if paths is None:
            continue
        if path and not covered(path[0], heading, paths):
            reasons.append(f"{heading!r} does not reach ({path[0]})")
            continue
        result = _within(body, path, last, paths)
        if result is None:
            reasons.append(f"no {parsed['path']}{'-' + parsed['last'] if last else ''} in {heading!r}")
        else:
            found.append(result)
    if not found:
        raise NotFound(f"{locator}: " + ("; ".join(reasons) or f"no section {section} in the held text"))
    return "\n".join(found)


def _within(body: str, path: list[str], last: list[str], heading: list[list[str]]) -> str | None:
    lines = body.splitlines()
    tokens = [
        (number, label)
        for number, line in enumerate(lines)
        if (match := LEADING.match(line))
        for label in labels(match.group(1))
    ]

    def line_of(index: int) -> int:
        return tokens[index][0] if index < len(tokens) else len(lines)

    named_tops = {path[0] for path in heading}  # an excerpt may jump from (a) to (d)

    def intro(index: int) -> list[str]:
        if line_of(index + 1) == tokens[index][0]:
            return []  # "(b) (1) ...": the line belongs to the inner paragraph
        after = next((i for i in range(index + 1, len(tokens)) if tokens[i][0] > tokens[index][0]), len(tokens))
        return lines[tokens[index][0] : line_of(after)]

    def ends(index: int, stop: int, label: str, depth: int):
        after = followers(label) | (named_tops - {label} if depth == 0 else set())
        yield from (i for i in range(index + 1, stop) if tokens[i][1] in after)
        yield stop

    def descend(depth: int, start: int, stop: int, above: list[str]) -> list[str] | None:
        if depth == len(path):
            return above + lines
        label = path[depth]
        here = [i for i in range(start, stop) if tokens[i][1] == label]
        for index in here:
            for end in ends(index, stop, label, depth):
                if depth + 1 < len(path):
                    result = descend(depth + 1, index + 1, end, above + intro(index))
                    if result is not None:
                        return result
                    continue
                close = end
                if last:
                    final = next((i for i in range(index + 1, stop) if tokens[i][1] == last[0]), None)
                    if final is None or len(last) > 1:
                        continue
                    close = next(ends(final, stop, last[0], depth))
                return above + lines[tokens[index][0] : line_of(close)]
        if any(len(named) > depth and named[: depth + 1] == path[: depth + 1] for named in heading):
            if depth + 1 < len(path):
                return descend(depth + 1, start, stop, above)
            return above + lines[: line_of(stop)] if not last else None
        return None

    lead = lines[: line_of(0)]
    if not path:
        return "\n".join(lines)
    result = descend(0, 0, len(tokens), lead)
    return None if result is None else "\n".join(result)


# ----- numbers, units and kinds of day


def counted(text: str, start: int, step: int = 1) -> dict[str, int]:
    return {word: start + step * place for place, word in enumerate(text.split())}


SMALL = counted(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
    0,
)
TENS = counted("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
ORDINAL = counted(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth",
    1,
)
ORDINAL |= counted("twentieth thirtieth fortieth fiftieth sixtieth", 20, 10)
MONTHS = list(counted("January February March April May June July August September October November December", 1))
UNIT_WORDS = {
    "minute": {"minute", "minutes"},
    "hour": {"hour", "hours"},
    "day": {"day", "days"},
    "week": {"week", "weeks"},
    "month": {"month", "months"},
    "year": {"year", "years"},
    "percent": {"percent", "%"},
    "USD": {"dollar", "dollars"},
    "decimal-place": {"decimal"},
    "times": {"times"},
}
DAY_KINDS = {"calendar", "business", "working"}
WORD = re.compile(r"\$?\d[\d,]*(?:\.\d+)?(?:st|nd|rd|th)?|[A-Za-z]+|%")


def words(sentence: str) -> list[str]:
    return WORD.findall(sentence)


def sentences(text: str) -> list[str]:
    """Sentences without the labels before them, which are no numbers of the law."""
    lines = (LEADING.sub("", line) for line in text.splitlines())
    return [s for line in lines for s in re.split(r"(?<=[.;])\s+(?=[A-Z(])", line) if s.strip()]


def number_at(tokens: list[str], index: int) -> tuple[Decimal, int] | None:
    """The number that starts at a token, as numeral or English words, and the index after it."""
    token = tokens[index].lower()
    if token.lstrip("$")[:1].isdigit():
        digits = re.sub(r"(?:st|nd|rd|th)$", "", token.lstrip("$")).replace(",", "")
        return Decimal(digits), index + 1
    if token in ORDINAL:
        return Decimal(ORDINAL[token]), index + 1
    if token in TENS:
        following = tokens[index + 1].lower() if index + 1 < len(tokens) else ""
        extra = {**SMALL, **ORDINAL}.get(following, 0)
        return (Decimal(TENS[token] + extra), index + 2) if 1 <= extra <= 9 else (Decimal(TENS[token]), index + 1)
    if token in SMALL:
        value, after = SMALL[token], index + 1
        if after < len(tokens) and tokens[after].lower() == "hundred":
            value, after = value * 100, after + 1
            rest = number_at(tokens, after) if after < len(tokens) and tokens[after].isalpha() else None
            if rest and rest[0] < 100:
                value, after = value + int(rest[0]), rest[1]
        return Decimal(value), after
    return None


def quantities(sentence: str):
    """(value, unit, kind of day) of every number that has a unit close behind it, or a dollar sign before it."""
    tokens = words(sentence)
    index = 0
    product = re.search(r"\bproduct of\b", sentence, re.I)  # "the product of 1.5 and ..." is 1.5 times
    while index < len(tokens):
        read = number_at(tokens, index)
        if read is None:
            index += 1
            continue
        value, after = read
        if tokens[index].startswith("$"):
            yield value, "USD", ""
        if product or tokens[after : after + 1] == ["times"]:
            yield value, "times", ""
        behind = after
        repeated = number_at(tokens, behind) if behind < len(tokens) else None
        if repeated and repeated[0] == value:  # fifteen (15)
            behind = repeated[1]
        kind = ""
        for token in (t.lower() for t in tokens[behind : behind + 3]):
            unit = next((u for u, forms in UNIT_WORDS.items() if u != "times" and token in forms), None)
            if unit:
                yield value, unit, (kind or "unspecified") if unit == "day" else ""
                break
            if token in DAY_KINDS or token == "work":
                kind = "working" if token == "work" else token
            elif token in SMALL or token in TENS or token[0].isdigit() or token[0] == "$":
                break
        index = after


def stated(text: str) -> set[tuple[Decimal, str, str]]:
    return {q for sentence in sentences(text) for q in quantities(sentence)}


def stems(text: str) -> set[str]:
    small = {"with", "from", "that", "this", "then", "each", "and", "the", "for", "not", "known"}
    return {w[:5] for w in re.findall(r"[a-z]{4,}", text.lower()) if w not in small}


def fact_error(fact: dict[str, str], text: str) -> str | None:
    """What is wrong with a fact as against the passage it cites, or None."""
    value, unit = fact["value"], fact["unit"]
    if fact["kind"] in ("form", "list"):
        if unit:
            return "a form or list has no unit"
        want = stems(value)
        have = stems(text)
        return None if 2 * len(want & have) >= len(want) else f"words of {value!r} are not in the passage"
    if fact["kind"] == "date":
        match = re.fullmatch(r"(\d{4}|-)-(\d\d)-(\d\d)", value)
        if not match:
            return f"{value!r} is no date"
        year = "" if match[1] == "-" else rf",? {match[1]}"
        written = rf"\b{MONTHS[int(match[2]) - 1]} {int(match[3])}\b{year}"
        return None if re.search(written, text) else f"the date {value} is not in the passage"
    number = Decimal(value)
    if unit == "item":
        near = stems(fact["label"])
        for sentence in sentences(text):
            tokens = words(sentence)
            for i in range(len(tokens)):
                read = number_at(tokens, i)
                if read and read[0] == number and near & stems(" ".join(tokens[max(0, i - 8) : i + 8])):
                    return None
        return f"{value} items named {fact['label']!r} are not in the passage"
    found = {q for q in stated(text) if q[0] == number}
    if not found:
        return f"{value} is not in the passage with any unit"
    if unit not in {q[1] for q in found}:
        return f"{value} is there, but not in {unit}"
    if unit == "day" and fact["day_count"] not in {q[2] for q in found if q[1] == "day"}:
        return f"{value} days are there, but not {fact['day_count']} ones"
    return None


# ----- the tables against the law


@needs_law
@pytest.mark.shared
def test_every_source_has_a_held_text():
    missing = [s for s in sources() if not (LEGAL / "texts" / f"{s}.txt").is_file()]
    assert not missing


@needs_law
@pytest.mark.shared
@pytest.mark.parametrize("cell", US_CELLS)
def test_every_locator_resolves(cell):
    errors = []
    for citation in table(cell, "citations"):
        try:
            passage(held(citation["source"]), citation["locator"])
        except (NotFound, OSError) as error:
            errors.append(f"{citation['id']}: {error}")
    assert not errors, "\n".join(errors)


@needs_law
@pytest.mark.shared
@pytest.mark.parametrize("cell", US_CELLS)
def test_every_fact_stands_in_its_passage(cell):
    cited = {c["id"]: c for c in table(cell, "citations")}
    errors = []
    for fact in table(cell, "facts"):
        citation = cited[fact["citation"]]
        assert citation["requirement"] == fact["requirement"], fact["id"]
        error = fact_error(fact, passage(held(citation["source"]), citation["locator"]))
        if error:
            errors.append(f"{fact['id']} ({citation['locator']}): {error}")
    assert not errors, "\n".join(errors)


@needs_law
@pytest.mark.shared
@pytest.mark.parametrize("cell", US_CELLS)
def test_every_quantity_of_a_duty_stands_in_a_cited_passage(cell):
    by_requirement: dict[str, str] = {}
    for citation in table(cell, "citations"):
        text = passage(held(citation["source"]), citation["locator"])
        by_requirement[citation["requirement"]] = by_requirement.get(citation["requirement"], "") + "\n" + text
    errors = []
    for requirement in table(cell, "requirements"):
        law = stated(by_requirement[requirement["id"]])
        for column in ("duty_en", "applies_when"):
            for quantity in stated(requirement[column]) - law:
                errors.append(f"{requirement['id']} {column}: {quantity}")
    assert not errors, "\n".join(errors)


def unfounded(requirements, citations, known) -> list[str]:
    """Requirements without a binding basis in force; a repealed one counts if a source in force keeps it alive."""

    def in_force(source: str) -> bool:
        return known[source]["binding"] == "true" and known[source]["status"] == "in-force"

    def good(citation) -> bool:
        keeper = citation["kept_in_force_by"]
        kept = known[citation["source"]]["binding"] == "true" and keeper and in_force(keeper)
        return citation["role"] == "basis" and bool(in_force(citation["source"]) or kept)

    founded = {c["requirement"] for c in citations if good(c)}
    return [r["id"] for r in requirements if r["id"] not in founded]


@pytest.mark.parametrize("cell", CELLS)
def test_every_requirement_has_a_binding_basis_in_force(cell):
    assert unfounded(table(cell, "requirements"), table(cell, "citations"), sources()) == []


def runs(text: str, length: int = 12) -> list[str]:
    tokens = re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())
    return [" ".join(tokens[i : i + length]) for i in range(len(tokens) - length + 1)]


@cache
def law_runs() -> frozenset[str]:
    return frozenset(
        run
        for path in sorted((LEGAL / "texts").glob("*.txt"))
        for _, body in split_sections(path.read_text(encoding="utf-8"))
        for run in runs(body)
    )


@needs_law
@pytest.mark.shared
def test_no_passage_of_law_is_copied():
    known = law_runs()
    assert len(known) > 1000
    errors = []
    for path in sorted(INSTRUMENTS.rglob("*.csv")):
        for number, row in enumerate(rows(path), 2):
            for column, value in row.items():
                if column == "title_vi":  # the name of an act is no passage of it
                    continue
                errors += [f"{path.name}:{number} {column}: {run}" for run in runs(value or "") if run in known]
    for path in sorted(p for p in (REPO / "examples").rglob("*") if p.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        errors += [f"{path.name}: {run}" for run in runs(text) if run in known]
    assert not errors, "\n".join(errors)


# ----- the worked cases of the faults, by hand


def business(day: dt.date, count: int) -> dt.date:
    while count:
        day += dt.timedelta(days=1)
        count -= day.weekday() < 5
    return day


def calendar(day: dt.date, count: int) -> dt.date:
    return day + dt.timedelta(days=count)


def three(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.001"), ROUND_HALF_UP)


def mlr(inputs):
    x = {k: Decimal(v) for k, v in inputs.items()}
    right = three((x["claims"] + x["quality"]) / (x["premium"] - x["taxes_fees"]))
    return x, right, three(x["claims"] / x["premium"])


def mlr_ratio(inputs):
    return mlr(inputs)[1:]


def mlr_rebate(inputs):
    x, right, wrong = mlr(inputs)
    gap = max(x["standard"] - right, Decimal(0)), max(x["standard"] - wrong, Decimal(0))
    return gap[0] * (x["year_premium"] - x["year_taxes_fees"]), gap[1] * x["year_premium"]


def mlr_shortfall(inputs):
    x, right, wrong = mlr(inputs)
    return max(x["standard"] - right, Decimal(0)), max(x["standard"] - wrong, Decimal(0))


def days(right: int, wrong: int, wrong_step=calendar):
    """A last day so many calendar days on, against the last day by the wrong count."""

    def work(inputs):
        (day,) = inputs.values()
        start = dt.date.fromisoformat(day)
        return calendar(start, right), wrong_step(start, wrong)

    return work


def fixed(right: str, wrong: str):
    return lambda inputs: (Decimal(right), Decimal(wrong))


def value_received(inputs):
    face, fee = Decimal(inputs["face"]), Decimal(inputs["fee"])
    return face - fee, face


def one_payment_rate(inputs):
    """Charge over the money received, in percent of a year, for one payment after one year."""
    face, fee, payment = (Decimal(inputs[name]) for name in ("face", "fee", "payment"))
    rate = [(payment / received - 1) * 100 for received in (face - fee, face)]
    return tuple(r.quantize(Decimal("0.01"), ROUND_HALF_UP) for r in rate)


WORKED = {
    ("fintech-us-fault-bank-sar-floor", "floor"): fixed("2000", "5000"),
    ("fintech-us-fault-bank-sar-floor", "file_by"): days(30, 30, business),
    ("fintech-us-fault-fee-blind-apr", "value_received"): value_received,
    ("fintech-us-fault-fee-blind-apr", "apr_one_payment_after_one_year"): one_payment_rate,
    ("fintech-us-fault-fee-blind-apr", "mapr_one_payment_after_one_year"): one_payment_rate,
    ("healthcare-us-fault-gross-premium-mlr", "ratio"): mlr_ratio,
    ("healthcare-us-fault-gross-premium-mlr", "shortfall"): mlr_shortfall,
    ("healthcare-us-fault-off-site-records", "answer_by_off_site"): days(30, 60),
    ("insurance-us-fault-business-day-clock", "acknowledge_by"): days(15, 15, business),
    ("insurance-us-fault-business-day-clock", "decide_by"): days(40, 40, business),
    ("insurance-us-fault-business-day-clock", "pay_by"): days(30, 30, business),
    ("insurance-us-fault-gross-premium-mlr", "ratio"): mlr_ratio,
    ("insurance-us-fault-gross-premium-mlr", "rebate"): mlr_rebate,
}


def same(written: str, worked) -> bool:
    return written == worked.isoformat() if isinstance(worked, dt.date) else Decimal(written) == worked


@pytest.mark.parametrize("cell", US_CELLS)
def test_fault_probes_are_worked_out_right(cell):
    values = {(v["fault"], v["parameter"]): v for v in table(cell, "fault_values")}
    seen = set()
    for probe in table(cell, "fault_probes"):
        key = probe["fault"], probe["parameter"]
        seen.add(key)
        assert probe["true_result"] != probe["faulty_result"], probe["id"]
        inputs = dict(pair.split("=") for pair in probe["inputs"].split("; "))
        texts = [re.fullmatch(r'"([^"]*)"', values[key][side]) for side in ("true_expr", "faulty_expr")]
        if all(texts):
            assert [t[1] for t in texts] == [probe["true_result"], probe["faulty_result"]], probe["id"]
        else:
            assert key in WORKED, f"{probe['id']}: nobody worked this out"
            right, wrong = WORKED[key](inputs)
            assert same(probe["true_result"], right), (probe["id"], right)
            assert same(probe["faulty_result"], wrong), (probe["id"], wrong)
    assert seen == set(values)


# ----- these readers can fail

SAMPLE = split_sections("""source-id: sample
as-of: 2026-01-01

## § 12.5(a)
(a) Upon notice, every keeper shall, in no event more than fifteen (15) calendar days later, do this:
(1) write back;
(2) pay the 20th business day after that, or within a 60-day period.
## § 12.7
(a) A fee of $5,000 or 85 percent is due.
(b) (1) First part, within forty-five days and four months by September 30.
(i) Inner part of one.
(ii) Inner part of two takes 72 hours.
(2) Next part is the product of 1.5 and the base.
(c) Third part, rounded to three decimal places.
## § 12.8 (a), (d)
(a) Before it.
(d) After the gap.
## § 12.9(k)(1)(A)-(B)(i)
(1) Head
(A) one
(B) two
(i) one of two
## § 12.11 (history note)
(a) Filed on 1 May.
""")


def sample_fact(value, unit="", day_count="", kind="duration"):
    return {"value": value, "unit": unit, "day_count": day_count, "kind": kind}


def test_the_reader_of_locators():
    assert "write back" in passage(SAMPLE, "10 XYZ § 12.5(a)(1)-(2)")
    text = passage(SAMPLE, "10 XYZ § 12.7(b)(1)(ii)")
    assert "72 hours" in text and "forty-five" in text and "Next" not in text and "Third" not in text
    assert "fee" not in passage(SAMPLE, "10 XYZ 12.7(b)-(c)")
    assert "First" not in passage(SAMPLE, "10 XYZ § 12.7(b)(2)")  # "(b) (1) ..." is no introduction to (b)(2)
    assert "one" in passage(SAMPLE, "10 XYZ § 12.9(k)(1)(B)(i)") and "gap" not in passage(SAMPLE, "10 XYZ § 12.8(a)")
    assert passage(SAMPLE, "10 XYZ § 12.8(d)").endswith("(d) After the gap.")


@pytest.mark.parametrize(
    "path",
    [
        "12.5(b)",
        "12.6(a)",
        "12.7(b)(3)",
        "12.7(a)-(d)",
        "12.7(b)(1)(iii)",
        "2.5",
        "12.8(b)",
        "12.9(k)(2)",
        "12.9(j)",
        "12.11",
    ],
)
def test_a_locator_that_the_text_does_not_have_is_flagged(path):
    with pytest.raises(NotFound):
        passage(SAMPLE, f"10 XYZ § {path}")


def test_an_unknown_form_of_locator_is_flagged():
    with pytest.raises(NotFound, match="no reader"):
        passage(SAMPLE, "somewhere in chapter five")


@pytest.mark.parametrize(
    ("locator", "fact"),
    [
        ("10 XYZ § 12.5(a)(1)-(2)", sample_fact("15", "day", "calendar")),
        ("10 XYZ § 12.5(a)(2)", sample_fact("20", "day", "business")),
        ("10 XYZ § 12.5(a)(2)", sample_fact("60", "day", "unspecified")),
        ("10 XYZ § 12.7(a)", sample_fact("5000", "USD", kind="money")),
        ("10 XYZ § 12.7(a)", sample_fact("85", "percent", kind="ratio")),
        ("10 XYZ § 12.7(b)(1)", sample_fact("45", "day", "unspecified")),
        ("10 XYZ § 12.7(b)(1)", sample_fact("4", "month")),
        ("10 XYZ § 12.7(b)(1)", sample_fact("--09-30", "calendar-date", kind="date")),
        ("10 XYZ § 12.7(b)(2)", sample_fact("1.5", "times", kind="ratio")),
        ("10 XYZ § 12.7(c)", sample_fact("3", "decimal-place", kind="count")),
        ("10 XYZ § 12.5(a)(1)", sample_fact("write back", kind="form")),
    ],
)
def test_a_right_fact_passes(locator, fact):
    assert fact_error(fact, passage(SAMPLE, locator)) is None


@pytest.mark.parametrize(
    ("locator", "fact"),
    [
        ("10 XYZ § 12.5(a)(1)", sample_fact("16", "day", "calendar")),  # wrong number
        ("10 XYZ § 12.5(a)(1)", sample_fact("15", "hour")),  # wrong unit
        ("10 XYZ § 12.5(a)(1)", sample_fact("15", "day", "business")),  # wrong kind of day
        ("10 XYZ § 12.5(a)(1)", sample_fact("15", "day", "unspecified")),
        ("10 XYZ § 12.5(a)(2)", sample_fact("60", "day", "calendar")),  # calendar days that the text does not name
        ("10 XYZ § 12.7(b)(2)", sample_fact("72", "hour")),  # wrong paragraph
        ("10 XYZ § 12.5(a)", sample_fact("45", "day", "unspecified")),  # wrong section
        ("10 XYZ § 12.7(b)(1)", sample_fact("--09-03", "calendar-date", kind="date")),
        ("10 XYZ § 12.7(a)", sample_fact("sealed by courier", kind="form")),
        ("10 XYZ § 12.7(b)(2)", sample_fact("2", "times", kind="ratio")),  # a label is no number of the law
    ],
)
def test_a_wrong_fact_is_flagged(locator, fact):
    assert fact_error(fact, passage(SAMPLE, locator))


def test_number_words():
    def read(text):
        return number_at(words(text), 0)[0]

    cases = {
        "seven": 7,
        "forty-five": 45,
        "one hundred eighty": 180,
        "twentieth": 20,
        "15th": 15,
        "thirty": 30,
        "$1,250.50": Decimal("1250.50"),
        "thirtieth": 30,
    }
    assert {text: read(text) for text in cases} == cases
    assert number_at(["none"], 0) is None


def test_a_copied_run_is_seen():
    law = "a b c d e f g h i j k l m n"
    assert set(runs("X, b C d; e f g h i j k l M y")) & set(runs(law))
    assert not set(runs("b c d e f g h i j k l")) & set(runs(law))


def test_business_days_skip_weekends():
    assert business(dt.date(2026, 11, 27), 1) == dt.date(2026, 11, 30)
    assert calendar(dt.date(2026, 11, 27), 1) == dt.date(2026, 11, 28)


def test_a_requirement_without_a_basis_in_force_is_seen():
    known = {
        "live": {"binding": "true", "status": "in-force"},
        "dead": {"binding": "true", "status": "repealed"},
        "advice": {"binding": "false", "status": "in-force"},
    }

    def cite(requirement, source, kept="", role="basis"):
        return {"requirement": requirement, "source": source, "kept_in_force_by": kept, "role": role}

    citations = [
        cite("plain", "live"),
        cite("kept", "dead", "live"),
        cite("two", "dead"),
        cite("two", "live"),
        cite("gone", "dead"),
        cite("kept-by-dead", "dead", "dead"),
        cite("kept-by-advice", "dead", "advice"),
        cite("soft", "advice", "live"),
        cite("scope", "live", role="scope"),
    ]
    requirements = [{"id": c} for c in dict.fromkeys(c["requirement"] for c in citations)]
    assert unfounded(requirements, citations, known) == ["gone", "kept-by-dead", "kept-by-advice", "soft", "scope"]


def test_rates_are_taken_on_the_money_received():
    right, wrong = one_payment_rate({"face": "1000", "fee": "200", "payment": "1200"})
    assert (right, wrong) == (Decimal("50.00"), Decimal("20.00"))
