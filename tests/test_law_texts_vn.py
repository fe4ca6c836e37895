"""The Vietnamese cells held against the law as read.

Where the held texts lie beside the project (``../shared/legal/texts``), these tests prove for each cell in Vietnamese
that every source has a held text with its number and dates, that every locator (``Điều 5, khoản 2, điểm a``) resolves
in it, that every value stands in the cited passage with its unit and its kind of day, and that ``duty_vi`` and
``duty_en`` state the same quantities, all of them found in a cited passage. Where the texts are absent these skip.

Forms and elements of lists are English, the law is Vietnamese: a glossary joins the two. The readers are this file's
own and use the standard library alone: they share no code, and hence no error, with the tools or with the reader of
US law.
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
CELLS = sorted(p.parent.name for p in INSTRUMENTS.glob("*-vn/requirements.csv"))

needs_law = pytest.mark.skipif(not (LEGAL / "texts").is_dir(), reason="../shared/legal is absent: the law was not read")


# ----- tables and held texts


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, strict=True))


def table(cell: str, name: str) -> list[dict[str, str]]:
    return rows(INSTRUMENTS / cell / f"{name}.csv")


def sources() -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in rows(INSTRUMENTS / "sources.csv")}


def split_sections(text: str) -> list[tuple[str, str]]:
    """Heading and body of each ``## `` section; what stands above the first is the header and is no law."""
    parts = re.split(r"^## (.*)$", nfc(text), flags=re.M)
    return [(parts[i].strip(), parts[i + 1]) for i in range(1, len(parts), 2)]


@cache
def held(source: str) -> list[tuple[str, str]]:
    return split_sections((LEGAL / "texts" / f"{source}.txt").read_text(encoding="utf-8"))


# ----- locators: Điều N[, khoản N[-N]][, điểm x[-y]]

POINTS = "abcdđeghiklmnopqrstuvxy"  # the order of points in Vietnamese law: no f, j, w, z
LOCATOR = re.compile(
    r"^Điều (?P<article>\d+[a-zđ]?)"
    r"(?:, khoản (?P<clause>\d+[a-zđ]?)(?:-(?P<clause_to>\d+[a-zđ]?))?)?"
    r"(?:, điểm (?P<point>[a-zđ])(?:-(?P<point_to>[a-zđ]))?)?$"
)
CLAUSE = re.compile(r"^\s*[“\"]?(?:\((\d{1,2}[a-zđ]?)\)|(\d{1,2}[a-zđ]?)\.(?!\d))\s*")
POINT = re.compile(r"^\s*[“\"]?([a-zđ])\)\s*")
AMENDING = re.compile(r"^\s*\d+\.\s*(?:Sửa đổi|Bổ sung|Bãi bỏ|Thay thế)\b")


class NotFound(LookupError):
    """The locator names what the held text does not have."""


def clause_key(label: str) -> tuple[int, str]:
    match = re.fullmatch(r"(\d+)([a-zđ]?)", label)
    return int(match[1]), match[2]


def heading_parts(heading: str) -> tuple[str, list[str]] | None:
    """Article and clauses that a heading names; None where it is about another instrument or an annex."""
    bare = re.sub(r"\s\(.*$", "", heading)  # a note, which may name other acts
    match = re.match(r"Điều (\d+[a-zđ]?)(?![\w.])", bare)
    if not match:
        return None
    return match[1], re.findall(r"khoản (\d+[a-zđ]?)(?!\w)", bare[match.end() :])


def passage(sections: list[tuple[str, str]], locator: str) -> str:
    """The cited passage with the introductory words above it."""
    parsed = LOCATOR.match(nfc(locator))
    if not parsed:
        raise NotFound(f"no reader for this form of locator: {locator!r}")
    if parsed["clause_to"] and parsed["point"]:
        raise NotFound(f"a point of several clauses: {locator!r}")
    found, reasons = [], []
    for heading, body in sections:
        parts = heading_parts(heading)
        if parts is None or parts[0] != parsed["article"]:
            continue
        lines = body.splitlines()
        try:
            found.append(_points(_clauses(lines, parts[1], parsed), parsed))
        except NotFound as error:
            reasons.append(f"{heading!r}: {error}")
    if not found:
        raise NotFound(f"{locator}: " + ("; ".join(reasons) or f"no Điều {parsed['article']} in the held text"))
    return "\n".join(found)


def _clauses(lines: list[str], named: list[str], parsed) -> tuple[list[str], list[str]]:
    """Introductory lines and lines of the clauses asked for."""
    if not parsed["clause"]:
        return [], lines
    if named and parsed["clause"] not in named:
        raise NotFound(f"the heading names only khoản {', '.join(named)}")
    marks = [
        (number, None if AMENDING.match(line) else (m[1] or m[2]))
        for number, line in enumerate(lines)
        if (m := CLAUSE.match(line))
    ]
    first, last = parsed["clause"], parsed["clause_to"] or parsed["clause"]
    if clause_key(last) < clause_key(first):
        raise NotFound("the range of clauses runs backwards")
    start = next((n for n, label in marks if label == first), None)
    if start is None:
        if named == [first] and last == first and not any(label for _, label in marks):
            return [], lines  # an extract of one clause that is printed without its number
        raise NotFound(f"no khoản {first}")
    if last != first and not any(label == last for _, label in marks):
        raise NotFound(f"no khoản {last}")
    end = next(
        (n for n, label in marks if n > start and (label is None or clause_key(label) > clause_key(last))), len(lines)
    )
    lead = lines[: marks[0][0]]
    return lead, lines[start:end]


