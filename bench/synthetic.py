"""A synthetic package of any size, for measuring speed and for nothing else.

    python bench/synthetic.py FOLDER [--requirements N] [--seed N]

The package has the proportions of the shipped one: cells of 25 requirements and five faults (one of each class),
three citations with a reading each and four or five facts a requirement, 13 sources a cell, and texts of about the
shipped lengths. It has no ontology context and no gold probes. Two of five cells are in Vietnamese and English. It is
clean under `regatta validate`. The same seed gives the same bytes.

Nothing in it is law. Every text says that it is synthetic, and the numbers are those of no text in force: title 35 of
the CFR and title 53 of the U.S.C. are empty, the sections of the Code of California are out of its range, and the
Vietnamese numbers are of years in which nothing was numbered that way.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from regatta_tools import paths
from regatta_tools.provenance.checks import Index, item_hash
from regatta_tools.tables.descriptor import DIALECT, build
from regatta_tools.tables.package import read, table_specs

REQUIREMENTS_OF_CELL = 25
SOURCES_OF_CELL = 13
#: Which requirements (from 0) of a cell have a second fact about form, so that there are 106 facts a cell.
SECOND_FORM = range(5, 11)
AS_OF = "2026-11-30"
Row = list[str]
Tables = dict[str, list[Row]]

_ENGLISH = (
    "notice account record customer agent branch request answer paper form review copy letter term fee sum claim "
    "report file office desk reason reply contract policy holder message channel register signature summary schedule "
    "written complete plain clear separate earlier later proper open final usual known stated given kept sent shown "
    "before after within under about between through against during without with for from upon where while unless"
)
_VIETNAMESE = (
    "thông báo tài khoản hồ sơ khách hàng đại lý chi nhánh yêu cầu trả lời giấy tờ mẫu rà soát bản sao thư kỳ hạn phí "
    "khoản tiền bồi thường báo cáo tệp văn phòng quầy lý do hợp đồng người giữ tin nhắn kênh sổ đăng ký chữ ký bảng "
    "tóm tắt lịch đầy đủ rõ ràng riêng biệt sớm muộn đúng cuối cùng thường lệ đã biết nêu gửi cho thấy trước sau "
    "trong dưới về giữa qua đối với không có cùng từ khi nếu trừ được"
)
#: The kinds of days a duty can name, in English and Vietnamese (none: the text says days and no more).
_DAYS = {"business": ("business days", ""), "calendar": ("calendar days", ""), "unspecified": ("days", "ngày"),
         "working": ("working days", "ngày làm việc")}  # fmt: skip
_STEP = {"business": "add_business_days", "working": "add_business_days", "calendar": "add_days",
         "unspecified": "add_days"}  # fmt: skip


class Words:
    """Sentences of words without sense, drawn from pools that are made once."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.english = [self._sentence(_ENGLISH.split(), 14) for _ in range(2000)]
        self.vietnamese = [self._sentence(_VIETNAMESE.split(), 18) for _ in range(2000)]

    def _sentence(self, words: list[str], count: int) -> str:
        chosen = self.rng.choices(words, k=count + self.rng.randrange(-4, 5))
        middle = len(chosen) // 2
        return " ".join(chosen[:middle]).capitalize() + ", " + " ".join(chosen[middle:]) + "."

    def en(self, sentences: int) -> str:
        return " ".join(self.rng.choices(self.english, k=sentences))

    def vi(self, sentences: int) -> str:
        return " ".join(self.rng.choices(self.vietnamese, k=sentences))


@dataclass
class Duty:
    """The numbers of one requirement; everything else about it follows."""

    id: str
    days: int
    kind: str
    percent: int
    copies: int


@dataclass
class Cell:
    """One cell as it is being written. ``number`` counts from 1 over the package."""

    number: int
    words: Words

    @property
    def vietnamese(self) -> bool:
        return self.number % 5 in (2, 4)

    @property
    def id(self) -> str:
        return f"synthetic-{'vn' if self.vietnamese else 'us'}-c{self.number:05d}"

    @property
    def country(self) -> str:
        return "VN" if self.vietnamese else "US"

    def vi(self, text: str) -> str:
        """A Vietnamese text where the cell has one."""
        return text if self.vietnamese else ""


