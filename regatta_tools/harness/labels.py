"""``regatta label``: pairs of a real run for people to label, blind, and their labels brought back.

A sheet holds what the judge was shown and nothing of what it said: as many pairs that it called positive as negative,
in an order by seed, under names of their own. The key that leads back to the run stands in the run's folder. Labels are
appended to ``RUN/labels/labels.jsonl`` (class ``RunLabel``), each with the hash of the text that was labelled; none is
ever changed or taken out, and where readers differ both stay.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import date as Date
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError
from regatta_tools.files import cannot_write, replace_file
from regatta_tools.harness.calibration import GOLD_STAGES
from regatta_tools.harness.kept import prompts as kept_prompts
from regatta_tools.harness.store import RunStore, VerdictKey
from regatta_tools.tables.spreadsheet import neutral, restored
from regatta_tools.text import sha256_json

FOLDER, LABELS = "labels", "labels.jsonl"
#: Columns of a sheet; a reader fills in the last two.
COLUMNS = ("item", "question", "label", "note")
YES, NO, NONE = frozenset({"yes", "y", "có"}), frozenset({"no", "n", "không"}), frozenset({"", "?", "unsure"})
KINDS = ("ai", "human", "lawyer")
_MARK = re.compile(r"^<(?:scenario|conversation) ([0-9a-f]{8})>$", re.MULTILINE)
#: A cell of a spreadsheet holds no more characters.
MAX_CELL = 32_767


def label_out(
    run: Path | str, out: Path | str, *, stage: str = "design", n: int = 50, seed: int = 1
) -> dict[str, Any]:  # fmt: skip
    """Draw a sheet of ``n`` judged pairs of a stage, half of them judged positive, and write it as CSV or XLSX.

    Returns ``sheet`` (its code), ``out``, ``key`` (the file in the run's folder), ``items`` and ``notes``. The same run
    and words give the same sheet. Where one half has too few pairs, the sheet is smaller and says so. Raises
    :class:`InputError` (U107, U109, U183 nothing to label, U173 another ending).
    """
    store, out = RunStore.read(run), Path(out)
    if stage not in GOLD_STAGES:
        raise InputError(f"no stage {stage!r}", code="U109", mend=f"use {', '.join(GOLD_STAGES)}")
    if n < 2:
        raise InputError(f"a sheet of {n} is not balanced", code="U109", mend="ask for 2 pairs or more")
    if out.suffix.lower() not in (".csv", ".xlsx"):
        raise InputError(
            "the form of a sheet is read off its name", code="U173", place=str(out), mend="end it in .csv or .xlsx"
        )  # fmt: skip
    texts = _texts(store, stage)
    drawn, notes = _drawn(store, stage, texts, n, seed)
    code = sha256_json([store.manifest, stage, n, seed, [_plain_key(k) for k in drawn]])[:8]
    width = len(str(len(drawn)))
    items = [
        {"item": f"{code}-{i:0{width}}", **_plain_key(k), "outcome": store.verdicts[k]["outcome"],
         "material_sha256": text_hash(texts[k])}
        for i, k in enumerate(drawn, 1)
    ]  # fmt: skip
    rows = [[item["item"], texts[k], "", ""] for item, k in zip(items, drawn, strict=True)]
    key = store.folder / FOLDER / f"{code}.key.json"
    held = {"sheet": code, "stage": stage, "seed": seed, "made_with": store.manifest["made_with"], "items": items}
    content = _csv(rows) if out.suffix.lower() == ".csv" else _xlsx(rows)
    try:
        key.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(key.parent, error) from error
    replace_file(key, (json.dumps(held, ensure_ascii=False, indent=1) + "\n").encode())
    replace_file(out, content)
    return {"sheet": code, "out": str(out), "key": str(key), "items": len(items), "notes": notes}


def text_hash(text: str) -> str:
    """SHA-256 of a text as a spreadsheet brings it back: line ends and composed letters made alike."""
    return sha256_json(unicodedata.normalize("NFC", re.sub(r"\r\n?", "\n", text)).strip())


def _plain_key(key: VerdictKey) -> dict[str, Any]:
    stage, target, scenario, draw, arm = key
    return {"stage": stage, "target": target, "scenario": scenario, "draw": draw} | ({"arm": arm} if arm else {})


def _texts(store: RunStore, stage: str) -> dict[VerdictKey, str]:
    """What the judge was shown of each pair with a verdict: its prompt without the codes of the marks."""
    sent = {p["prompt_hash"]: p["messages"] for p in kept_prompts(store.folder)}
    out = {}
    for key, verdict in store.verdicts.items():
        call = store.calls.get(verdict.get("call") or "")
        if key[0] != stage or verdict["outcome"] not in ("positive", "negative") or call is None:
            continue
        if call["prompt_hash"] in sent:
            text = sent[call["prompt_hash"]][-1]["content"]
            if mark := _MARK.search(text):
                # No text inside holds the code (prompts.fenced), so nothing else is taken away.
                text = text.replace(f" {mark[1]}", "")
            out[key] = text
    return out


def _drawn(
    store: RunStore, stage: str, texts: dict[VerdictKey, str], n: int, seed: int
) -> tuple[list[VerdictKey], list[str]]:
    """Pairs in an order by seed, as many positive as negative, and what is to be said of them."""
    halves = {
        outcome: sorted(k for k in texts if store.verdicts[k]["outcome"] == outcome)
        for outcome in ("positive", "negative")
    }
    for outcome, keys in halves.items():
        if not keys:
            raise InputError(
                f"the run holds no {outcome} verdict of the stage {stage} whose text was kept", code="U183",
                place=str(store.folder),
                mend="a balanced sheet needs both kinds, from a run that a model judged (not the similarity baseline)",
            )  # fmt: skip
    rng = random.Random(f"{seed}|{stage}")
    size = min(n // 2, *(len(keys) for keys in halves.values()))
    drawn = [k for keys in halves.values() for k in rng.sample(keys, size)]
    rng.shuffle(drawn)
    notes = []
    if 2 * size < n:
        counts = ", ".join(f"{len(keys)} {outcome}" for outcome, keys in halves.items())
        notes.append(f"{2 * size} pairs instead of {n}: the run holds {counts}")
    if long := sum(len(texts[k]) > MAX_CELL for k in drawn):
        notes.append(f"{long} text(s) are longer than a spreadsheet's cell may be: use .csv and a text editor")
    return drawn, notes


def _csv(rows: list[list[str]]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([neutral(cell) for cell in row] for row in rows)
    # The mark makes spreadsheet programs read Vietnamese as UTF-8.
    return b"\xef\xbb\xbf" + stream.getvalue().encode()


def _xlsx(rows: list[list[str]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font
    from openpyxl.worksheet.datavalidation import DataValidation

    from regatta_tools.sheets.layout import escaped

    if any(len(cell) > MAX_CELL for row in rows for cell in row):
        raise InputError("a text is longer than a spreadsheet's cell may be", code="U183", mend="write a .csv")
    book = Workbook()
    sheet = book.active
    sheet.title = "labels"
    sheet.append(list(COLUMNS))
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    for number, row in enumerate(rows, 2):
        for column, text in enumerate(row, 1):
            cell = sheet.cell(number, column)
            if text:
                # As text, so that nothing in it is run.
                cell.value, cell.data_type = escaped(text), "s"
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    for letter, width in zip("ABCD", (14, 100, 10, 40), strict=True):
        sheet.column_dimensions[letter].width = width
    answers = DataValidation(type="list", formula1='"yes,no,unsure"', allow_blank=True)
    sheet.add_data_validation(answers)
    answers.add(f"C2:C{len(rows) + 1}")
    sheet.freeze_panes = "A2"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


# -- back in -------------------------------------------------------------------------------------


def label_in(
    sheet: Path | str, run: Path | str, *, by: str, kind: str = "human", date: str | None = None
) -> dict[str, Any]:  # fmt: skip
    """Take the labels of a sheet into the run's folder, and compare them with the judge.

    ``by`` is who labelled, ``kind`` what kind of reader that is (ai, human, lawyer), ``date`` the day (ISO, default
    today). Returns ``added``, ``held`` (there already), ``open`` (no label), ``sheet`` and ``agreement``
    (:func:`agreement_of`; ``None`` where nothing is labelled). All or nothing: raises :class:`InputError` (U184 the
    sheet is not of this run or was changed, U185 this reader gave another label before, U108 the run has changed).
    """
    store, path = RunStore.read(run), Path(sheet)
    if not by.strip():
        raise InputError("nobody is named as the reader", code="U109", mend="say who labelled with --by")
    if kind not in KINDS:
        raise InputError(f"no kind of reader {kind!r}", code="U109", mend=f"use {', '.join(KINDS)}")
    try:
        day = Date.fromisoformat(date) if date else Date.today()
    except ValueError as error:
        raise InputError(f"{date!r} is no date", code="U109", mend="write it as 2026-12-31") from error
    rows = _rows(path)
    key = _key(store, path, rows)
    texts = _texts(store, key["stage"])
    before = {(_key_of(v), v["labeller"]): v for v in labels(store.folder)}
    new, held, unsaid = [], 0, 0
    items = {item["item"]: item for item in key["items"]}
    seen: set[str] = set()
    for line, (name, text, label, note) in rows:
        item = items.get(name)
        if item is None or name in seen:
            what = "twice in the sheet" if name in seen else f"no item of the sheet {key['sheet']}"
            raise InputError(f"{name!r} is {what}", code="U184", place=f"{path}:{line}", mend="keep the rows as drawn")
        seen.add(name)
        pair = _key_of(item)
        if pair not in texts or text_hash(texts[pair]) != item["material_sha256"] or (
            store.verdicts[pair]["outcome"] != item["outcome"]
        ):  # fmt: skip
            raise InputError(
                f"the run has changed since the sheet was drawn ({name})", code="U108", place=str(store.folder),
                mend="draw a new sheet",
            )  # fmt: skip
        if text_hash(text) != item["material_sha256"]:
            raise InputError(
                f"the text of {name} was changed in the sheet", code="U184", place=f"{path}:{line}",
                mend="labels are of the text that was drawn: copy them into a fresh sheet",
            )  # fmt: skip
        said = _said(label, path, line)
        if said is None:
            unsaid += 1
            continue
        old = before.get((pair, by))
        if old is not None and old["label"] == said:
            held += 1
            continue
        if old is not None:
            raise InputError(
                f"{by} labelled {name} {old['label']!r} on {old['date']}, and {said!r} now", code="U185",
                place=f"{path}:{line}", mend="labels never change; give a second reading under another name (--by)",
            )  # fmt: skip
        row = _plain_key(pair) | {
            "material_sha256": item["material_sha256"], "label": said, "labeller": by, "labeller_kind": kind,
            "date": day.isoformat(),
        }  # fmt: skip
        new.append(row | ({"note": note.strip()} if note.strip() else {}))
    _append(store.folder / FOLDER / LABELS, new)
    found = labels(store.folder)
    stage = key["stage"]
    agreement = agreement_of(store, stage) if any(v["stage"] == stage for v in found) else None
    return {"sheet": key["sheet"], "stage": stage, "added": len(new), "held": held, "open": unsaid,
            "agreement": agreement}  # fmt: skip


def _key_of(row: dict[str, Any]) -> VerdictKey:
    return row["stage"], row["target"], row["scenario"], row["draw"], row.get("arm") or ""


def _said(label: str, path: Path, line: int) -> str | None:
    word = unicodedata.normalize("NFC", label).strip().rstrip(".").casefold()
    if word in NONE:
        return None
    if word in YES or word in NO:
        return "yes" if word in YES else "no"
    raise InputError(
        f"{label!r} is no label", code="U184", place=f"{path}:{line}", mend="write yes, no, or nothing where unsure"
    )  # fmt: skip


def _rows(path: Path) -> list[tuple[int, tuple[str, str, str, str]]]:
    """Line and cells (item, question, label, note) of a sheet, whatever the order of its columns."""
    if path.suffix.lower() == ".xlsx":
        from regatta_tools.sheets.layout import unescaped
        from regatta_tools.sheets.opening import open_workbook

        book, _ = open_workbook(path)
        table = [
            [unescaped(str(c)) if isinstance(c, str) else "" if c is None else str(c) for c in row]
            for row in book.worksheets[0].iter_rows(values_only=True)
        ]
        lines = list(range(1, len(table) + 1))
    else:
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", code="U101", place=str(path)) from error
        except UnicodeDecodeError as error:
            raise InputError(
                "the sheet is not UTF-8", code="U184", place=str(path), mend="save it as CSV UTF-8"
            ) from error  # fmt: skip
        sign = ";" if text.partition("\n")[0].count(";") >= len(COLUMNS) - 1 else ","
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
        table, lines = [], []
        try:
            start = 1
            for row in reader:
                table.append([restored(cell) for cell in row])
                lines.append(start)
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"the sheet cannot be read: {error}", code="U184", place=str(path)) from error
    head = [cell.strip().casefold() for cell in table[0]] if table else []
    if missing := [name for name in COLUMNS[:3] if name not in head]:
        raise InputError(
            f"the sheet has no column {missing[0]!r}", code="U184", place=str(path),
            mend="name a sheet that `regatta label out` wrote",
        )  # fmt: skip
    at = [head.index(name) if name in head else -1 for name in COLUMNS]
    out = []
    for line, row in zip(lines[1:], table[1:], strict=True):
        if any(cell.strip() for cell in row):
            item, text, label, note = (row[i] if 0 <= i < len(row) else "" for i in at)
            out.append((line, (item.strip(), text, label, note)))
    return out


def _key(store: RunStore, path: Path, rows: Sequence[tuple[int, tuple[str, ...]]]) -> dict[str, Any]:
    code = rows[0][1][0].partition("-")[0] if rows else ""
    key = store.folder / FOLDER / f"{code}.key.json"
    try:
        value = json.loads(key.read_text(encoding="utf-8")) if re.fullmatch("[0-9a-f]{8}", code) else None
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict) or not {"sheet", "stage", "items", "made_with"} <= set(value):
        raise InputError(
            "this sheet was not drawn from this run, or its key is gone" if rows else "the sheet is empty",
            code="U184", place=str(path), mend=f"name the run that it was drawn from; keys stand in RUN/{FOLDER}",
        )  # fmt: skip
    if value["made_with"] != store.manifest["made_with"]:
        raise InputError(
            "the run has changed since the sheet was drawn", code="U108", place=str(store.folder),
            mend="draw a new sheet",
        )  # fmt: skip
    return value


def _append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Append labels, all in one write that reaches the disk."""
    import os

    if not rows:
        return
    held = path.read_bytes() if path.exists() else b""
    text = "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in rows).encode()
    if held and not held.endswith(b"\n"):
        # Half a line after a kill: it is no label, and stays where it is.
        text = b"\n" + text
    try:
        with path.open("ab") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


def labels(run: Path | str) -> list[dict[str, Any]]:
    """The labels of a run in the order in which they were given; a row of another form counts for nothing."""
    from regatta_tools.tables.shape import validator

    check, out = validator("RunLabel"), []
    try:
        lines = (Path(run) / FOLDER / LABELS).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", code="U101", place=str(run)) from error
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if check.is_valid(value):
            out.append(value)
    return out


def agreement_of(run: RunStore | Path | str, stage: str, *, seed: int = 1, resamples: int = 10_000) -> dict[str, Any]:
    """The judge of a run and those who labelled it, over the labelled pairs of a stage, as the study compares them.

    Agreement, kappa and the others of :func:`regatta_tools.measures.agreement.agree`, resampled within the two verdicts
    of the judge (protocol, section 6), with the direction of disagreements. A label of a text that has changed since,
    or without a verdict of the judge, is left out and told.
    """
    import numpy as np

    from regatta_tools.measures.agreement import of_ratings
    from regatta_tools.measures.ratings import Group, Ratings

    store = run if isinstance(run, RunStore) else RunStore.read(run)
    texts = _texts(store, stage)
    given = [v for v in labels(store.folder) if v["stage"] == stage]
    fits = [v for v in given if _key_of(v) in texts and text_hash(texts[_key_of(v)]) == v["material_sha256"]]
    if not fits:
        raise InputError(
            f"no label of the stage {stage} fits this run", code="U183", place=str(store.folder),
            mend="regatta label out RUN, and regatta label in SHEET --run RUN",
        )  # fmt: skip
    kinds = dict.fromkeys((v["labeller"], v["labeller_kind"]) for v in fits)
    keys = list(dict.fromkeys(_key_of(v) for v in fits))
    names = ["judge", *(f"{who} ({kind})" for who, kind in kinds)]
    codes = np.full((len(keys), len(names)), -1, np.int64)
    row = {key: i for i, key in enumerate(keys)}
    for key, i in row.items():
        codes[i, 0] = int(store.verdicts[key]["outcome"] == "positive")
    for value in fits:
        column = 1 + list(kinds).index((value["labeller"], value["labeller_kind"]))
        codes[row[_key_of(value)], column] = int(value["label"] == "yes")
    missing = [Counter({"no rating": int((codes[:, i] < 0).sum())}) for i in range(len(names))]
    strata = ["positive" if c else "negative" for c in codes[:, 0]]
    notes = [] if any(kind in ("human", "lawyer") for _, kind in kinds) else ["No person has labelled these pairs."]
    if len(fits) < len(given):
        notes.append(f"{len(given) - len(fits)} label(s) are of texts that have changed since, and are left out.")
    group = Group({"stage": stage}, ["|".join(map(str, k[1:])) for k in keys], names, ["no", "yes"], codes,
                  [Counter({k: n for k, n in m.items() if n}) for m in missing], strata)  # fmt: skip
    return of_ratings(Ratings([group], True, str(store.folder), notes), "nominal", seed, resamples)