def _points(clauses: tuple[list[str], list[str]], parsed) -> str:
    lead, lines = clauses
    if not parsed["point"]:
        return "\n".join(lead + lines)
    first, last = parsed["point"], parsed["point_to"] or parsed["point"]
    if first not in POINTS or last not in POINTS or POINTS.index(last) < POINTS.index(first):
        raise NotFound(f"no point runs from {first} to {last}")
    marks = [(n, m[1]) for n, line in enumerate(lines) if (m := POINT.match(line))]
    labels = [label for _, label in marks]
    for wanted in POINTS[POINTS.index(first) : POINTS.index(last) + 1]:
        if wanted not in labels:
            raise NotFound(f"no điểm {wanted}")
    start = next(n for n, label in marks if label == first)
    end = next((n for n, label in marks if n > start and POINTS.index(label) > POINTS.index(last)), len(lines))
    return "\n".join(lead + lines[: marks[0][0]] + lines[start:end])


# ----- numbers in Vietnamese

DIGIT = {w: n for n, w in enumerate(re.findall(r"\w+", "không một hai ba bốn năm sáu bảy tám chín"))}
DIGIT |= {"mốt": 1, "tư": 4, "lăm": 5, "bẩy": 7}
SCALE = {"nghìn": 1000, "ngàn": 1000, "triệu": 10**6, "tỷ": 10**9, "tỉ": 10**9}
DATE = re.compile(
    r"ngày\s+(\d{1,2})\s+tháng\s+(\d{1,2})(?:\s+năm\s+(\d{4}))?|(?:tháng\s+\d{1,2}\s+)?năm\s+\d{4}|\d{1,2}/\d{1,2}/\d{4}"
    r"|ngày\s+\d{1,2}/\d{1,2}(?![\d/])"
)
WORD = re.compile(r"\d+(?:\.\d{3})*(?:,\d+)?|[^\W\d_]+|%|[()/;:,.]")


def words(text: str) -> list[str]:
    return [w.lower() for w in WORD.findall(text)]


def spelt(tokens: list[str], index: int) -> tuple[int, int] | None:
    """A number in Vietnamese words from a token on, and the index after it; ``năm`` alone is a year and no number."""
    total = group = 0
    pending: int | None = None
    start = index
    while index < len(tokens):
        word = tokens[index]
        if word == "mười":
            group, pending = group + 10, None
        elif word == "mươi" and pending is not None:
            group, pending = group + pending * 10, None
        elif word == "trăm" and pending is not None:
            group, pending = group + pending * 100, None
        elif word in SCALE and (pending is not None or group):
            total, group, pending = total + (group + (pending or 0)) * SCALE[word], 0, None
        elif word in ("linh", "lẻ") and index > start:
            pass
        elif word in DIGIT and pending is None:
            pending = DIGIT[word]
        else:
            break
        index += 1
    if index == start:
        return None
    return total + group + (pending or 0), index


def number_at(tokens: list[str], index: int) -> tuple[Decimal, int] | None:
    """The number that starts at a token, in digits or words, with a repetition in words and a scale after it."""
    token = tokens[index]
    if token[0].isdigit():
        value, after = Decimal(token.replace(".", "").replace(",", ".")), index + 1
        if after + 2 < len(tokens) and tokens[after] == "(":
            read = spelt(tokens, after + 1)
            if read and tokens[read[1] : read[1] + 1] == [")"]:
                if read[0] != value:
                    raise ValueError(f"{token} is repeated in words as {read[0]}")
                after = read[1] + 1
        while after < len(tokens) and tokens[after] in SCALE:
            value, after = value * SCALE[tokens[after]], after + 1
        return value, after
    read = spelt(tokens, index)
    if read is None:
        return None
    return Decimal(read[0]), read[1]


def unit_at(tokens: list[str], index: int) -> tuple[str, str] | None:
    """Unit right after a number and, for days, which days."""
    here = tokens[index : index + 4]
    if not here:
        return None
    if here[0] == "%":
        return "percent", ""
    if here[:3] == ["ngày", "làm", "việc"]:
        return "day", "working"
    if here[0] == "ngày":
        return "day", "unspecified"
    if here[:2] == ["tháng", "lương"]:
        return "monthly-wage", ""
    simple = {"giờ": "hour", "phút": "minute", "tuần": "week", "tháng": "month", "năm": "year", "tuổi": "year"}
    if here[0] in simple:
        return simple[here[0]], ""
    if here[0] in ("đồng", "vnd", "vnđ"):
        return "VND", ""
    if here[0] == "usd" or here[:2] in (["đô", "la"], ["đô", "mỹ"]):
        return "USD", ""
    if here[0] == "lần":
        return "item", ""
    return None


def stated_vi(text: str) -> set[tuple[Decimal, str, str]]:
    """(value, unit, kind of day) of every number of a Vietnamese text that has a unit right behind it."""
    out = set()
    for line in nfc(text).splitlines():
        line = POINT.sub("", CLAUSE.sub("", DATE.sub(" ; ", line)))
        tokens = words(line)
        index = 0
        while index < len(tokens):
            read = number_at(tokens, index)
            if read is None:
                index += 1
                continue
            value, after = read
            unit = unit_at(tokens, after)
            if unit is None and tokens[index] not in DIGIT and not tokens[index][0].isdigit():
                index += 1
                continue
            if unit:
                out.add((value, *unit))
                if unit[0] == "item":
                    out.add((value, "times", ""))
            index = after
    return out


# ----- numbers in English (of the duties, which write digits)

ENGLISH = re.compile(r"\d[\d,]*(?:\.\d+)?|[A-Za-z]+|%")
ENGLISH_UNITS = {
    "hour": "hour", "hours": "hour", "day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month",
    "months": "month", "year": "year", "years": "year", "percent": "percent", "%": "percent", "minute": "minute",
    "minutes": "minute", "extension": "item", "extensions": "item",
}  # fmt: skip
ENGLISH_NAMES = "zero one two three four five six seven eight nine ten eleven twelve"
ENGLISH_SMALL = {w: n for n, w in enumerate(re.findall(r"\w+", ENGLISH_NAMES))}
ENGLISH_SCALE = {"million": 10**6, "billion": 10**9}


