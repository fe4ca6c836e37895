"""Texts of the law that a user holds: taken in from several kinds of files, listed, verified, compared."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from audit_world import PARENT, US, US_TEXT, VN, VN_TEXT, World
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog
from test_cli_validate import invoke, regatta

from regatta_tools.errors import InputError
from regatta_tools.provenance.checks import CLEAN, NOT_ASSESSED
from regatta_tools.provenance.corpus import Corpus, language_of_text, read_corpus
from regatta_tools.provenance.holding import add, diff, holdings, verify
from regatta_tools.provenance.intake import take
from regatta_tools.provenance.locators import language_of
from regatta_tools.provenance.passages import normalise
from regatta_tools.rules.registry import rules
from regatta_tools.tables.package import read

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "40"}

PLAIN = """An invented rule on boats.

§ 999.5 Boats.

(a) Reports. A keeper must tell the owner of a leak as said in
§ 999.9(a) of this part and in
§ 999.9 of this part

(1) in writing not later than fifteen (15) business days after it is found, and

(2) within 30 calendar days if the boat is abroad.

> 12 lamps are kept.

§ 999.9   Words.

(a) Words. A boat is a hull of 3 or more planks.
"""
HTML = """<!DOCTYPE html>
<html><head><title>§ 1 Not this</title><style>p {}</style></head><body>
<nav><p>§ 999.1 Menu</p></nav>
<h3>§&nbsp;999.5 Boats.</h3>
<p>(a) Reports. A keeper must tell the <i>owner</i> of a leak<br>as said in 30<sup>1</sup> words &amp; more
<script>document.write("§ 7 Not this");</script></p>
<div>(1) in writing not later than fifteen (15) business days after it is found, and</div>
<table><tr><td>(2) within</td><td>30 calendar days</td></tr></table>
<h3>§ 999.9 Words.</h3><p>(a) Words. A boat is a hull of 3 or more planks.</p>
</body></html>
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<DIV5 N="999" TYPE="PART"><HEAD>PART 999</HEAD>
<DIV6 N="A" TYPE="SUBPART">
<DIV8 N="§ 999.5" TYPE="SECTION"><HEAD>§ 999.5   Boats.</HEAD>
<P>(a) <I>Reports.</I> A keeper must tell the owner of a leak within 30<SU>1</SU> days</P>
<P>(1) in writing not later than fifteen (15) business days after it is found, and</P>
<EXTRACT><FP>(2) within 30 calendar days</FP></EXTRACT>
<CITA>[99 FR 1, Jan. 1, 2026]</CITA>
</DIV8>
<DIV8 N="999.9" TYPE="SECTION"><HEAD>§ 999.9   Words.</HEAD><P>(a) A boat is a hull of 3 or more planks.</P></DIV8>
</DIV6>
<DIV9 N="Appendix A to Part 999" TYPE="APPENDIX"><HEAD>Appendix A</HEAD><P>Forms.</P></DIV9>
</DIV5>
"""
VIETNAMESE = """NGHỊ ĐỊNH

Điều 5. Thời hạn

1. Chủ thuyền báo theo quy định tại
Điều 6 của Nghị định này và
Điều 7 Nghị định này trong thời hạn ba mươi ngày làm việc:

a) khi thuyền chìm.

ĐIỀU 6: Mức phạt

2. Mức phạt tối đa là 400.000.000 đồng.

Điều 6a

Điều khoản này được bổ sung.
"""


def pdf(*pages: str) -> bytes:
    """A PDF with a text layer, by hand: one stream a page, a line of text for each line."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, page in enumerate(pages):
        escaped = [re.sub(r"([()\\])", r"\\\1", line) for line in page.splitlines()]
        lines = "".join(f"({line}) Tj T*\n" for line in escaped)
        stream = f"BT /F1 11 Tf 14 TL 72 720 Td\n{lines}ET"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R "
                       "/Resources << /Font << /F1 3 0 R >> >> >>")  # fmt: skip
        objects.append(f"<< /Length {len(stream.encode('cp1252'))} >>\nstream\n{stream}\nendstream")
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for n, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{n} 0 obj\n{content}\nendobj\n".encode("cp1252"))
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{place:010} 00000 n \n" for place in places).encode())
    out.write(f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "package").write()


