"""Sheets for people: blind, balanced, brought back, and compared with the judge as the study does."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil

import pytest
from click.testing import CliRunner
from scripted_runs import faults, play, requirements, scenario, write_script, write_suite

from regatta_tools.cli.main import cli
from regatta_tools.errors import InputError
from regatta_tools.harness import labels as lab
from regatta_tools.harness.store import RunStore
from regatta_tools.tables.shape import validator


@pytest.fixture(autouse=True)
def no_disk_waits(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run in which 5 of 10 scenarios are positive for every fault: 25 pairs positive, 25 negative."""
    folder = tmp_path_factory.mktemp("labels")
    suite = write_suite(folder, [
        scenario(f"telltale{i}", f"=Frage {i}? </scenario> Bồi thường {i}", claims={"regulation": "SECRET CLAIM"})
        for i in range(10)
    ])  # fmt: skip
    yes = {"when": {"stage": "design", "scenario": [f"telltale{i}" for i in range(5)]}, "text": '{"exposed": true}'}
    play(suite, write_script(folder, yes), folder / "run", scan="exhaustive", answers="per-scenario")
    return folder / "run"


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


def fill(path, answers):
    """Write answers (item -> label) into a CSV sheet."""
    held = rows(path)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(held[0]))
        writer.writeheader()
        writer.writerows(row | {"label": answers.get(row["item"], row["label"])} for row in held)


def key_of(run):
    return json.loads(next((run / "labels").glob("*.key.json")).read_text(encoding="utf-8"))


def test_a_sheet_is_blind_balanced_and_the_same_for_the_same_words(run, tmp_path):
    sheet = lab.label_out(run, tmp_path / "s.csv", n=20, seed=3)
    assert (sheet["items"], sheet["notes"]) == (20, [])
    raw = (tmp_path / "s.csv").read_bytes()
    text = raw.decode("utf-8-sig")
    for secret in ("telltale", "SECRET CLAIM", "positive", "negative", "exposed\":", *faults(), *requirements()):
        assert secret not in text
    assert "Bồi thường" in text and text.count("</scenario> Bồi thường") == 20
    said = [item["outcome"] for item in key_of(run)["items"]]
    assert said.count("positive") == said.count("negative") == 10
    # An order that tells would have all of one kind first.
    assert said not in (sorted(said), sorted(said, reverse=True))
    assert [r["item"] for r in rows(tmp_path / "s.csv")] == [i["item"] for i in key_of(run)["items"]]
    lab.label_out(run, tmp_path / "again.csv", n=20, seed=3)
    lab.label_out(run, tmp_path / "other.csv", n=20, seed=4)
    assert (tmp_path / "again.csv").read_bytes() == raw != (tmp_path / "other.csv").read_bytes()


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_nobody_has_labelled_and_the_text_comes_back_as_it_went_out(run, tmp_path, ending):
    lab.label_out(run, tmp_path / f"s.{ending}", n=50)
    found = lab.label_in(tmp_path / f"s.{ending}", run, by="A reader")
    assert (found["added"], found["open"], found["agreement"]) == (0, 50, None)


def test_the_check_of_the_study(run, tmp_path):
    """43 of 50 agree, all seven disagreements judge-positive: .86, kappa .72, [.52, .88] (protocol, section 6)."""
    lab.label_out(run, tmp_path / "s.csv", n=50)
    items = key_of(run)["items"]
    positive = [i["item"] for i in items if i["outcome"] == "positive"]
    answers = {i["item"]: "no" for i in items} | dict.fromkeys(positive[7:], "Yes")
    fill(tmp_path / "s.csv", answers)
    found = lab.label_in(tmp_path / "s.csv", run, by="An expert", kind="human", date="2026-12-01")
    assert (found["added"], found["held"], found["open"]) == (50, 0, 0)
    group = found["agreement"]["groups"][0]
    assert group["figures"]["agreement"]["value"] == pytest.approx(0.86)
    kappa = group["figures"]["kappa"]
    assert (round(kappa["value"], 2), round(kappa["low"], 2), round(kappa["high"], 2)) == (0.72, 0.52, 0.88)
    assert group["pairs"][0]["direction"]["in_words"] == "judge says 'yes' more often: 7 of 7 disagreements"
    stored = lab.labels(run)
    assert len(stored) == 50 and all(validator("RunLabel").is_valid(v) for v in stored)
    assert {(v["labeller"], v["labeller_kind"], v["date"]) for v in stored} == {("An expert", "human", "2026-12-01")}


def test_labels_are_only_added_and_disagreement_stays(run, tmp_path):
    lab.label_out(run, tmp_path / "s.csv", n=10)
    items = [i["item"] for i in key_of(run)["items"]]
    fill(tmp_path / "s.csv", {items[0]: "yes", items[1]: "không", items[2]: "?"})
    assert lab.label_in(tmp_path / "s.csv", run, by="A")["added"] == 2
    before = (run / "labels" / "labels.jsonl").read_bytes()
    again = lab.label_in(tmp_path / "s.csv", run, by="A")
    assert (again["added"], again["held"], again["open"]) == (0, 2, 8)
    fill(tmp_path / "s.csv", {items[0]: "no", items[3]: "yes"})
    with pytest.raises(InputError) as error:
        lab.label_in(tmp_path / "s.csv", run, by="A")
    assert error.value.code == "U185" and (run / "labels" / "labels.jsonl").read_bytes() == before
    found = lab.label_in(tmp_path / "s.csv", run, by="B", kind="ai")
    after = (run / "labels" / "labels.jsonl").read_bytes()
    assert found["added"] == 3 and after.startswith(before)
    raters = [r["name"] for r in found["agreement"]["groups"][0]["raters"]]
    assert raters == ["judge", "A (human)", "B (ai)"]
    assert {v["label"] for v in lab.labels(run) if v["scenario"] == lab.labels(run)[0]["scenario"]} >= {"yes", "no"}