def stated_en(text: str) -> set[tuple[Decimal, str, str]]:
    tokens = ENGLISH.findall(re.sub(r"\d{4}-\d\d-\d\d", " ", text))
    out = {(Decimal(hour), "hour", "") for hour in re.findall(r"\b(\d{1,2}):00\b", text)}
    if re.search(r"\bsingle (?:sum|payment)\b", text):
        out |= {(Decimal(1), "item", ""), (Decimal(1), "times", "")}
    for index, token in enumerate(tokens):
        if token[0].isdigit():
            value = Decimal(token.rstrip(",").replace(",", ""))
        elif token.lower() in ENGLISH_SMALL:
            value = Decimal(ENGLISH_SMALL[token.lower()])
        else:
            continue
        before = tokens[max(0, index - 2) : index]
        if before[-1:] in (["VND"], ["USD"]) and not before[0][0].isdigit():
            scale = ENGLISH_SCALE.get("".join(tokens[index + 1 : index + 2]), 1)
            out.add((value * scale, tokens[index - 1], ""))
            continue
        behind = [t if t in ("VND", "USD") else t.lower() for t in tokens[index + 1 : index + 4]]
        if behind[:1] in (["VND"], ["USD"]):
            out.add((value, behind[0], ""))
        elif behind[:2] in (["months", "of"], ["month", "of"]) and behind[2:3] in (["minimum"], ["wage"]):
            out.add((value, "monthly-wage", ""))
        elif behind[:1] in (["working"], ["business"], ["calendar"]) and behind[1:2] in (["day"], ["days"]):
            out.add((value, "day", behind[0]))
        elif behind[:1] in (["time"], ["times"]):  # Vietnamese has one word for both, "lần"
            out |= {(value, "item", ""), (value, "times", "")}
        elif behind and behind[0] in ENGLISH_UNITS:
            unit = ENGLISH_UNITS[behind[0]]
            out.add((value, unit, "unspecified" if unit == "day" else ""))
    return out


# ----- dates

MONTHS = re.findall(r"\w+", "January February March April May June July August September October November December")


def dates_vi(text: str) -> set[str]:
    """Dates of a Vietnamese text, ``--MM-DD`` where there is no year."""
    found = re.findall(
        r"(\d{1,2})\s+tháng\s+(\d{1,2})(?!\d)(?:\s+năm\s+(\d{4}))?"
        r"|(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})|ngày\s+(\d{1,2})/(\d{1,2})(?![\d/])",
        nfc(text),
    )
    out = set()
    for groups in found:
        day, month, *year = [g for g in groups if g]
        out.add(f"{year[0] if year else '-'}-{int(month):02d}-{int(day):02d}")
    return out


def dates_en(text: str) -> set[str]:
    out = set(re.findall(r"\b\d{4}-\d\d-\d\d\b", text))
    for day, month in re.findall(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)})\b", text):
        out.add(f"--{MONTHS.index(month) + 1:02d}-{int(day):02d}")
    return out


# ----- forms and elements of lists: the English words and what the Vietnamese passage must then say