@pytest.fixture
def give(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write an input beside the package."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def state(root: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}


# Taking a text in


def headings(path: Path) -> list[str]:
    return [heading for heading, _ in take(path).sections]


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", PLAIN), ("a.html", HTML), ("a", HTML), ("a.pdf", pdf(PLAIN)), ("a.xml", XML)]
)
def test_every_kind_of_file_is_cut_into_the_same_sections(give, name, content):
    sections = dict(take(give(name, content)).sections)
    assert [*sections][:2] == ["§ 999.5", "§ 999.9"]
    boats = normalise(sections["§ 999.5"])
    for said in ("A keeper must tell the owner of a leak", "fifteen (15) business days", "within 30 calendar days"):
        assert said in boats
    assert "3 or more planks" in normalise(sections["§ 999.9"]) and "planks" not in boats
    assert "Not this" not in boats and "Menu" not in boats and "301" not in boats


def test_a_reference_at_the_start_of_a_line_is_no_heading_and_a_sign_of_the_corpus_no_note(give):
    taken = take(give("a.txt", PLAIN))
    body = dict(taken.sections)["§ 999.5"]
    assert "§ 999.9(a) of this part" in body and "12 lamps" in normalise(body)
    assert taken.notes == ("26 characters before the first section are left out",)
    assert headings(give("b.txt", VIETNAMESE)) == ["Điều 5", "Điều 6", "Điều 6a"]
    assert headings(give("c.txt", "Section 12. Boats\n\nx\n\nSec. 12-3. Sails\n\ny\n\nSECTION 14\n\nz\n")) == [
        "Section 12", "Section 12-3", "Section 14",
    ]  # fmt: skip


def test_the_title_of_a_chapter_belongs_to_no_section_and_an_appendix_is_one_of_its_own(give):
    text = """Điều 5. Một

1. Chủ thuyền theo
Mục 2 Chương này.

Chương II
QUY ĐỊNH CỤ THỂ

Mục 1
THUYỀN NHỎ

Điều 6. Hai

Thuyền nhỏ theo Chương
II được miễn.

PHỤ LỤC I

Mẫu số 1
"""
    sections = dict(take(give("a.txt", text)).sections)
    assert [*sections] == ["Điều 5", "Điều 6", "Phụ lục I"]
    assert normalise(sections["Điều 5"]) == "Điều 5. Một 1. Chủ thuyền theo Mục 2 Chương này."
    assert "> Chương II QUY ĐỊNH CỤ THỂ Mục 1 THUYỀN NHỎ" in sections["Điều 5"]
    assert normalise(sections["Điều 6"]).endswith("theo Chương II được miễn.")
    text = "§ 300gg–5. Boats\n\nOne must row.\n\nSubpart B—Sails\n\n§ 300gg–6. Sails\n\nOne must sail.\n"
    sections = dict(take(give("b.txt", text)).sections)
    assert [*sections] == ["§ 300gg-5", "§ 300gg-6"]
    assert normalise(sections["§ 300gg-5"]).endswith("One must row.")


def test_notes_of_the_ecfr_stay_out_of_the_passage(give):
    sections = dict(take(give("a.xml", XML)).sections)
    assert [*sections] == ["§ 999.5", "§ 999.9", "Appendix A to Part 999"]
    assert "> [99 FR 1, Jan. 1, 2026]" in sections["§ 999.5"] and "FR" not in normalise(sections["§ 999.5"])
    assert "(a) Reports. A keeper" in sections["§ 999.5"] and "30 1 days" in sections["§ 999.5"]


def test_a_table_of_contents_is_not_taken_for_sections(give):
    contents = "§ 999.5 Boats.\n§ 999.9 Words.\n\n"
    assert take(give("a.txt", contents + PLAIN)).sections == take(give("b.txt", PLAIN)).sections


def test_headings_that_a_person_put_there_are_kept(give):
    sections = take(
        give("a.txt", "\ufeff## § 999.5(b)\r\n\r\n(b) x\r\n> note\r\n\r\n## Phụ lục I\r\n\r\ny\r\n")
    ).sections
    assert sections == (("§ 999.5(b)", "(b) x\n> note"), ("Phụ lục I", "y"))


