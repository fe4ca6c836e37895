"""The generated pages of docs/: what the tables hold stands on them, under its heading, and nothing else happens."""

from __future__ import annotations

import csv
import html
import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import ROOT
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from regatta_tools.report import pages
from regatta_tools.rules.registry import rules

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
CELLS = sorted(p.name for p in (ROOT / "instruments").iterdir() if p.is_dir())
# What a table may hold: the reader refuses control characters and others that nobody sees.
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Cn"]), max_size=40)
MARKUP = st.text("\\`*_{}[]()<>#+-.!|~=&;:/@$\"' 1aw\n", max_size=30) | st.sampled_from(
    [
        "<script>alert(1)</script>", "</td></table>", "[x](javascript:alert(1))", "![x](http://x.invalid/p.png)",
        "&lt;b&gt;", "`a`", "``", "a ` b", "http://x.invalid/a_b_c", "www.x.invalid", "a@x.invalid", "# x", "x #",
        "a|b", "1. x",
        "10) x", "- x", "+ x", "---", "===", "> x", "~~x~~", "$x$", "<!-- x", "\\", "\\|", "|", "<http://x.invalid>",
        "[^1]", "* * *", "a\n\nb", "a  \nb", "_x_", "<br>", "]", "](x)", "HTTPS://X.INVALID", "ftp://x", "(c) x",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages.pages(ROOT)


@lru_cache
def rows(cell: str, table: str) -> list[dict[str, str]]:
    folder = ROOT / "instruments" / (cell if table not in ("sources", "cells") else "")
    with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# Reading a page as a reader of it does


def words(tokens: list[Token]) -> str:
    """What a page shows, without markup and with single spaces; cells and lines end with a space."""
    out: list[str] = []
    for token in tokens:
        for part in token.children or [token]:
            if part.type in ("text", "code_inline", "code_block", "fence"):
                out.append(part.content)
            elif part.type in ("softbreak", "hardbreak") or (part.type == "html_inline" and "br" in part.content):
                out.append(" ")
        out.append(" ")
    return " ".join("".join(out).split())


def plain(text: str) -> str:
    return " ".join(text.split())


def sections(text: str, level: str) -> dict[str, list[Token]]:
    """The tokens below each heading of a level, by the words of the heading."""
    tokens = MARKDOWN.parse(text)
    found: dict[str, list[Token]] = {}
    current: list[Token] | None = None
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open":
            assert following is not None
            name = words([following])
            current = None
            if token.tag == level:
                assert name not in found
                current = found[name] = []
        if current is not None:
            current.append(token)
    return found


def links(tokens: list[Token]) -> list[tuple[str, str]]:
    """Target and words of each link."""
    found = []
    for token in tokens:
        open_at: int | None = None
        for i, part in enumerate(token.children or []):
            if part.type == "link_open":
                open_at = i
            elif part.type == "link_close" and open_at is not None:
                inner = words([Token("inline", "", 0, children=token.children[open_at + 1 : i])])  # type: ignore[index]
                found.append((str(token.children[open_at].attrs["href"]), inner))  # type: ignore[index]
                open_at = None
    return found


# What the tables say


@pytest.mark.parametrize("cell", CELLS)
def test_every_obligation_stands_under_its_heading(made: dict[str, str], cell: str):
    found = sections(made[f"docs/obligations/{cell}.md"], "h3")
    sources = {s["id"]: s for s in rows("", "sources")}
    requirements = rows(cell, "requirements")
    assert len(requirements) == 25
    for r in requirements:
        tokens = found[plain(f"{r['id']}: {r['topic']}")]
        text = words(tokens)
        for column in ("duty_en", "actor", "applies_when", "trigger", "observable_test", "valid_from", "valid_to"):
            assert plain(r[column]) in text, (r["id"], column)
        if cell.endswith("-vn"):
            assert 0 <= text.index(plain(r["duty_vi"])) < text.index(plain(r["duty_en"]))
        for f in rows(cell, "facts"):
            if f["requirement"] == r["id"]:
                for column in ("label", "base", "clock_start", "valid_from", "valid_to"):
                    assert plain(f[column]) in text, f["id"]
                if not f["value"].startswith("--"):
                    assert plain(f["value"]) in text.replace(",", "") or plain(f["value"]) in text, f["id"]
                if f["day_count"] in ("calendar", "business", "working"):
                    assert f"{f['value']} {f['day_count']} day" in text
                if f["comparator"] != "equal" and f["kind"] != "date":
                    assert f["comparator"].replace("-", " ") in text
                assert f["unit"] in ("item", "calendar-date", "decimal-place") or f["unit"] in text
        citations = [c for c in rows(cell, "citations") if c["requirement"] == r["id"]]
        assert citations
        targets = links(tokens)
        for c in citations:
            source = sources[c["source"]]
            assert plain(c["locator"]) in text and c["text_date"] in text and plain(c["note"]) in text, c["id"]
            assert f"{c['role']}: {plain(c['locator'])}" in text
            assert plain(source["number"]) in text and plain(source["title"]) in text
            leading = source["title_vi"] or source["title"]
            assert (MARKDOWN.normalizeLink(source["url"]), plain(leading)) in targets, c["id"]
            assert c["force_from"] in text and c["force_to"] in text
            if c["kept_in_force_by"]:
                assert "kept in force by" in text and plain(sources[c["kept_in_force_by"]]["title"]) in text


@pytest.mark.parametrize("cell", CELLS)
def test_every_fault_stands_under_its_heading(made: dict[str, str], cell: str):
    found = sections(made[f"docs/obligations/{cell}.md"], "h3")
    faults = rows(cell, "faults")
    assert len(faults) == 5
    for f in faults:
        tokens = found[plain(f"{f['id']}: {f['name']}")]
        text = words(tokens)
        columns = ("severity", "injection_en", "injection_vi", "applies_when", "shows_when", "not_when", "fixture")
        for column in columns:
            assert plain(f[column]) in text, (f["id"], column)
        assert f["class"].replace("-", " ") in text
        if f["injection_vi"]:
            assert text.index(plain(f["injection_vi"])) < text.index(plain(f["injection_en"]))
        for v in (v for v in rows(cell, "fault_values") if v["fault"] == f["id"]):
            assert plain(f"{v['parameter']} {v['true_expr']} {v['faulty_expr']}") in text
        for p in (p for p in rows(cell, "fault_probes") if p["fault"] == f["id"]):
            assert plain(f"{p['parameter']} {p['inputs']} {p['true_result']} {p['faulty_result']}") in text
        targets = {target for target, _ in links(tokens)}
        broken = {x["requirement"] for x in rows(cell, "fault_requirements") if x["fault"] == f["id"]}
        assert {f"#{name}" for name in broken} <= targets


@pytest.mark.parametrize("cell", CELLS)
def test_a_page_says_what_the_cell_is_and_that_no_lawyer_read_it(made: dict[str, str], cell: str):
    text = made[f"docs/obligations/{cell}.md"]
    record = next(c for c in rows("", "cells") if c["id"] == cell)
    top = words(MARKDOWN.parse(text.partition("\n## ")[0]))
    for column in ("title", "as_of", "persona", "note", "jurisdiction"):
        assert plain(record[column]) in top
    assert "No lawyer has reviewed this" in top and "no legal advice" in top
    cited = {c[column] for c in rows(cell, "citations") for column in ("source", "kept_in_force_by")} - {""}
    listed = text.partition("\n## Sources\n")[2]
    below = words(MARKDOWN.parse(listed))
    for s in rows("", "sources"):
        assert (f'<a id="{s["id"]}"></a>' in listed) == (s["id"] in cited)
        if s["id"] in cited:
            assert plain(s["title"]) in below and all(
                plain(s[c]) in below for c in ("number", "issuer", "title_vi", "adopted", "amended", "note")
            )


def test_the_index_lists_cells_and_sources(made: dict[str, str]):
    tokens = MARKDOWN.parse(made["docs/obligations/README.md"])
    text, targets = words(tokens), links(tokens)
    assert "No lawyer has reviewed this" in text
    for c in rows("", "cells"):
        assert (f"{c['id']}.md", c["id"]) in targets and plain(c["title"]) in text and c["as_of"] in text
    for s in rows("", "sources"):
        assert (MARKDOWN.normalizeLink(s["url"]), plain(s["title_vi"] or s["title"])) in targets
        assert all(plain(s[column]) in text for column in ("number", "title", "effective", "amended"))
    for cell in CELLS:
        cited = {c["source"] for c in rows(cell, "citations")}
        assert {target for target, _ in targets} >= {f"{cell}.md#{source}" for source in cited}


def test_every_rule_is_explained_under_its_family(made: dict[str, str]):
    known, families = rules(), pages.family_names(ROOT)
    page = made["docs/rules.md"]
    found = sections(page, "h3")
    assert len(found) == len(known)
    for rule in known.values():
        [name] = [heading for heading in found if heading.startswith(f"{rule.code}: ")]
        text = words(found[name])
        for said in (rule.title, rule.why, rule.mend, rule.since, rule.severity, rule.engine):
            assert plain(said.replace("`", "")) in text, rule.code
        for folder in (ROOT / "examples" / "rules").glob(f"{rule.code}-*"):
            assert f"../examples/rules/{folder.name}" in {target for target, _ in links(found[name])}
    order = [
        (token.tag, words([inline]))
        for token, inline in pairwise(MARKDOWN.parse(page))
        if token.type == "heading_open" and token.tag in ("h2", "h3")
    ]
    family = ""
    for tag, heading in order:
        if tag == "h2":
            family = heading
        else:
            assert heading[0] in families, f"validators/README.md names no family {heading[0]}"
            assert family == f"{heading[0]}: {families[heading[0]]}"


# The committed pages


def test_the_committed_pages_are_those_of_the_tables(made: dict[str, str]):
    for name, text in made.items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name}: run `make schema`"
    assert pages.stale(ROOT, made) == []
    assert set(made) == {
        "docs/README.md", "docs/rules.md", "docs/obligations/README.md", *(f"docs/obligations/{c}.md" for c in CELLS)
    }  # fmt: skip


def test_the_pages_are_clean_text(made: dict[str, str]):
    for name, text in made.items():
        assert text.endswith("\n") and not text.endswith("\n\n") and "\r" not in text, name
        assert "make schema" in text.partition("-->")[0] and "\n\n\n" not in text, name
        for token in MARKDOWN.parse(text):
            for part in token.children or [token]:
                if part.type in ("html_inline", "html_block"):
                    assert re.fullmatch(r'(<!--.*-->|<br>|<a id="[a-z0-9-]+">|</a>|</?span>)+\n?', part.content), part


def test_the_index_lists_every_page_with_a_line(made: dict[str, str]):
    index = made["docs/README.md"]
    targets = links(MARKDOWN.parse(index))
    listed = [target for target, _ in targets if not target.startswith("..")]
    present = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(present)
    for line in index.splitlines():
        if line.startswith("| ["):
            assert re.fullmatch(r"\| \[[^\]]+\]\([^)]+\) \| .{15,400} \|", line), line


def slug(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@lru_cache
def anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    tokens = MARKDOWN.parse(text)
    found: set[str] = set(re.findall(r'<a id="([^"]+)">', text))
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            name = slug(words([following]))
            found |= {name} if name not in found else {f"{name}-1"}
    return found


def documents() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield ROOT / "validators" / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("path", list(documents()), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(path: Path):
    for target, _ in links(MARKDOWN.parse(path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{path.name}: {target}"


# Any text is shown as it is


def shown(markdown: str) -> str:
    """What a page of this Markdown shows; fails where it holds anything but text, code and the empty element."""
    tokens = MARKDOWN.parse(markdown)
    for token in tokens:
        for part in token.children or []:
            if part.type == "html_inline":
                assert part.content in ("<span>", "</span>"), part
            else:
                assert part.type in ("text", "code_inline", "softbreak"), part
    return words(tokens)


@given(TEXT | MARKUP)
@example("0. x")
@example("a\u00a0b")
@example("x #")
def test_a_text_shows_itself_wherever_it_stands(text: str):
    escaped = pages.escape(text)
    assert "\n" not in escaped
    wanted = plain(text)
    assert shown(escaped) == wanted
    assert shown(f"> {escaped}") == wanted and shown(f"- {escaped}") == wanted
    assert shown(f"### x: {escaped}") == plain(f"x: {text}")
    assert shown(f"- x: {escaped}.") == plain("x: " + text.strip(" \t\r\n\v\f") + ".")
    table = pages.table(["a", "b"], [[escaped, "end"]])
    tokens = MARKDOWN.parse(table)
    assert [t.type for t in tokens if t.type in ("td_open", "tr_open")].count("tr_open") == 2
    cells = [words([after]) for t, after in pairwise(tokens) if t.type == "td_open"]
    assert cells == ([wanted, "end"] if escaped else ["end"])


@given(TEXT | MARKUP)
def test_code_shows_itself_in_a_line_and_in_a_table(text: str):
    made = pages.code(text)
    wanted = plain(text)
    assert plain(shown(made.replace("\\|", "|"))) == wanted
    tokens = MARKDOWN.parse(pages.table(["a", "b"], [[made, "end"]]))
    cells = [words([after]) for t, after in pairwise(tokens) if t.type == "td_open"]
    assert cells == ([wanted, "end"] if made else ["end"])


@given(TEXT | MARKUP, TEXT | MARKUP | st.sampled_from(["https://x.invalid/a?b=c&d=(e)|f<g>*_`", "javascript:alert(1)"]))
def test_a_link_leads_to_pages_of_the_web_only(text: str, address: str):
    line = f"x {pages.link(text, address)} y"
    found = links(MARKDOWN.parse(line))
    # (spans of nothing stand between the parts of an address in the text)
    if re.fullmatch(r"(?i)https?://[!-~]+", address):
        [(target, shown_text)] = found
        assert shown_text == plain(text)
        assert html.unescape(target).lower().startswith(("http://", "https://"))
        tokens = MARKDOWN.parse(pages.table(["a", "b"], [[line, "end"]]))
        assert sum(t.type == "td_open" for t in tokens) == 2 and links(tokens) == found
    else:
        assert found == []


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (("at-most", "duration", "15", "day", "", "business"), "at most 15 business days"),
        (("at-most", "duration", "1", "day", "", "working"), "at most 1 working day"),
        (("at-least", "duration", "91", "day", "", "unspecified"), "at least 91 days"),
        (("at-least", "duration", "1", "year", ""), "at least 1 year"),
        (("less-than", "ratio", "3.0", "times", ""), "less than 3.0 times"),
        (("more-than", "money", "500000000", "VND", ""), "more than 500,000,000 VND"),
        (("equal", "money", "1234.50", "USD", ""), "equal to 1,234.50 USD"),
        (("equal", "form", "in writing", "", ""), "in writing"),
        (("equal", "list", "10000", "", ""), "10000"),
        (("at-most", "form", "1/8 of 1 point", "", ""), "at most 1/8 of 1 point"),
        (("at-most", "ratio", "13", "percent", "capital"), "at most 13 percent of capital"),
        (("at-most", "date", "--09-30", "calendar-date", ""), "no later than 30 September of each year"),
        (("equal", "date", "--02-29", "calendar-date", ""), "on 29 February of each year"),
        (("equal", "date", "--02-30", "calendar-date", ""), "on --02-30"),
        (("at-least", "date", "2026-01-01", "calendar-date", ""), "from 2026-01-01"),
        (("equal", "count", "3", "decimal-place", ""), "equal to 3 decimal places"),
        (("about", "count", "a few", "fortnight", ""), "about a few fortnight"),
    ],
)
def test_values_in_words(fact: tuple[str, ...], said: str):
    columns = ("comparator", "kind", "value", "unit", "base", "day_count")
    assert pages.bound_in_words({"day_count": "", **dict(zip(columns, fact, strict=False))}) == said


# Tables that are not sound


def package(root: Path) -> Path:
    shutil.copytree(ROOT / "instruments", root / "instruments")
    return root


def edit(path: Path, **cells: str) -> None:
    """Set cells of every row of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, **cells} for row in found)


def test_no_text_becomes_markup(tmp_path: Path):
    root = package(tmp_path)
    hostile = '</td><script>alert(1)</script> | [x](javascript:y) `z` \n\n# w "><img src=x onerror=y> &lt;'
    folder = root / "instruments" / "insurance-us"
    edit(folder / "requirements.csv", topic=hostile, duty_en=hostile, duty_vi=hostile, actor=hostile)
    edit(folder / "citations.csv", locator=hostile, note=hostile, text_date=hostile, role=hostile)
    edit(folder / "facts.csv", label=hostile, value=hostile, unit=hostile, base=hostile, citation=hostile)
    edit(folder / "faults.csv", name=hostile, fixture=hostile, injection_en=hostile)
    edit(folder / "fault_values.csv", true_expr=hostile, parameter=hostile, fact=hostile)
    edit(folder / "fault_requirements.csv", requirement=hostile)
    edit(root / "instruments" / "sources.csv", title=hostile, number=hostile, url="javascript:alert(1)")
    made = pages.pages(root)
    for name in ("docs/obligations/insurance-us.md", "docs/obligations/README.md"):
        tokens = MARKDOWN.parse(made[name])
        for token in tokens:
            for part in token.children or [token]:
                if part.type in ("html_inline", "html_block"):
                    assert re.fullmatch(r'(<!--.*-->|<br>|<a id="[a-z0-9-]+">|</a>|</?span>)+\n?', part.content), part
                assert part.type != "image"
        assert all(target.startswith(("#", "../", "insurance-us.md", "README", "banking", "fintech", "healthcare",
                                      "insurance-vn")) for target, _ in links(tokens))  # fmt: skip
        assert plain(hostile) in words(tokens)
        for row in (token for token in tokens if token.type == "tr_open"):
            assert row.level == 2


def test_ids_lead_nowhere_else(tmp_path: Path):
    root = package(tmp_path)
    with (root / "instruments" / "cells.csv").open("a", encoding="utf-8", newline="") as file:
        for name in ("../../../evil", "a/b", "", "Điều 5", "con.", "README"):
            csv.writer(file, lineterminator="\n").writerow([name, "x", "x", "US", "en", "x", "2026-11-30", ""])
    edit(root / "instruments" / "banking-vn" / "requirements.csv", id="x) <b> | [y](z")
    made = pages.pages(root)
    assert sorted(made) == [
        "docs/README.md",
        "docs/obligations/README.md",
        *(f"docs/obligations/{c}.md" for c in CELLS),
    ]
    assert "<b>" not in re.sub(r"`[^`]*`", "", made["docs/obligations/banking-vn.md"]).replace("\\<b", "")


def test_tables_that_are_not_in_order_still_give_pages(tmp_path: Path):
    root = package(tmp_path)
    folder = root / "instruments" / "insurance-us"
    (folder / "citations.csv").write_bytes(b"id,cell,requirement\nx,insurance-us,insurance-us-r01\nhalf")
    (folder / "facts.csv").write_bytes(b"\xff\xfe")
    (folder / "faults.csv").write_text('id,cell\n"open', encoding="utf-8")
    (folder / "fault_probes.csv").unlink()
    edit(folder / "fault_requirements.csv", fault="no-such-fault", requirement="no-such-requirement")
    text = pages.pages(root)["docs/obligations/insurance-us.md"]
    assert "insurance-us-r25" in text and text == pages.pages(root)["docs/obligations/insurance-us.md"]


def test_pages_of_cells_that_are_gone_are_named(tmp_path: Path):
    (tmp_path / "docs" / "obligations").mkdir(parents=True)
    (tmp_path / "docs" / "obligations" / "pensions-us.md").write_text("old", encoding="utf-8")
    assert pages.pages(tmp_path) == {}
    assert pages.stale(tmp_path, {}) == ["docs/obligations/pensions-us.md"]