GLOSSARY = {
    "lending rate": ["lãi suất cho vay"],
    "how and when an adjustable rate is set": [
        "thời điểm xác định lãi suất cho vay đối với trường hợp áp dụng lãi suất cho vay có điều chỉnh"
    ],
    "rate on overdue principal": ["lãi suất áp dụng đối với dư nợ gốc bị quá hạn"],
    "rate on late interest": ["lãi suất áp dụng đối với lãi chậm trả"],
    "method of computing interest": ["phương pháp tính lãi"],
    "kinds and amounts of fees": ["loại phí và mức phí"],
    "criteria for borrowing at the rates": ["tiêu chí xác định khách hàng vay vốn theo lãi suất"],
    "before the loan agreement": ["trước khi xác lập thỏa thuận cho vay"],
    "in writing": ["bằng văn bản"],
    "reasons": ["nêu rõ lý do"],
    "reason on request": ["lý do khi khách hàng có yêu cầu"],
    "appraisal and lending decision apart": ["phân định trách nhiệm giữa khâu thẩm định và quyết định cho vay"],
    "mechanism to identify individuals and units responsible": ["cơ chế để xác định từng cá nhân, bộ phận"],
    "bonds issued by the customer": ["trái phiếu do khách hàng"],
    "bonds issued by its related persons": ["người có liên quan của khách hàng đó phát hành"],
    "bought, held or invested in": ["mua, nắm giữ, đầu tư"],
    "spouse": ["vợ, chồng"],
    "father or mother": ["cha, mẹ"],
    "child": ["con,"],
    "brother or sister": ["anh, chị, em"],
    "member of the board": ["thành viên hội đồng quản trị"],
    "members' council": ["thành viên hội đồng thành viên"],
    "supervisory board": ["ban kiểm soát"],
    "general director or deputy": ["phó tổng giám đốc"],
    "equivalent post": ["chức danh tương đương"],
    "credit card issued to an individual": ["phát hành thẻ tín dụng cho cá nhân"],
    "time of seizure": ["thời gian, địa điểm thu giữ"],
    "place of seizure": ["thời gian, địa điểm thu giữ"],
    "asset": ["tài sản bảo đảm được thu giữ"],
    "reason for seizure": ["lý do thu giữ"],
    "own website": ["trang thông tin điện tử của mình"],
    "people's committee": ["ủy ban nhân dân cấp xã"],
    "police": ["công an cấp xã"],
    "posting": ["niêm yết"],
    "security provider": ["bên bảo đảm"],
    "holder of the asset": ["người đang giữ tài sản bảo đảm"],
    "request of a competent state authority under a law": [
        "yêu cầu của cơ quan nhà nước có thẩm quyền theo quy định của luật"
    ],
    "consent of the customer": ["sự chấp thuận của khách hàng"],
    "payment for lawful goods and services": ["thanh toán tiền hàng hóa, dịch vụ hợp pháp"],
    "cash withdrawal": ["rút tiền mặt"],
    "payment account": ["tài khoản thanh toán"],
    "debit card": ["thẻ ghi nợ"],
    "prepaid card": ["thẻ trả trước"],
    "e-wallet": ["ví điện tử"],
    "per bin": ["tính theo bin"],
    "card payment for goods or services": ["thanh toán tiền hàng hóa dịch vụ"],
    "financial institutions acting in their own name": ["nhân danh tổ chức mình"],
    "before 16:00": ["trước 16 giờ"],
    "working day next after the day of the transaction": ["ngày làm việc tiếp theo ngay sau ngày phát sinh giao dịch"],
    "electronic data": ["dữ liệu điện tử"],
    "extra product or service as a condition of the contract": [
        "mua thêm sản phẩm, hàng hóa, dịch vụ như là điều kiện bắt buộc"
    ],
    "against the consumer's will": ["trái với ý muốn của người tiêu dùng"],
    "consent of the data subject": ["sự đồng ý của chủ thể dữ liệu cá nhân"],
    "data-protection authority": ["cơ quan chuyên trách bảo vệ dữ liệu cá nhân"],
    "competent authority": ["cơ quan nhà nước có thẩm quyền", "cơ quan có thẩm quyền"],
    "data subject": ["chủ thể dữ liệu"],
    "affected": ["bị ảnh hưởng"],
    "automated processing": ["xử lý dữ liệu cá nhân tự động"],
    "working principle of the algorithm": ["nguyên tắc hoạt động của thuật toán"],
    "effect on rights and interests": ["ảnh hưởng đối với quyền và lợi ích hợp pháp"],
    "choice not to take part": ["quyền không tham gia"],
    "procedure for stopping the processing": ["thủ tục ngừng xử lý"],
    "12 months of minimum wage": ["12 tháng lương tính theo mức lương tối thiểu"],
    "6 months of minimum wage": ["06 tháng lương tính theo mức lương tối thiểu"],
    "public notice": ["thông báo công khai"],
    "premium paid": ["phí bảo hiểm đã đóng"],
    "less reasonable costs agreed in the contract": ["trừ đi chi phí hợp lý (nếu có) theo thỏa thuận trong hợp đồng"],
    "confirmation by the policyholder of having received the paper documents": [
        "bên mua bảo hiểm xác nhận đã nhận được bản giấy"
    ],
    "on paper": ["bằng bản giấy"],
    "summary of the rules, conditions and terms": ["tài liệu tóm tắt quy tắc, điều kiện, điều khoản"],
    "sales illustration of the life product": ["tài liệu minh họa bán hàng của sản phẩm bảo hiểm nhân thọ"],
    "insurance certificate": ["giấy chứng nhận bảo hiểm"],
    "policy or other lawful form": ["đơn bảo hiểm hoặc các hình thức khác theo quy định của pháp luật"],
    "in person": ["thực hiện trực tiếp"],
    "recorded call": ["cuộc gọi kết nối có ghi âm"],
    "not a mandatory condition": ["không phải là điều kiện bắt buộc"],
    "to be explained": ["giải thích cho bên mua bảo hiểm"],
    "when the policyholder signs the application": ["tại thời điểm bên mua bảo hiểm ký bản yêu cầu bảo hiểm"],
    "assessing the quality of agency work": ["đánh giá chất lượng hoạt động đại lý"],
    "settling complaints about agency work": ["khiếu nại liên quan tới hoạt động đại lý"],
    "settling feedback and complaints about agency work": ["các phản ánh, khiếu nại liên quan tới hoạt động đại lý"],
    "the products are insurance products": ["là sản phẩm bảo hiểm"],
    "full information on the procedure": ["cung cấp đầy đủ thông tin cho chủ thể dữ liệu cá nhân về thủ tục"],
    "preventing fraud in insurance": ["phòng chống gian lận trong lĩnh vực kinh doanh bảo hiểm"],
    "supplying a competent authority on request": ["cung cấp cho cơ quan có thẩm quyền theo yêu cầu"],
    "material supplied by the insurer": ["tài liệu do doanh nghiệp bảo hiểm"],
    "maximum agreed in the policy": ["hạn mức tối đa đã được thỏa thuận tại hợp đồng"],
    "in the contract or in a document attached to it": ["tại hợp đồng bảo hiểm hoặc văn bản khác đính kèm"],
    "interest on the late sum": ["trả lãi đối với số tiền chậm trả"],
    "for the time of the delay": ["tương ứng với thời gian chậm trả"],
    "force majeure": ["bất khả kháng"],
    "objective obstacle": ["trở ngại khách quan"],
    "in any form": ["dưới mọi hình thức"],
    "the larger of the two": ["số lớn hơn của một trong hai"],
    "request of a competent state body": ["yêu cầu của cơ quan nhà nước có thẩm quyền"],
    "consent of the policyholder or insured person": ["sự đồng ý của bên mua bảo hiểm, người được bảo hiểm"],
    "whole match": ["trùng khớp toàn bộ"],
    "listed person or organisation": ["cá nhân, tổ chức thuộc danh sách đen"],
    "match of one group of identifiers": ["một trong các nhóm thông tin"],
    "match of one identifier": ["một trong các thông tin"],
    "information that gives reason to believe in a link": ["trên cơ sở các thông tin thu thập được tin rằng"],
    "that they are interacting with the system": ["nhận biết khi đang tương tác với hệ thống"],
    "for the whole time of supply to users": ["trong suốt quá trình cung cấp"],
    "prohibited": ["không được", "bị nghiêm cấm", "không khuyến mại"],
    "none": ["không áp dụng thời gian chờ"],
}
SMALL_WORDS = {
    "the",
    "and",
    "for",
    "with",
    "from",
    "that",
    "its",
    "not",
    "under",
    "whose",
    "only",
    "all",
    "any",
    "each",
}