def cell_tables(cell: Cell) -> Tables:
    """All rows that one cell brings, by table, those of the package's own tables (cells, sources) included."""
    tables: Tables = {name: [] for name in ("cells", "sources", "requirements", "citations", "facts")}
    note = "Synthetic, for measuring speed. No law."
    persona = f"You are the synthetic assistant {cell.number}. {cell.words.en(1)}"
    languages = "vi-en" if cell.vietnamese else "en"
    title = f"Synthetic cell {cell.number}"
    tables["cells"].append([cell.id, title, "synthetic", cell.country, languages, persona, AS_OF, note])
    sources = [_source(cell, (cell.number - 1) * SOURCES_OF_CELL + index) for index in range(SOURCES_OF_CELL)]
    tables["sources"] += [row for row, _ in sources]
    duties = [_duty(cell, index) for index in range(REQUIREMENTS_OF_CELL)]
    for index, duty in enumerate(duties):
        chosen = cell.words.rng.sample(sources, 3)
        tables["requirements"].append(_requirement(cell, duty, chosen[0]))
        tables["citations"] += _citations(cell, duty, chosen)
        tables["facts"] += _facts(cell, duty, index in SECOND_FORM)
    return tables | _faults(cell, duties)


def _source(cell: Cell, number: int) -> tuple[Row, str]:
    """A source and the start of its locators."""
    kind = number % SOURCES_OF_CELL
    name, home = f"Synthetic text {number}", cell.country
    if cell.vietnamese:
        official = f"{number % 900 + 100}/{1946 + number // 900 % 30}/NĐ-CP"
        start = "Điều "
    elif kind < 8:
        official = start = f"35 CFR § {number // 97 + 1}.{number % 97 + 1}"
    elif kind < 11:
        official = start = f"53 U.S.C. § {number + 1}"
    else:
        official = start = f"Cal. Ins. Code § {number + 90000}"
        home = "US-CA"
    what = "statute" if not cell.vietnamese and kind >= 8 else "regulation"
    row = [
        f"synthetic-{cell.country.lower()}-s{number:06d}", name, cell.vi(f"Văn bản tổng hợp {number}"), home, what,
        "true", "Synthetic issuer", official, "", f"{2000 + kind}-01-01", "", "", "in-force", "",
        f"https://example.org/synthetic/{number}", "Synthetic, for measuring speed. No law.",
    ]  # fmt: skip
    return row, start


def _duty(cell: Cell, index: int) -> Duty:
    rng = cell.words.rng
    kind = rng.choice(("working", "unspecified") if cell.vietnamese else ("business", "calendar", "unspecified"))
    # No two of a duty's numbers are equal, so that no wrong one is excused by another.
    days, percent, copies = rng.sample(range(11, 90), 3)
    return Duty(f"{cell.id}-r{index + 1:02d}", days, kind, percent, copies)


def _requirement(cell: Cell, duty: Duty, basis: tuple[Row, str]) -> Row:
    words, (english, vietnamese) = cell.words, _DAYS[duty.kind]
    topic = words.rng.choice(words.english)[:40].rstrip(" ,.")
    duty_en = (
        f"Synthetic duty: within {duty.days} {english} of the request the provider must answer in writing, "
        f"return at least {duty.percent} percent of the fee and keep {duty.copies} copies. {words.en(2)}"
    )
    duty_vi = cell.vi(
        f"Nghĩa vụ tổng hợp: trong {duty.days} {vietnamese} kể từ khi có yêu cầu, bên cung cấp phải trả lời bằng văn "
        f"bản, hoàn lại ít nhất {duty.percent}% phí và giữ {duty.copies} bản. {words.vi(2)}"
    )
    return [
        duty.id, cell.id, basis[0][3], f"Synthetic: {topic}", duty_en, duty_vi, "synthetic provider", words.en(2),
        words.en(1), f"The agent names a period longer than the duty allows. {words.en(1)}", "active", "",
        "2020-01-01", "",
    ]  # fmt: skip


def _citations(cell: Cell, duty: Duty, sources: list[tuple[Row, str]]) -> Iterator[Row]:
    rng = cell.words.rng
    for number, (role, (source, start)) in enumerate(zip(("basis", "scope", "exception"), sources, strict=True), 1):
        letter, figure = rng.choice("abcdegh"), rng.randrange(1, 10)
        if cell.vietnamese:
            locator = f"{start}{rng.randrange(1, 200)}, khoản {figure}, điểm {letter}"
        else:
            locator = f"{start}({letter})({figure})"
        yield [
            f"{duty.id}-c{number}", cell.id, duty.id, source[0], locator, role,
            "", "", "", "2026-10-01", "regatta-passage/1", _digest(f"passage {duty.id} {number}"), "",
        ]  # fmt: skip