SCANNED = pdf("", "")
BAD = {
    "no section": ("a.txt", "A rule on boats.\n\nOne must row.\n", "no section is recognised", "`## LOCATOR`"),
    "empty": ("a.txt", "", "no section is recognised", "`## LOCATOR`"),
    "a heading alone": ("a.txt", "Boats\n\n§ 999.5\n\n", "§ 999.5 has no text below its heading", "words"),
    "headings alone": ("a.txt", "Điều 5.\n\nĐiều 6.\n", "no section has any text", "words"),
    "headed twice": ("a.txt", PLAIN + PLAIN, "headed twice, in lines 3 and", "`## LOCATOR`"),
    "latin-1": ("a.txt", "§ 5 Boats\n\nx".encode("cp1252"), "is not UTF-8", "UTF-8"),
    "utf-16": ("a.html", HTML.encode("utf-16"), "UTF-16", "UTF-8"),
    "a workbook": ("a.xlsx", b"PK\x03\x04\xff\xfe", "is not UTF-8", "Word"),
    "scanned": ("a.pdf", SCANNED, "no text layer", "OCR"),
    "damaged PDF": ("a.pdf", b"%PDF-1.7\n" + bytes(range(256)), "cannot be read", "anew"),
    "cut PDF": ("a.pdf", pdf(PLAIN)[:400], "", ""),
    "no XML": ("a.xml", "<DIV8", "no XML", "anew"),
    "another XML": ("a.xml", "<?xml version='1.0'?><rss/>", "no DIV8", "eCFR"),
    "entities": ("a.xml", '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "entities", "publisher"),
    "deep XML": ("a.xml", "<DIV8 N='1'>" + "<P>" * 50_000 + "</P>" * 50_000 + "</DIV8>", "", ""),
    "XML with one section twice": ("a.xml", XML.replace('N="999.9"', 'N="999.5"'), "twice", "one part"),
    "XML of another encoding": ("a.xml", "<?xml version='1.0' encoding='klingon'?><x/>", "", ""),
}


@pytest.mark.parametrize(("name", "content", "message", "mend"), BAD.values(), ids=BAD)
def test_what_cannot_be_taken_whole_is_refused_and_nothing_is_written(world, give, name, content, message, mend):
    path = give(name, content)
    before = state(world.root)
    with pytest.raises(InputError) as caught:
        add(world.package(), world.corpus(), path, source=PARENT, as_of="2026-11-30")
    assert caught.value.code == "U132" and caught.value.place.startswith(str(path))
    assert message in caught.value.message and mend in caught.value.mend and caught.value.mend
    assert state(world.root) == before


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"%PDF-1.4\n", b"<?xml version='1.0'?>", b"<html>", "§ 5 Boats\n\n".encode(), b"## x\n"]),
    st.sampled_from(["a.txt", "a.html", "a.xml", "a.pdf"]),
)
@settings(max_examples=200)
def test_any_bytes_are_taken_or_refused(tmp_path_factory, raw, start, name):
    path = tmp_path_factory.mktemp("in") / name
    path.write_bytes(start + raw)
    try:
        taken = take(path)
    except InputError as error:
        assert error.code == "U132" and error.mend
    else:
        assert taken.sections and all(heading for heading, _ in taken.sections)


@given(st.data())
@settings(max_examples=60)
def test_a_damaged_pdf_is_taken_or_refused(tmp_path_factory, data):
    raw = bytearray(pdf(PLAIN, "§ 999.10 More\n\nx"))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=8))
    path = tmp_path_factory.mktemp("in") / "a.pdf"
    path.write_bytes(bytes(raw))
    try:
        take(path)
    except InputError as error:
        assert error.code == "U132"


def test_pages_without_text_are_told(give):
    assert "pages without text: 2" in take(give("a.pdf", pdf(PLAIN, ""))).notes


# Adding


def test_a_text_that_was_added_is_read_and_audited(world, give):
    for file in world.folder.iterdir():
        file.unlink()
    sources = {US: give("us.txt", US_TEXT[US_TEXT.index("§ 999.5 Boats") :].replace("## § 999.9", "§ 999.9 Words.")),
               VN: give("vn.txt", VN_TEXT[VN_TEXT.index("## ") :])}  # fmt: skip
    for source, path in sources.items():
        added = add(world.package(), world.corpus(), path, source=source, as_of="2026-11-30",
                    retrieved_from="the library", today=date(2026, 12, 1))  # fmt: skip
        assert added.path == world.folder / f"{source}.txt" and added.text.date == "2026-11-30"
        assert added.text.header["retrieved"] == "2026-12-01" and added.text.header["retrieved-from"] == "the library"
        assert read_corpus(world.folder).latest(source) == added.text
    assert verify(world.package(), world.corpus()) == []
    assert world.read_by().audit().summary[CLEAN] == 5