def form_error(value: str, text: str) -> str | None:
    low, law = value.lower(), " ".join(nfc(text).lower().split())
    used = [english for english in GLOSSARY if re.search(rf"\b{re.escape(english)}\b", low)]
    for english in used:
        if not any(vietnamese in law for vietnamese in GLOSSARY[english]):
            return f"{english!r} of {value!r} is not in the passage"
    content = {w for w in re.findall(r"[a-z]{3,}", low) if w not in SMALL_WORDS}
    covered = {w for english in used for w in re.findall(r"[a-z]{3,}", english)}
    if not used or 2 * len(content & covered) < len(content):
        return f"the glossary does not cover {value!r}"
    return None


def fact_error(fact: dict[str, str], text: str) -> str | None:
    """What is wrong with a fact as against the passage it cites, or None."""
    value, unit = fact["value"], fact["unit"]
    if fact["kind"] in ("form", "list"):
        return "a form or list has no unit" if unit else form_error(value, text)
    if fact["kind"] == "date":
        return None if value in dates_vi(text) else f"the date {value} is not in the passage"
    number = Decimal(value)
    found = {q for q in stated_vi(text) if q[0] == number}
    if not found:
        return f"{value} is not in the passage with any unit"
    if unit not in {q[1] for q in found}:
        return f"{value} is there, but not in {unit}"
    if unit == "day" and fact["day_count"] not in {q[2] for q in found if q[1] == "day"}:
        return f"{value} days are there, but not {fact['day_count']} ones"
    return None


def validity_error(row: dict[str, str], first: str, last: str, text: str) -> list[str]:
    """Validity dates must be dates of the text: the last day as such ("đến hết ngày"), or as the eve of another."""
    out = []
    if row[first] and row[first] not in dates_vi(text):
        out.append(f"{first} {row[first]} is not in the passage")
    if row[last]:
        eve = (dt.date.fromisoformat(row[last]) + dt.timedelta(days=1)).isoformat()
        closing = " ".join(re.findall(r"đến\s+hết\s+(ngày.{0,30})", nfc(text)))
        if eve not in dates_vi(text) and row[last] not in dates_vi(closing):
            out.append(f"{last} {row[last]} is neither a closing day of the passage nor the eve of a date in it")
    return out


# ----- the tables against the law


def cited(cell: str) -> dict[str, str]:
    return {c["id"]: passage(held(c["source"]), c["locator"]) for c in table(cell, "citations")}


def keeping(cell: str, citation: dict[str, str]) -> str:
    """What the requirement cites of the source that keeps a repealed one in force."""
    keeper = citation["kept_in_force_by"]
    if not keeper:
        return ""
    others = [c for c in table(cell, "citations") if c["requirement"] == citation["requirement"]]
    return "\n".join(passage(held(c["source"]), c["locator"]) for c in others if c["source"] == keeper)


def locator_errors(cell: str) -> list[str]:
    errors = []
    for citation in table(cell, "citations"):
        try:
            passage(held(citation["source"]), citation["locator"])
        except (NotFound, OSError) as error:
            errors.append(f"{citation['id']}: {error}")
            continue
        text = "\n".join(body for _, body in held(citation["source"])) + keeping(cell, citation)
        errors += [f"{citation['id']}: {e}" for e in validity_error(citation, "force_from", "force_to", text)]
        head = (LEGAL / "texts" / f"{citation['source']}.txt").read_text(encoding="utf-8").split("\n## ")[0]
        if citation["text_date"] and citation["text_date"] not in head:
            errors.append(f"{citation['id']}: text_date {citation['text_date']} is not in the header of the held text")
    return errors


def fact_errors(cell: str) -> list[str]:
    passages, errors = cited(cell), []
    citations = {c["id"]: c for c in table(cell, "citations")}
    for fact in table(cell, "facts"):
        citation, text = citations[fact["citation"]], passages[fact["citation"]]
        if citation["requirement"] != fact["requirement"]:
            errors.append(f"{fact['id']}: cites a passage of {citation['requirement']}")
        error = fact_error(fact, text)
        errors += [f"{fact['id']}: {e}" for e in [error] if e]
        errors += [
            f"{fact['id']}: {e}" for e in validity_error(fact, "valid_from", "valid_to", text + keeping(cell, citation))
        ]
    return errors