def test_labels_by_a_model_are_never_called_a_persons(run, tmp_path):
    lab.label_out(run, tmp_path / "s.csv", n=4)
    fill(tmp_path / "s.csv", {i["item"]: "yes" for i in key_of(run)["items"]})
    found = lab.label_in(tmp_path / "s.csv", run, by="M", kind="ai")
    assert "No person has labelled these pairs." in found["agreement"]["notes"]


def test_half_a_line_after_a_kill_is_no_label(run, tmp_path):
    lab.label_out(run, tmp_path / "s.csv", n=4)
    items = [i["item"] for i in key_of(run)["items"]]
    fill(tmp_path / "s.csv", {items[0]: "yes"})
    lab.label_in(tmp_path / "s.csv", run, by="A")
    path = run / "labels" / "labels.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    fill(tmp_path / "s.csv", {items[1]: "no"})
    assert lab.label_in(tmp_path / "s.csv", run, by="A")["added"] == 1
    assert len(lab.labels(run)) == 2


def _run_changed(run, sheet):
    """The reply of a judge is another than when the sheet was drawn."""
    journal = run / "journal.jsonl"
    item = key_of(run)["items"][0]
    verdict = RunStore.read(run).verdicts[lab._key_of(item)]
    other = "negative" if verdict["outcome"] == "positive" else "positive"
    line = json.dumps(verdict | {"outcome": other}, ensure_ascii=False)
    journal.write_text(journal.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")


def _text_changed(run, sheet):
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("Bồi thường", "Boi thuong", 1), encoding="utf-8")


def _twice(run, sheet):
    held = sheet.read_text(encoding="utf-8")
    sheet.write_text(held + held.partition("\n")[2], encoding="utf-8")


def _no_key(run, sheet):
    next((run / "labels").glob("*.key.json")).unlink()


def _word(run, sheet):
    fill(sheet, {key_of(run)["items"][0]["item"]: "INCORRECT"})


def _latin(run, sheet):
    sheet.write_bytes("item,question,label,note\né".encode("latin-1"))


def _columns(run, sheet):
    sheet.write_text("a,b\n1,2\n", encoding="utf-8")


def _empty(run, sheet):
    sheet.write_text("item,question,label,note\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [(_run_changed, "U108"), (_text_changed, "U184"), (_twice, "U184"), (_no_key, "U184"), (_word, "U184"),
     (_latin, "U184"), (_columns, "U184"), (_empty, "U184"), (lambda run, sheet: sheet.unlink(), "U101")],
)  # fmt: skip
def test_what_does_not_fit_is_refused_whole(run, tmp_path, spoil, code):
    sheet = tmp_path / "s.csv"
    lab.label_out(run, sheet, n=4)
    fill(sheet, {i["item"]: "yes" for i in key_of(run)["items"]})
    spoil(run, sheet)
    with pytest.raises(InputError) as error:
        lab.label_in(sheet, run, by="A")
    assert error.value.code == code and not (run / "labels" / "labels.jsonl").exists()


def test_too_few_pairs_are_told_and_none_is_refused(run, tmp_path):
    made = lab.label_out(run, tmp_path / "s.csv", n=80)
    assert made["items"] == 50 and "25 positive, 25 negative" in made["notes"][0]
    with pytest.raises(InputError) as error:
        lab.label_out(run, tmp_path / "s.csv", stage="rc")
    assert error.value.code == "U183" and "no positive" in error.value.message
    with pytest.raises(InputError):
        lab.label_out(run, tmp_path / "s.txt")


def test_a_semicolon_sheet_of_a_spreadsheet_program_is_read(run, tmp_path):
    sheet = tmp_path / "s.csv"
    lab.label_out(run, sheet, n=4)
    held = rows(sheet)
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(held[0]), delimiter=";", lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(row | {"label": "yes"} for row in reversed(held))
    assert lab.label_in(sheet, run, by="A")["added"] == 4


def test_the_commands(run, tmp_path):
    sheet = str(tmp_path / "s.xlsx")
    told = CliRunner().invoke(cli, ["label", "out", str(run), "-n", "6", "-o", sheet])
    assert told.exit_code == 0 and "6 pairs" in told.output and "do not hand out" in told.output
    from openpyxl import load_workbook

    book = load_workbook(sheet)
    for row in range(2, 8):
        book.active.cell(row, 3).value = "yes"
    book.save(sheet)
    told = CliRunner().invoke(cli, ["label", "in", sheet, "--run", str(run), "--by", "Ngọc"])
    assert told.exit_code == 0, told.output
    assert "6 labels added" in told.output and "Ngọc (human)" in told.output