def test_a_second_version_is_named_by_its_date_and_one_of_the_same_date_is_refused(world, give):
    path = give("a.txt", PLAIN)
    with pytest.raises(InputError) as caught:
        add(world.package(), world.corpus(), path, source=US, as_of="2026-09-01")
    assert caught.value.code == "A105" and f"{US}.txt" in caught.value.message
    added = add(world.package(), world.corpus(), path, source=US, as_of="2026-11")
    assert added.path.name == f"{US}@2026-11.txt"
    before = state(world.root)
    with pytest.raises(InputError) as caught:
        add(world.package(), world.corpus(), path, source=US, as_of="2026-11")
    assert caught.value.code == "A105" and state(world.root) == before
    assert [t.date for t in world.corpus().texts[US]] == ["2026-09-01", "2026-11"]


def test_a_file_that_is_there_and_cannot_be_used_is_not_overwritten(world, give):
    (world.folder / f"{US}.txt").write_bytes(b"\xff")
    added = add(world.package(), world.corpus(), give("a.txt", PLAIN), source=US, as_of="2026-11-30")
    assert added.path.name == f"{US}@2026-11-30.txt" and (world.folder / f"{US}.txt").read_bytes() == b"\xff"


@pytest.mark.parametrize(
    ("source", "as_of", "content", "code"),
    [
        ("nowhere", "2026-11-30", PLAIN, "U103"),
        (PARENT, "30/11/2026", PLAIN, "U104"),
        (PARENT, "2026-02-30", PLAIN, "U104"),
        (PARENT, "2026", PLAIN, "U104"),
        (PARENT, "", PLAIN, "U104"),
        (PARENT, "2026-11-30", VIETNAMESE, "A107"),
        (VN, "2026-11-30", PLAIN, "A107"),
        (PARENT, "2026-11-30", "## \n\nx", "U132"),
    ],
)
def test_what_does_not_fit_the_package_is_refused(world, give, source, as_of, content, code):
    before = state(world.root)
    with pytest.raises(InputError) as caught:
        add(world.package(), world.corpus(), give("a.txt", content), source=source, as_of=as_of)
    assert caught.value.code == code and caught.value.mend and state(world.root) == before


@given(st.text(alphabet="ab§é#> \n.5()", max_size=60), st.text(alphabet="ab§é#> \n.5()", max_size=60))
@settings(max_examples=80)
def test_a_text_comes_out_of_the_corpus_as_it_was_cut(tmp_path_factory, one, two):
    """What is added is read again word for word, whatever stands in its lines."""
    root = tmp_path_factory.mktemp("world")
    (root / "a.txt").write_text(f"§ 7 One\n{one}\n\n§ 8 Two\n{two}\n", encoding="utf-8", newline="")
    package = PACKAGES.get("one") or PACKAGES.setdefault("one", World(root / "package").write().package())
    try:
        taken = take(root / "a.txt")
        added = add(package, Corpus(root / "texts"), root / "a.txt", source=PARENT, as_of="2026-11-30")
    except InputError as error:
        assert error.code == "U132" and "twice" in error.message
        return
    assert [(s.heading, normalise(s.body)) for s in added.text.sections] == [
        (heading, normalise(body)) for heading, body in taken.sections
    ]
    if not re.search("^## +\\S", f"{one}\n{two}", re.M):
        assert "".join("".join(s.body for s in added.text.sections).split()) == "".join(f"§7One{one}§8Two{two}".split())


PACKAGES: dict[str, Any] = {}


# Listing and verifying


def test_the_list_says_what_is_held_and_of_what_nothing_is(world):
    world.texts[f"{US}@2025-01.txt"] = US_TEXT.replace("as-of: 2026-09-01", "as-of: 2025-01")
    world.texts["stranger.txt"] = US_TEXT.replace(US, "stranger")
    world.write()
    held = {h.source: h for h in holdings(world.package(), world.corpus())}
    assert [*held] == sorted([US, VN, PARENT, "stranger"])
    assert [t.date for t in held[US].texts] == ["2025-01", "2026-09-01"] and held[US].citations == 5
    assert held[PARENT].texts == () and held[PARENT].known and not held["stranger"].known
    at = ("--texts", world.folder, "--package", world.root)
    code, out, err = invoke("sources", "list", *at)
    assert (
        (code, err) == (0, "") and f"{PARENT}  (0 citations)\n    no text" in out and "no source of the package" in out
    )
    listed = json.loads(invoke("sources", "list", *at, "--format", "json")[1], parse_constant=pytest.fail)["sources"]
    assert listed == [h.as_dict() for h in held.values()]
    assert listed[2]["texts"][0]["sha256"] == world.corpus().texts[listed[2]["source"]][0].sha256