def duty_errors(cell: str) -> list[str]:
    passages: dict[str, str] = {}
    by_id = cited(cell)
    for citation in table(cell, "citations"):
        passages[citation["requirement"]] = passages.get(citation["requirement"], "") + "\n" + by_id[citation["id"]]
    errors = []
    for requirement in table(cell, "requirements"):
        law = stated_vi(passages[requirement["id"]])
        vi, en = stated_vi(requirement["duty_vi"]), stated_en(requirement["duty_en"])
        bare = {q for q in vi if q[1] != "times"}
        errors += [f"{requirement['id']} duty_vi: {q} is not in the law cited" for q in bare - law]
        errors += [f"{requirement['id']} duty_en: {q} is not in the law cited" for q in en - law]
        condition = stated_en(requirement["applies_when"])
        errors += [f"{requirement['id']} applies_when: {q} is not in the law cited" for q in condition - law]
        days = dates_vi(passages[requirement["id"]])
        told = {"duty_vi": dates_vi(requirement["duty_vi"])}
        told |= {column: dates_en(requirement[column]) for column in ("duty_en", "applies_when")}
        for column, dates in told.items():
            errors += [f"{requirement['id']} {column}: {d} is not in the law cited" for d in sorted(dates - days)]
        if told["duty_vi"] != told["duty_en"]:
            errors.append(f"{requirement['id']}: duty_vi and duty_en differ in dates")
        if bare != {q for q in en if q[1] != "times"}:
            differ = sorted(str(q) for q in bare ^ en if q[1] != "times")
            errors.append(f"{requirement['id']}: duty_vi and duty_en differ in {differ}")
    return errors


AMENDED_BY = {  # held copies without the last amendment: the act whose text says from when it applies
    "vn-circular-67-2023-tt-btc": "vn-circular-96-2026-tt-btc",
    "vn-decree-46-2023-nd-cp": "vn-decree-97-2026-nd-cp",
    "vn-decree-67-2023-nd-cp": "vn-decree-220-2026-nd-cp",
    "vn-law-08-2022-qh15": "vn-law-139-2025-qh15",
}


def number_errors() -> list[str]:
    """The number of a source must be the one of the held text, with Đ (U+0110) and not a look-alike."""
    errors = []
    for source in sources().values():
        if source["jurisdiction"] != "VN":
            continue
        head = (LEGAL / "texts" / f"{source['id']}.txt").read_text(encoding="utf-8").split("\n## ")[0]
        stated = re.search(r"^number: (\S+?)[,\s]", nfc(head) + "\n", re.M)
        if not stated or stated[1] != source["number"]:
            errors.append(f"{source['id']}: {source['number']} against {stated and stated[1]}")
        if re.search("[Ðð]", source["number"]):  # Eth
            errors.append(f"{source['id']}: eth in {source['number']}")
        text = (LEGAL / "texts" / f"{source['id']}.txt").read_text(encoding="utf-8")
        for column in ("adopted", "effective", "amended", "ends"):
            value, law = source[column], text
            if column == "amended" and source["id"] in AMENDED_BY:
                law = (LEGAL / "texts" / f"{AMENDED_BY[source['id']]}.txt").read_text(encoding="utf-8")
            if value and value not in law and value not in dates_vi(law):
                errors.append(f"{source['id']} {column}: {value} is not in the held text")
    return errors


@needs_law
@pytest.mark.shared
@pytest.mark.parametrize("cell", CELLS)
def test_every_locator_resolves(cell):
    found = locator_errors(cell)
    assert not found, "\n".join(found)


@needs_law
@pytest.mark.shared
@pytest.mark.parametrize("cell", CELLS)
def test_every_fact_stands_in_its_passage(cell):
    found = fact_errors(cell)
    assert not found, "\n".join(found)


@needs_law
@pytest.mark.shared
@pytest.mark.parametrize("cell", CELLS)
def test_duties_state_the_quantities_of_the_law_in_both_languages(cell):
    found = duty_errors(cell)
    assert not found, "\n".join(found)


@needs_law
@pytest.mark.shared
def test_numbers_and_dates_of_sources_are_those_of_the_held_text():
    found = number_errors()
    assert not found, "\n".join(found)


# ----- these readers can fail

SAMPLE = split_sections(
    nfc("""source-id: sample

## Điều 5
Điều 5. Tên điều
Lời dẫn của điều này:
1. Trong thời hạn 30 ngày kể từ ngày nhận, tổ chức phải:
a) Trả lời bằng văn bản trong 03 ngày làm việc;
b) Nộp 400.000.000 (bốn trăm triệu) đồng hoặc 1.000 đô la Mỹ;
đ) Giữ hồ sơ mười lăm năm.
2. Trong ba mươi ngày hoặc 72 giờ, tối đa 01 lần; mức 10%/năm.
2a. Từ ngày 01 tháng 01 năm 2026 đến trước ngày 01 tháng 01 năm 2027: 13% vốn.
## Điều 6 khoản 2, khoản 3 (amended by Điều 8 Thông tư 1/2025)
“2. Tối đa 100 (một trăm) triệu đồng trong 01 tháng.”.
2. Sửa đổi, bổ sung khoản 3 như sau:
“3. Không quá 5 ngày.”.
## Điều 7 khoản 2 (as printed with dashes)
- trước 16 giờ ngày làm việc tiếp theo
## Thông tư 1/2025 Điều 9
Có hiệu lực từ ngày 05 tháng 01 năm 2026
## Điều 8 khoản 1, khoản 3
(1) Một.
(3) Chậm nhất 15 ngày.
(4) Bốn ngày.
""")
)


def test_the_reader_of_locators():
    assert "400.000.000" in passage(SAMPLE, "Điều 5, khoản 1, điểm b")
    assert "Lời dẫn" in passage(SAMPLE, "Điều 5, khoản 1, điểm b") and "30 ngày" in passage(
        SAMPLE, "Điều 5, khoản 1, điểm b"
    )
    assert "Giữ hồ sơ" not in passage(SAMPLE, "Điều 5, khoản 1, điểm a-b")
    assert "13%" not in passage(SAMPLE, "Điều 5, khoản 2") and "13%" in passage(SAMPLE, "Điều 5, khoản 2-2a")
    assert "5 ngày" not in passage(SAMPLE, "Điều 6, khoản 2") and "5 ngày" in passage(SAMPLE, "Điều 6, khoản 3")
    assert "16 giờ" in passage(SAMPLE, "Điều 7, khoản 2")
    assert "15 ngày" in passage(SAMPLE, "Điều 8, khoản 3") and "Bốn" not in passage(SAMPLE, "Điều 8, khoản 3")