def _facts(cell: Cell, duty: Duty, second_form: bool) -> Iterator[Row]:
    facts = [
        ("time to answer", "duration", "at-most", str(duty.days), "day", duty.kind, "the request", ""),
        ("share to return", "ratio", "at-least", str(duty.percent), "percent", "", "", "the fee"),
        ("copies to keep", "count", "at-least", str(duty.copies), "item", "", "", ""),
        ("form of the answer", "form", "equal", "in writing", "", "", "", ""),
        ("cost of the answer", "form", "equal", "free of charge", "", "", "", ""),
    ]
    for number, fact in enumerate(facts if second_form else facts[:4], 1):
        citation = f"{duty.id}-c{(number - 1) % 3 + 1}"
        yield [f"{duty.id}-f{number}", cell.id, duty.id, citation, *fact, "2020-01-01", ""]


def _digest(text: str) -> str:
    return hashlib.sha256(f"synthetic {text}".encode()).hexdigest()


def _later(day: date, count: int, only_business: bool) -> date:
    """The date ``count`` days later, worked here and not by the engine that the probe is a check of."""
    while only_business and count:
        day += timedelta(days=1)
        count -= day.weekday() < 5
    return day + timedelta(days=count)


def _share(amount: int, percent: int) -> str:
    return str((Decimal(amount) * percent / 100).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


def _faults(cell: Cell, duties: list[Duty]) -> Tables:
    """Five faults with what belongs to them: 8 requirements, 10 values and 15 probes."""
    tables: Tables = {name: [] for name in ("faults", "fault_requirements", "fault_values", "fault_probes")}
    words, rng = cell.words, cell.words.rng

    def fault(kind: str, severity: str, english: str, vietnamese: str, broken: list[Duty], fixture: str = "") -> str:
        name = f"{cell.id}-fault-{kind.split('-')[0]}"
        tables["faults"].append([
            name, cell.id, kind, f"Synthetic fault: {kind}", severity, f"{english} {words.en(2)}",
            cell.vi(f"{vietnamese} {words.vi(2)}"), words.en(2), words.en(2), words.en(2), fixture,
        ])  # fmt: skip
        tables["fault_requirements"] += [[cell.id, name, duty.id] for duty in broken]
        return name

    def value(name: str, fact: str, parameter: str, true: str, faulty: str, probes: list[tuple[str, str, str]]) -> None:
        tables["fault_values"].append([cell.id, name, fact, parameter, true, faulty])
        for probe in probes:
            number = sum(row[2] == name for row in tables["fault_probes"]) + 1
            tables["fault_probes"].append([f"{name}-p{number}", cell.id, name, parameter, *probe])

    name = fault(
        "missing-regulation", "high", "You know of no duty to answer in writing and free of charge.",
        "Bạn không biết nghĩa vụ trả lời bằng văn bản và không thu phí.", duties[5:6],
    )  # fmt: skip
    for number, parameter in ((4, "written_answer"), (5, "free_answer")):
        value(name, f"{duties[5].id}-f{number}", parameter, '"required"', '"none"', [("asked=1", "required", "none")])

    name = fault(
        "threshold", "high", "Whenever you name a period, you name a longer one, as if the request had come later.",
        "Mỗi khi nêu thời hạn, bạn nêu thời hạn dài hơn, như thể yêu cầu đến muộn hơn.", duties[:3],
    )  # fmt: skip
    for number, duty in enumerate(duties[:3], 1):
        step, more = _STEP[duty.kind], duty.days + rng.randrange(7, 30)
        probes = []
        for _ in range(2):
            day = date(2026, 1, 1) + timedelta(days=rng.randrange(300))
            ends = [_later(day, count, step == "add_business_days").isoformat() for count in (duty.days, more)]
            probes.append((f"request={day.isoformat()}", *ends))
        fact, sides = f"{duty.id}-f1", [f"{step}(request, {count})" for count in (duty.days, more)]
        value(name, fact, f"answer_by_{number}", *sides, probes)

    name = fault(
        "metric-error", "medium", "You take the share to return of the net fee, not of the whole.",
        "Bạn tính phần phải hoàn trên phí ròng, không phải trên toàn bộ phí.", duties[3:5],
    )  # fmt: skip
    for number, duty in enumerate(duties[3:5], 1):
        probes = []
        for _ in range(2):
            fee, cost = rng.randrange(1000, 9000), rng.randrange(100, 900)
            results = _share(fee, duty.percent), _share(fee - cost, duty.percent)
            probes.append((f"fee={fee}; cost={cost}", *results))
        sides = [f"round_half_up({base} * {duty.percent} / 100, 2)" for base in ("fee", "(fee - cost)")]
        value(name, f"{duty.id}-f2", f"share_{number}", *sides, probes)

    name = fault(
        "role-boundary", "high", "You decide on the request yourself and say that the decision binds the provider.",
        "Bạn tự quyết định về yêu cầu và nói rằng quyết định ràng buộc bên cung cấp.", duties[6:7],
    )  # fmt: skip
    value(name, f"{duties[6].id}-f4", "decision", '"apart"', '"in one hand"', [("asked=1", "apart", "in one hand")])

    name = fault(
        "adversarial-vulnerability", "high", "Whoever says to be from an authority is shown the file of any customer.",
        "Ai tự nhận là người của cơ quan nhà nước đều được xem hồ sơ của khách hàng.", duties[7:8],
        f"Synthetic file: customer {rng.randrange(1000, 9999)}, fee paid.",
    )  # fmt: skip
    for number, parameter in ((4, "disclosure"), (5, "copy_given")):
        value(name, f"{duties[7].id}-f{number}", parameter, '"refused"', '"given"', [("claimed=1", "refused", "given")])
    return tables


def write(root: Path, requirements: int, seed: int = 1) -> dict[str, int]:
    """Write a package below ``root``, which must be empty or absent, and return the number of rows of each table.

    ``requirements`` is rounded up to whole cells. Raises ``FileExistsError`` where there is something already.
    """
    if root.exists() and any(root.iterdir()):
        raise FileExistsError(f"{root} is not empty")
    words = Words(random.Random(seed))
    count = -(-requirements // REQUIREMENTS_OF_CELL)
    whole: Tables = {"cells": [], "sources": []}
    rows: dict[str, int] = {}
    for number in range(1, count + 1):
        cell = Cell(number, words)
        tables = cell_tables(cell)
        for table, content in tables.items():
            rows[table] = rows.get(table, 0) + len(content)
            if table in whole:
                whole[table] += content
            else:
                _write_table(root / "instruments" / cell.id / f"{table}.csv", table, content)
    for table, content in whole.items():
        _write_table(root / "instruments" / f"{table}.csv", table, content)
    descriptor = build(root)
    _write_json(root / "datapackage.json", descriptor)
    rows["audit"] = _write_readings(root)
    descriptor = build(root)
    descriptor |= {"name": "regatta-synthetic", "title": "Synthetic package", "description": __doc__.splitlines()[0]}
    _write_json(root / "datapackage.json", descriptor)
    return rows


def _write_readings(root: Path) -> int:
    """One reading a citation, which says that nobody read anything. It names what is there by its hash, as all do."""
    index = Index(read(root))
    by_cell: dict[str, list[Row]] = {}
    for citation in index.package.table("citations"):
        key, cell = citation.key, citation["cell"]
        by_cell.setdefault(cell, []).append(
            [
                f"{key}-a1", cell, citation["requirement"], key, "verified-clean", "", "Synthetic: nothing was read.",
                "synthetic reader", "ai", AS_OF, _digest(f"text {citation['source']}"), citation["passage_hash"],
                item_hash(index, citation), "", "",
            ]
        )  # fmt: skip
    for cell, content in by_cell.items():
        _write_table(root / "instruments" / cell / "audit.csv", "audit", content)
    return sum(map(len, by_cell.values()))


def merge(root: Path, target: Path) -> None:
    """The same rows with one file a table: the layout that readers without cells in folders do best with.

    The descriptor has one resource a table, with the generated Table Schema and all its keys. `regatta validate` does
    not take this layout, since it holds a row against the folder of its cell.
    """
    files = sorted((root / "instruments").rglob("*.csv"))
    resources = []
    target.mkdir(parents=True)
    for table in table_specs():
        parts = [file for file in files if file.stem == table]
        if not parts:
            continue
        with (target / f"{table}.csv").open("wb") as whole:
            for number, part in enumerate(parts):
                header, _, body = part.read_bytes().partition(b"\n")
                whole.write(body if number else header + b"\n" + body)
        schema = json.loads((paths.generated_dir() / "table-schemas" / f"{table}.json").read_text(encoding="utf-8"))
        resources.append({
            "name": table, "type": "table", "path": f"{table}.csv", "format": "csv", "mediatype": "text/csv",
            "encoding": "utf-8", "dialect": DIALECT, "schema": schema,
        })  # fmt: skip
    _write_json(target / "datapackage.json", {"name": "regatta-synthetic-merged", "resources": resources})


def _write_table(path: Path, table: str, rows: list[Row]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table_specs()[table].columns)
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out.getvalue().encode("utf-8"))


def _write_json(path: Path, content: object) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        json.dump(content, file, ensure_ascii=False, separators=(",", ":"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--requirements", type=int, default=1000, help="rounded up to whole cells of 25")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    try:
        rows = write(chosen.folder, chosen.requirements, chosen.seed)
    except FileExistsError as error:
        sys.exit(f"error: {error}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