def unknown(world: World) -> None:
    world.texts["stranger.txt"] = US_TEXT.replace(US, "stranger")


def translated(world: World) -> None:
    world.texts[f"{VN}.txt"] = US_TEXT.replace(US, VN)


VERIFIED = {"A106": (unknown, "stranger.txt"), "A107": (translated, f"{VN}.txt")}


@pytest.mark.parametrize("code", VERIFIED)
def test_a_text_that_does_not_fit_the_package_is_found(world, code):
    assert verify(world.package(), world.corpus()) == []
    spoil, file = VERIFIED[code]
    spoil(world)
    world.write()
    assert [(f.code, f.file, f.severity) for f in verify(world.package(), world.corpus())] == [
        (code, file, rules()[code].severity)
    ]
    assert invoke("sources", "verify", "--texts", world.folder, "--package", world.root)[0] == (code == "A107")


def test_what_is_in_another_language_is_not_assessed_and_no_defect(world):
    world.read_by()
    translated(world)
    report = world.write().audit(requirements=["boats-vn-r01"])
    assert report.items[0].outcome == NOT_ASSESSED
    assert [(f.code, f.severity) for f in report.findings if f.code != "A241"] == [("A107", "error")]
    assert not report.ok, "a text that nobody can use is no silent pass"


def test_a_heading_without_words_below_is_told(world, give):
    added = add(world.package(), world.corpus(), give("a.txt", f"{PLAIN}\n§ 999.77 Reserved.\n"), source=PARENT,
                as_of="2026-11-30")  # fmt: skip
    assert any("below the line of the heading: § 999.77" in note for note in added.notes)


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif", "junit"])
def test_verify_writes_findings_in_each_form(world, form):
    world.texts["a.txt"] = b"\xff"
    world.texts[f"{US}@2026-09-01.txt"] = US_TEXT
    world.write()
    code, out, err = invoke("sources", "verify", "--texts", world.folder, "--package", world.root, "--format", form)
    assert (code, err) == (1, "") and "A101" in out and "A105" in out
    if form == "sarif":
        SarifLog.model_validate_json(out)
        for result in json.loads(out)["runs"][0]["results"]:
            address = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            assert Path(unquote(address.removeprefix("file://"))).is_file()


def test_the_language_of_the_held_texts_is_that_of_their_law(corpus):
    sources = {r.key: r for r in read(ROOT).table("sources")}
    for source, texts in corpus.texts.items():
        for text in texts:
            if source in sources:
                assert text.language == language_of(sources[source]["jurisdiction"]), source
    assert language_of_text("") == "en" and language_of_text("Điều này được bổ sung.") == "vi"


# Two versions


def new_version(world: World, **edits: str) -> World:
    text = US_TEXT.replace("as-of: 2026-09-01", "as-of: 2026-11-30")
    for old, _, new in (edit.partition("|") for edit in edits.values()):
        assert text.count(old) == 1
        text = text.replace(old, new)
    world.texts[f"{US}@2026-11-30.txt"] = text
    return world.write()


def test_a_new_version_names_what_it_touches(world):
    new_version(
        world,
        days="fifteen (15)|twenty (20)",
        words="sends a list|sends a table",
        wrapped="The master waits 5 days. The|The master\n  waits 5 days. The",
        gone="## § 999.9|## § 999.10",
    )
    found = diff(world.package(), world.corpus(), US)
    assert (found.old.file, found.new.file) == (f"{US}.txt", f"{US}@2026-11-30.txt")
    assert [(t.citation.key, t.state, [f.record.key for f in t.facts]) for t in found.touched] == [
        ("boats-us-r01-c1", "changed", ["boats-us-r01-f1"]),
        ("boats-us-r02-c2", "gone", []),
        ("boats-us-r03-c1", "changed", []),
    ]
    assert found.same == ("boats-us-r02-c1", "boats-us-r04-c1") and found.absent == ()
    assert found.requirements == ["boats-us-r01", "boats-us-r02", "boats-us-r03"]
    assert found.touched[0].facts[0].reason == "wrong-number" and "999.9" in found.touched[1].why
    back = diff(world.package(), world.corpus(), US, "2026-11-30", f"{US}.txt")
    assert [t.state for t in back.touched] == ["changed", "new", "changed"] and back.same == found.same
    assert back.touched[0].facts == (), "what the older text does not say is not what no longer stands"