def test_a_locator_that_the_text_does_not_have_is_flagged():
    for locator in (
        "Điều 4",
        "Điều 5, khoản 3",
        "Điều 5, khoản 1, điểm c",
        "Điều 5, khoản 1, điểm a-đ",
        "Điều 7, khoản 1",
        "Điều 9",
        "Điều 6, khoản 4",
        "điểm a khoản 1 Điều 5",
        "Điều 5 khoản 1",
        "Ðiều 5",
        "Điều 7, khoản 2, điểm a",
        "Điều 8, khoản 2",
        "Điều 5, khoản 1, điểm b-a",
        "Điều 5, khoản 2a-1",
    ):
        try:
            passage(SAMPLE, locator)
        except NotFound:
            continue
        raise AssertionError(locator)


def sample_fact(value, unit="", day_count="", kind="duration"):
    return {"value": value, "unit": unit, "day_count": day_count, "kind": kind}


def test_right_facts_pass_and_wrong_ones_do_not():
    one, two = "Điều 5, khoản 1", "Điều 5, khoản 2"
    right = [
        (one, sample_fact("30", "day", "unspecified")),
        (one, sample_fact("3", "day", "working")),
        (one, sample_fact("400000000", "VND", kind="money")),
        (one, sample_fact("1000", "USD", kind="money")),
        (one, sample_fact("15", "year")),
        (two, sample_fact("30", "day", "unspecified")),
        (two, sample_fact("72", "hour")),
        (two, sample_fact("1", "item", kind="count")),
        (two, sample_fact("10", "percent", kind="ratio")),
        ("Điều 6, khoản 2", sample_fact("100000000", "VND", kind="money")),
        ("Điều 6, khoản 2", sample_fact("1", "month")),
        ("Điều 5, khoản 2a", sample_fact("2027-01-01", "calendar-date", kind="date")),
        (one, sample_fact("in writing", kind="form")),
    ]
    wrong = [
        (one, sample_fact("30", "day", "working")),
        (one, sample_fact("3", "day", "unspecified")),
        (one, sample_fact("30", "day", "calendar")),
        (one, sample_fact("400000", "VND", kind="money")),
        (one, sample_fact("4000000000", "VND", kind="money")),
        (one, sample_fact("400000000", "USD", kind="money")),
        (two, sample_fact("3", "day", "working")),
        (one, sample_fact("15", "month")),
        (two, sample_fact("72", "minute")),
        ("Điều 5, khoản 2a", sample_fact("1", "year")),
        ("Điều 5, khoản 2a", sample_fact("2027-02-01", kind="date")),
        (two, sample_fact("in writing", kind="form")),
        (one, sample_fact("sealed by courier", kind="form")),
        ("Điều 6, khoản 2", sample_fact("100", "VND", kind="money")),
    ]
    for locator, fact in right:
        assert fact_error(fact, passage(SAMPLE, locator)) is None, (locator, fact)
    for locator, fact in wrong:
        assert fact_error(fact, passage(SAMPLE, locator)), (locator, fact)


def test_number_words():
    cases = {
        "ba mươi": 30,
        "mười lăm": 15,
        "hai mươi mốt": 21,
        "một trăm": 100,
        "năm trăm triệu": 500_000_000,
        "mười": 10,
        "một trăm linh năm": 105,
        "hai tỷ": 2_000_000_000,
        "một nghìn": 1000,
        "bốn trăm năm mươi triệu": 450_000_000,
        "1.000": 1000,
        "0,5": Decimal("0.5"),
        "08": 8,
        "1.250.000,75": Decimal("1250000.75"),
        "2 tỷ": 2_000_000_000,
    }
    for text, value in cases.items():
        assert number_at(words(nfc(text)), 0)[0] == value, text
    try:
        number_at(words("500.000 (năm trăm triệu) đồng"), 0)
    except ValueError:
        return
    raise AssertionError("a repetition in words that differs was let through")


def test_years_are_no_numbers_and_dates_no_quantities():
    assert stated_vi("Từ ngày 01 tháng 01 năm 2026 đến năm 2027, ngày 01/01/2028") == set()
    assert stated_vi("lưu năm năm") == {(Decimal(5), "year", "")}
    assert stated_vi("hằng năm, mỗi tháng, trong ngày") == set()
    assert stated_vi("bằng 12 tháng lương") == {(Decimal(12), "monthly-wage", "")}


def test_english_quantities():
    text = "within 2 working days, 15 days, 72 hours, 500,000,000 VND, 10 percent a year, from 2027-01-01, 1 extension"
    want = {("2", "day", "working"), ("15", "day", "unspecified"), ("72", "hour", ""), ("500000000", "VND", "")}
    want |= {("10", "percent", ""), ("1", "item", "")}
    assert stated_en(text) == {(Decimal(v), u, k) for v, u, k in want}


def test_money_and_counts_in_english():
    text = "VND 50,000,000 and 5 times the premium, VND 800 billion; extend 1 time"
    want = {("50000000", "VND"), ("800000000000", "VND"), ("5", "item"), ("5", "times"), ("1", "item"), ("1", "times")}
    assert stated_en(text) == {(Decimal(v), u, "") for v, u in want}


def test_dates_of_both_languages():
    assert dates_vi("từ ngày 01 tháng 7 năm 2026, 02/11/2023, ngày 31/3 và số 67/2023") == {
        "2026-07-01",
        "2023-11-02",
        "--03-31",
    }
    assert dates_vi("trong 06 tháng, 15 ngày, 10%/năm") == set()
    assert dates_en("by 31 March, until 2030-12-31") == {"--03-31", "2030-12-31"}
    assert stated_vi("báo cáo năm ngày 31/3") == set()