def test_a_version_that_changes_nothing_touches_nothing(world):
    new_version(world, note="(c) List.|> [99 FR 2]\n\n(c) List.")
    found = diff(world.package(), world.corpus(), US)
    assert found.touched == () and len(found.same) == 5
    at = ("--texts", world.folder, "--package", world.root)
    assert invoke("sources", "diff", US, *at)[0] == 0


def test_a_fact_that_stood_in_neither_version_is_not_told_as_lost(world):
    world.set("boats-us-r01-f2", value="31")
    new_version(world, days="fifteen (15)|twenty (20)")
    (touched,) = diff(world.package(), world.corpus(), US).touched
    assert [t.record.key for t in touched.facts] == ["boats-us-r01-f1"]


def test_versions_that_nobody_can_order_or_use_are_not_compared(world):
    at = ("--texts", world.folder, "--package", world.root)
    world.texts[f"{US}@2026-09-01.txt"] = US_TEXT.replace("fifteen (15)", "twenty (20)")
    world.write()
    code, out, err = invoke("sources", "diff", US, *at)
    assert (code, out) == (2, "") and "have one date" in err and "A105" in err
    assert invoke("sources", "diff", US, f"{US}.txt", f"{US}@2026-09-01.txt", *at)[0] == 1, "named, they are"
    world.texts[f"{US}@2026-09-01.txt"] = b"\xff"
    world.write()
    code, out, err = invoke("sources", "diff", US, *at)
    assert (code, out) == (2, "") and "there is 1 that can be used" in err and "regatta sources verify" in err


def test_the_difference_as_text_and_json(world):
    new_version(world, days="fifteen (15)|twenty (20)")
    at = ("--texts", world.folder, "--package", world.root)
    code, out, err = invoke("sources", "diff", US, *at)
    assert (code, err) == (1, "") and "boats-us-r01-f1 no longer stands: the passage does not state 15" in out
    code, out, _ = invoke("sources", "diff", US, "2026-09-01", "2026-11-30", *at, "--format", "json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert code == 1 and found == diff(world.package(), world.corpus(), US).as_dict()
    (touched,) = found["touched"]
    assert touched["old_hash"] != touched["new_hash"] and touched["facts"][0]["fact"] == "boats-us-r01-f1"
    for arguments, what in [
        ((VN,), f"of {VN} there is 1"),
        (("nowhere",), "no source"),
        ((US, "2026-09-01"), "one version is named"),
        ((US, "2020-01-01", "2026-11-30"), "2026-09-01, 2026-11-30"),
    ]:
        code, out, err = invoke("sources", "diff", *arguments, *at)
        assert (code, out) == (2, "") and what in err


# The command


def test_the_whole_way_under_the_c_locale(tmp_path, give):
    world = World(tmp_path / "gói").write()
    folder = tmp_path / "văn bản"
    at = ("--texts", folder, "--package", world.root)
    path = give("nghị định.txt", VIETNAMESE)
    done = regatta("sources", "add", path, "--source", VN, "--as-of", "2026-03", "--retrieved-from", "Thư viện", *at,
                   **C_LOCALE)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8").startswith(f"{VN}.txt: 3 sections, Điều 5 to Điều 6a\n")
    header = read_corpus(folder).latest(VN).header
    assert header["retrieved-from"] == "Thư viện" and header["number"] == "999/2026/NĐ-CP"
    for command in ("list", "verify"):
        done = regatta("sources", command, *at, **C_LOCALE)
        assert done.returncode == 0 and b"Traceback" not in done.stderr
    done = regatta("sources", "add", path, "--source", VN, "--as-of", "2026-03", *at, **C_LOCALE)
    assert done.returncode == 2 and "A105" in done.stderr.decode("utf-8")
    assert sorted(p.name for p in folder.iterdir()) == [f"{VN}.txt"]


def test_without_texts_the_command_says_how_to_name_them(world, monkeypatch, give):
    monkeypatch.delenv("REGATTA_TEXTS", raising=False)
    at = ("--package", world.root)
    adding = ("add", give("a.txt", PLAIN), "--source", US, "--as-of", "2026-12-01")
    for command in (("list",), ("verify",), ("diff", US), adding):
        code, out, err = invoke("sources", *command, *at)
        assert (code, out) == (2, "") and "--texts" in err
    monkeypatch.setenv("REGATTA_TEXTS", str(world.folder))
    assert invoke("sources", *adding, *at)[0] == 0