def test_validity_ends_on_a_closing_day_or_on_an_eve():
    row = {"from": "2026-01-01", "to": "2026-12-31"}
    span = passage(SAMPLE, "Điều 5, khoản 2a")
    assert validity_error(row, "from", "to", span) == []
    assert validity_error(row, "from", "to", "từ 01/01/2026 có hiệu lực đến hết ngày 31 tháng 12 năm 2026") == []
    assert validity_error(row, "from", "to", "từ 01/01/2026, ký ngày 31 tháng 12 năm 2026")
    assert len(validity_error({"from": "2026-01-02", "to": "2026-12-30"}, "from", "to", span)) == 2


def test_forms_outside_the_glossary_or_the_passage_are_flagged():
    assert form_error("in writing", nfc("trả lời bằng văn bản")) is None
    assert "not in the passage" in form_error("in writing", "trả lời miệng")
    assert "does not cover" in form_error("in writing with three seals and notarised", nfc("bằng văn bản"))
    assert "not in the passage" in form_error("prohibited", nfc("bên bán được phép"))


# ----- the worked cases of the faults, by hand


def tenth(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.1"), ROUND_HALF_UP)


def later(day: dt.date, count: int) -> dt.date:
    return day + dt.timedelta(days=count)


def working(day: dt.date, count: int) -> dt.date:
    """So many days from Monday to Friday on; the tables know no holidays."""
    while count:
        day = later(day, 1)
        count -= day.isoweekday() <= 5
    return day


def by_day(step, right: int, wrong: int):
    def work(inputs):
        (day,) = inputs.values()
        return step(dt.date.fromisoformat(day), right), step(dt.date.fromisoformat(day), wrong)

    return work


def ratio(*exposures: str):
    """All exposures over own capital, against the borrower's loans alone over charter capital."""

    def work(inputs):
        x = {k: Decimal(v) for k, v in inputs.items()}
        exposure = sum(x[name] for name in exposures)
        return tenth(100 * exposure / x["own_capital"]), tenth(100 * x["loans"] / x["charter_capital"])

    return work


def short_of(right: int, wrong: int):
    def work(inputs):
        amount = Decimal(inputs["amount"])
        return tuple(limit - amount if amount < limit else Decimal(0) for limit in (right, wrong))

    return work


def advance(percent: int):
    """A share of the limit of liability for one person, against the same share of the loss."""
    return lambda inputs: (Decimal(percent * 150_000_000) / 100, percent * Decimal(inputs["loss"]) / 100)


def refund(inputs):
    x = {k: Decimal(v) for k, v in inputs.items()}
    return x["premium"] - x["agreed_costs"], x["surrender_value"]


def late_days(right: int, wrong: int):
    def work(inputs):
        day = int(inputs["paid_on_day"])
        return Decimal(len(range(right, day))), Decimal(len(range(wrong, day)))

    return work


WORKED = {
    ("banking-vn-fault-charter-capital-ratio", "single_ratio"): ratio("loans", "bonds"),
    ("banking-vn-fault-charter-capital-ratio", "group_ratio"): ratio(
        "loans", "bonds", "related_loans", "related_bonds"
    ),
    ("banking-vn-fault-lax-transfer-reports", "short_of_domestic_limit"): short_of(500_000_000, 1_000_000_000),
    ("banking-vn-fault-lax-transfer-reports", "short_of_cross_border_limit"): short_of(1_000, 10_000),
    ("banking-vn-fault-lax-transfer-reports", "report_by"): by_day(working, 1, 3),
    ("insurance-vn-fault-loss-based-advance", "advance_death_or_graver_injury"): advance(30),
    ("insurance-vn-fault-loss-based-advance", "advance_lesser_injury"): advance(10),
    ("insurance-vn-fault-no-free-look", "refund"): refund,
    ("insurance-vn-fault-thirty-day-claims", "pay_by"): by_day(later, 15, 30),
    ("insurance-vn-fault-thirty-day-claims", "days_with_interest"): late_days(15, 60),
}


def same(written: str, worked) -> bool:
    return written == worked.isoformat() if isinstance(worked, dt.date) else Decimal(written) == worked


@pytest.mark.parametrize("cell", CELLS)
def test_fault_probes_are_worked_out_right(cell):
    values = {(v["fault"], v["parameter"]): v for v in table(cell, "fault_values")}
    seen = set()
    for probe in table(cell, "fault_probes"):
        key = probe["fault"], probe["parameter"]
        seen.add(key)
        assert probe["true_result"] != probe["faulty_result"], probe["id"]
        inputs = dict(pair.split("=") for pair in probe["inputs"].split("; "))
        texts = [re.fullmatch(r'"([^"]*)"', values[key][side]) for side in ("true_expr", "faulty_expr")]
        if all(texts):  # the results are texts: there is nothing to work out
            assert [t[1] for t in texts] == [probe["true_result"], probe["faulty_result"]], probe["id"]
        else:
            assert key in WORKED, f"{probe['id']}: nobody worked this out"
            right, wrong = WORKED[key](inputs)
            assert same(probe["true_result"], right), (probe["id"], right)
            assert same(probe["faulty_result"], wrong), (probe["id"], wrong)
    assert seen == set(values)


def test_the_hand_work_can_fail():
    assert working(dt.date(2026, 11, 27), 1) == dt.date(2026, 11, 30)
    assert later(dt.date(2026, 11, 27), 1) == dt.date(2026, 11, 28)
    assert late_days(15, 60)({"paid_on_day": "10"}) == (0, 0)
    assert not same("15.1", tenth(Decimal("15.04"))) and same("15.1", tenth(Decimal("15.05")))
