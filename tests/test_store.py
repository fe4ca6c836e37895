"""The run store: nothing lost, nothing counted twice, nothing guessed, whatever happens to the disk (A21)."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scripted_runs import (
    CLI,
    ROOT,
    events,
    faults,
    play,
    requirements,
    verdicts,
    words,
    write_script,
    write_suite,
)

import regatta_tools
from regatta_tools import prompts
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import replace_file
from regatta_tools.harness.store import RunStore, line_of
from regatta_tools.llm import client


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run with positive, negative and missing verdicts: suite, script, store."""
    folder = tmp_path_factory.mktemp("made")
    script = write_script(
        folder,
        {"when": {"stage": "rc", "target": requirements()[0]}, "text": '{"covered": true}'},
        {"when": {"stage": "rc", "target": requirements()[1]}, "text": "maybe"},
        {"when": {"stage": "design", "target": faults()[0]}, "text": '{"exposed": true}'},
    )
    suite = write_suite(folder, 2)
    return suite, script, play(suite, script, folder / "run")


def copy_of(store, folder, journal: bytes | None = None):
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes((store.folder / "run.json").read_bytes())
    (folder / "journal.jsonl").write_bytes(
        (store.folder / "journal.jsonl").read_bytes() if journal is None else journal
    )
    return folder


def journal_of(store):
    return (store.folder / "journal.jsonl").read_bytes()


def results(folder):
    """The evidence without what may differ after a break: notes, and calls counted as resent."""
    evidence = regatta_tools.score(folder)
    evidence.pop("notes")
    evidence["cost"].pop("resent")
    return evidence


# -- half a last line ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["start", "call", "verdict"])
def test_half_a_last_line(made, tmp_path, kind):
    suite, script, unbroken = made
    lines = journal_of(unbroken).splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if json.loads(line)["e"] == kind)
    before, last = b"".join(lines[:at]), lines[at]
    assert last.endswith(b"\n") and len(last) > 20
    folder = copy_of(unbroken, tmp_path / "run")
    # Around both ends, where lines and braces break, at every byte; between them at every fifth.
    for cut in (c for c in range(1, len(last)) if c % 5 == 0 or min(c, len(last) - c) < 8):
        (folder / "journal.jsonl").write_bytes(before + last[:cut])
        (folder / "journal.damaged").unlink(missing_ok=True)
        # Reading alone reports the fragment and changes nothing.
        seen = RunStore.read(folder)
        assert len(seen.notes) == 1 and "half a line" in seen.notes[0]
        assert journal_of(seen) == before + last[:cut]
        with mock.patch.object(os, "fsync"):
            again = play(suite, script, folder)
        assert (folder / "journal.damaged").read_bytes() == last[:cut] + b"\n"
        assert verdicts(again) == verdicts(unbroken)
        assert any("half a line" in note for note in again.notes)
        # What follows is appended to whole lines, never behind the fragment.
        raw = journal_of(again)
        assert raw.startswith(before) and raw.endswith(b"\n") and all(map(json.loads, raw.splitlines()))
        calls = [e["key"] for e in events(folder) if e["e"] == "call"]
        assert len(calls) == len(set(calls))
    assert results(folder) == results(unbroken.folder)
    assert RunStore.read(folder).notes == []


def test_any_beginning_of_the_journal_leads_to_the_same_end(made, tmp_path):
    suite, script, unbroken = made
    raw = journal_of(unbroken)
    moments = random.Random(21)
    for number in range(25):
        folder = copy_of(unbroken, tmp_path / str(number), raw[: moments.randrange(len(raw) + 1)])
        with mock.patch.object(os, "fsync"):
            again = play(suite, script, folder)
        assert verdicts(again) == verdicts(unbroken) and results(folder) == results(unbroken.folder)
        assert again.resent <= 1


# -- rows that are no events, stale rows, rows twice ---------------------------------------------

_ROWS = [
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"true",
    b"{}",
    b'{"e":null}',
    b'{"e":"note"}',
    b'{"e":["call"]}',
    b'{"e":"start"}',
    b'{"e":"start","key":7}',
    b'{"e":"call"}',
    b'{"e":"call","key":"k","stage":"rc","model":"m","prompt_hash":"x","outcome":"ok"}',
    b'{"e":"verdict"}',
    b'{"e":"verdict","stage":"rc","target":"%t","scenario":"s1","draw":1,"judge":"j","outcome":"perhaps"}',
    b'{"e":"verdict","stage":"rc","target":"%t","scenario":"s1","draw":1,"judge":"j","outcome":"rated","value":"5"}',
    b'{"e":"verdict","stage":"rc","target":"%t","scenario":"s1","draw":1e400,"judge":"j","outcome":"positive"}',
    b'{"e":"verdict","stage":"rc","target":["%t"],"scenario":"s1","draw":1,"judge":"j","outcome":"positive"}',
    b'{"e":"verdict","stage":"iss","scenario":"s1","draw":1,"judge":"j","outcome":"rated","value":"six"}',
    b'{"e":"verdict","stage":"iss","scenario":"s1","draw":1,"judge":"j","outcome":"rated"}',
    b'{"e":"verdict","stage":"ac","scenario":"s1","draw":1,"judge":"j","outcome":"rated","value":"bribery"}',
    b'{"e":"verdict","stage":"ac","scenario":"s1","draw":1,"judge":"j","outcome":"negative"}',
    b'{"e":"verdict","stage":"agent","scenario":"s1","draw":1,"judge":"j","outcome":"negative"}',
    b"",
    b"\xff\xfe",
    b"{" * 9,
    b"[" * 30000,
    b'{"case":"S4","verd',
    b"\x00\x00\x00",
    b"NaN",
    b"1" * 5000,
]


@pytest.mark.parametrize("row", _ROWS, ids=range(len(_ROWS)))
def test_a_row_that_is_no_event_counts_for_nothing_and_is_told(made, tmp_path, row):
    suite, script, unbroken = made
    lines = journal_of(unbroken).splitlines(keepends=True)
    row = row.replace(b"%t", requirements()[2].encode())
    folder = copy_of(unbroken, tmp_path / "run", b"".join([*lines[:7], row + b"\n", *lines[7:]]))
    store = RunStore.read(folder)
    assert store.notes == ["journal line 8 is no event and is left out"]
    assert store.verdicts == unbroken.verdicts and store.calls == unbroken.calls
    evidence = regatta_tools.score(folder)
    assert "journal line 8 is no event and is left out" in evidence["notes"]
    assert results(folder) == results(unbroken.folder)
    before = journal_of(store)
    assert verdicts(play(suite, script, folder)) == verdicts(unbroken)
    assert journal_of(store) == before, "nothing is asked again, and no row is thrown away"


@settings(max_examples=60, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda v: (
            st.lists(v, max_size=3)
            | st.dictionaries(st.sampled_from(["e", "key", "stage", "outcome", "x"]), v, max_size=4)
        ),
        max_leaves=6,
    ),
    at=st.integers(0, 30),
)
@example({"e": "start", "key": "unknown"}, 0)
@example({"e": "stop", "key": "unknown"}, 3)
def test_any_json_in_the_journal_changes_no_result(made, tmp_path_factory, value, at):
    _, _, unbroken = made
    lines = journal_of(unbroken).splitlines(keepends=True)
    folder = tmp_path_factory.mktemp("any") / "run"
    copy_of(unbroken, folder, b"".join([*lines[:at], json.dumps(value).encode() + b"\n", *lines[at:]]))
    assert results(folder) == results(unbroken.folder)


def test_rows_that_stand_twice_count_once_and_the_last_wins(made, tmp_path):
    _, _, unbroken = made
    lines = journal_of(unbroken).splitlines(keepends=True)
    doubled = copy_of(unbroken, tmp_path / "doubled", b"".join(line * 2 for line in lines if b'"start"' not in line))
    assert results(doubled) == results(unbroken.folder)
    verdict = next(e for e in events(unbroken.folder) if e["e"] == "verdict" and e["outcome"] == "negative")
    newer = line_of(verdict | {"outcome": "positive"})
    folder = copy_of(unbroken, tmp_path / "newer", journal_of(unbroken) + newer)
    assert (
        RunStore.read(folder).verdict(verdict["stage"], verdict["target"], verdict["scenario"])["outcome"] == "positive"
    )
    older = copy_of(unbroken, tmp_path / "older", newer + journal_of(unbroken))
    assert results(older) == results(unbroken.folder)


def test_a_verdict_that_the_run_does_not_ask_for_is_left_out_with_a_note(made, tmp_path):
    _, _, unbroken = made
    verdict = next(e for e in events(unbroken.folder) if e["e"] == "verdict" and e["stage"] == "rc")
    stale = [{"scenario": "gone"}, {"target": "insurance-us-r99"}, {"draw": 2}, {"stage": "design"}]
    rows = b"".join(line_of(verdict | {"outcome": "positive"} | change) for change in stale)
    folder = copy_of(unbroken, tmp_path / "run", journal_of(unbroken) + rows)
    assert results(folder) == results(unbroken.folder)
    assert "4 verdict(s) that this run does not ask for are left out" in regatta_tools.score(folder)["notes"]


def test_a_call_whose_prompt_is_another_one_is_not_taken_from_the_journal(made, tmp_path):
    """A middle row that was lost: the agent is asked again, and the old judgement of the old answer is not reused."""
    suite, script, unbroken = made
    key = next(k for k in unbroken.calls if k.startswith("agent|"))
    judged = key.replace("agent", "execution", 1).rpartition("|")[0]
    rows = [e for e in events(unbroken.folder) if e.get("key") != key and e.get("call") != judged]
    old = next(e for e in rows if e["e"] == "call" and e["key"] == judged)
    old["prompt_hash"] = "0" * 64
    folder = copy_of(unbroken, tmp_path / "run", b"".join(map(line_of, rows)))
    again = play(suite, script, folder)
    assert verdicts(again) == verdicts(unbroken)
    assert again.calls[judged]["prompt_hash"] == unbroken.calls[judged]["prompt_hash"]


# -- what a line holds ---------------------------------------------------------------------------


@given(st.text(st.characters() | st.characters(categories=["Cs"])))
@example("\ud800 and \udfff")
@example('line\nfeed \u2028 \u0000 \\ " NaN')
def test_every_text_makes_one_line_and_comes_back(text):
    line = line_of({"e": "call", "text": text})
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line.decode("utf-8")) == {"e": "call", "text": text}


def test_a_line_is_strict_json():
    with pytest.raises(ValueError):
        line_of({"e": "call", "cost_usd": float("nan")})


def test_resent_counts_what_was_in_flight_and_nothing_else():
    def resent(*kinds):
        store = RunStore(ROOT)
        for kind in kinds:
            event = {"start": {"e": "start", "key": "k"}, "stop": {"e": "stop", "key": "k"}}.get(kind)
            store._take(event or {"e": "call", "key": "k", "outcome": kind})
        return store.resent, sorted(store.calls)

    assert resent("start", "ok") == (0, ["k"])
    assert resent("start") == (0, [])
    assert resent("start", "start", "ok") == (1, ["k"])
    assert resent("start", "start", "start", "ok") == (2, ["k"])
    # A provider that could not be asked had nothing in flight.
    assert resent("start", "stop", "start", "ok") == (0, ["k"])
    assert resent("start", "failed", "stop") == (0, [])
    assert resent("start", "failed", "stop", "start", "ok") == (0, ["k"])
    assert resent("start", "ok", "stop") == (0, ["k"])


# -- run.json ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["fdopen", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_the_manifest_is_written_whole_or_not_at_all(made, tmp_path, monkeypatch, what, number):
    suite, script, _ = made
    real = {name: getattr(os, name) for name in ("fdopen", "fsync", "replace")}

    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, what, fail)
    with pytest.raises(EnvironmentProblem) as caught:
        play(suite, script, tmp_path / "run")
    assert caught.value.exit_code == 3
    assert caught.value.code == ("E305" if number == errno.ENOSPC else "E304")
    assert sorted(p.name for p in (tmp_path / "run").iterdir() if p.name != ".lock") == []
    monkeypatch.undo()
    assert all(getattr(os, name) is function for name, function in real.items())
    assert play(suite, script, tmp_path / "run").verdicts


def test_an_atomic_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "evidence.json"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "replace", mock.Mock(side_effect=OSError(errno.ENOSPC, "full")))
    with pytest.raises(EnvironmentProblem):
        replace_file(path, b"new")
    assert path.read_text(encoding="utf-8") == "old" and [p.name for p in tmp_path.iterdir()] == ["evidence.json"]


@pytest.mark.parametrize("where", [".", "/", "..", "missing/evidence.json"])
def test_a_place_that_takes_no_file_is_an_environment_problem(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        replace_file(where, b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '"x"', "{", "[" * 30000, "\x00", '{"cell": "insurance-us"}'])
def test_a_run_json_of_another_form_is_refused(made, tmp_path, text):
    suite, script, unbroken = made
    folder = copy_of(unbroken, tmp_path / "run")
    (folder / "run.json").write_text(text, encoding="utf-8")
    for use in (lambda: regatta_tools.score(folder), lambda: play(suite, script, folder)):
        with pytest.raises(InputError) as caught:
            use()
        assert (caught.value.exit_code, caught.value.code) == (2, "U107")
    assert (folder / "run.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("key", ["scenarios", "requirements", "faults", "models", "made_with"])
def test_a_run_json_without_its_lists_is_refused(made, tmp_path, key):
    _, _, unbroken = made
    folder = copy_of(unbroken, tmp_path / "run")
    (folder / "run.json").write_text(json.dumps(unbroken.manifest | {key: None}), encoding="utf-8")
    with pytest.raises(InputError, match="U107"):
        RunStore.read(folder)
    if key in ("scenarios", "requirements", "faults"):
        (folder / "run.json").write_text(json.dumps(unbroken.manifest | {key: []}), encoding="utf-8")
        with pytest.raises(InputError, match="U107"):
            RunStore.read(folder)


def test_a_folder_without_a_run_and_a_journal_without_its_run_are_refused(made, tmp_path):
    suite, script, unbroken = made
    for path in (tmp_path, tmp_path / "missing", suite):
        with pytest.raises(InputError, match="U107"):
            regatta_tools.score(path)
    folder = copy_of(unbroken, tmp_path / "run")
    (folder / "run.json").unlink()
    with pytest.raises(InputError, match=r"run\.json that it belongs to"):
        play(suite, script, folder)
    assert journal_of(unbroken) == (folder / "journal.jsonl").read_bytes()


# -- other words ---------------------------------------------------------------------------------


def _other_suite(folder, monkeypatch):
    text = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
    text["scenarios"][1]["turns"][0]["text"] += " Please."
    (folder / "suite.json").write_text(json.dumps(text), encoding="utf-8")
    return {}


def _fewer_scenarios(folder, monkeypatch):
    write_suite(folder, 1)
    return {}


def _other_prompt(folder, monkeypatch):
    system, user = prompts.template("rc")
    real = prompts.template
    monkeypatch.setattr(prompts, "template", lambda name: (system + "!", user) if name == "rc" else real(name))
    return {}


def _other_package(folder, monkeypatch):
    changed = regatta_tools.load(ROOT)
    changed.cell("insurance-us").requirements[0].cells["duty_en"] += " At once."
    return {"package": changed}


def _other_script(folder, monkeypatch):
    write_script(folder, {"when": {"stage": "rc"}, "text": '{"covered": true}'})
    return {}


def _other_version(folder, monkeypatch):
    monkeypatch.setattr("regatta_tools.harness.run.__version__", "9.9.9")
    return {}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_other_suite, "the suite changed"),
        (_fewer_scenarios, "the list of scenarios changed"),
        (_other_prompt, "the prompt templates changed"),
        (_other_package, "requirements, citations, facts or faults changed"),
        (_other_script, "the models or their settings changed"),
        (_other_version, "the version of REGATTA changed"),
        (lambda *_: {"seed": 2}, "seed was 1, is 2"),
        (lambda *_: {"answers": "per-scenario"}, "answers was 'per-fault', is 'per-scenario'"),
    ],
)
def test_other_words_do_not_go_on_with_a_run_and_it_says_which(tmp_path, monkeypatch, change, says):
    suite, script = write_suite(tmp_path, 2), write_script(tmp_path)
    store = play(suite, script, tmp_path / "run")
    before = {p.name: p.read_bytes() for p in store.folder.iterdir()}
    options = change(tmp_path, monkeypatch)
    with pytest.raises(InputError) as caught:
        play(suite, script, tmp_path / "run", **options)
    assert (caught.value.exit_code, caught.value.code) == (2, "U108")
    assert says in caught.value.message and "--out" in caught.value.mend
    assert {p.name: p.read_bytes() for p in store.folder.iterdir()} == before
    # Elsewhere the new words make a new run.
    assert play(suite, script, tmp_path / "other", **options).verdicts


def test_claims_and_titles_change_no_verdict_and_so_no_run(tmp_path):
    suite, script = write_suite(tmp_path, 2), write_script(tmp_path)
    store = play(suite, script, tmp_path / "run")
    text = json.loads(suite.read_text(encoding="utf-8"))
    text["title"] = "Another title"
    text["scenarios"][0]["claims"] = {"category": "another"}
    suite.write_text(json.dumps(text), encoding="utf-8")
    assert verdicts(play(suite, script, tmp_path / "run")) == verdicts(store)


# -- two writers, folders, full disks ------------------------------------------------------------


def test_a_second_writer_is_refused_and_the_first_goes_on(made, tmp_path):
    suite, script, unbroken = made
    folder = copy_of(unbroken, tmp_path / "run", b"")
    with RunStore(folder) as first:
        first.open_for_writing(unbroken.manifest)
        with pytest.raises(EnvironmentProblem, match="another process writes to this run") as caught:
            play(suite, script, folder)
        assert (caught.value.exit_code, caught.value.code) == (3, "E306")
        done = subprocess.run(
            [*CLI, *words(suite, script, folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
        assert done.returncode == 3 and "another process" in done.stderr and "Traceback" not in done.stderr
        # Reading needs no lock, and the first writer has lost nothing.
        assert regatta_tools.score(folder)["complete"] is False
        first.append({"e": "start", "key": "k"})
    assert [e["key"] for e in events(folder)] == ["k"]
    assert verdicts(play(suite, script, folder)) == verdicts(unbroken)


@pytest.mark.parametrize(
    "where", ["file/run", "file", "dir-for-manifest", "dir-for-journal", "dir-for-lock", "n" * 300]
)
def test_a_folder_that_takes_no_run_is_told_with_exit_3(made, tmp_path, where):
    suite, script, unbroken = made
    (tmp_path / "file").write_text("x", encoding="utf-8")
    folder = tmp_path / where
    if where == "dir-for-manifest":
        (folder / "run.json").mkdir(parents=True)
    elif where == "dir-for-journal":
        copy_of(unbroken, folder, b"")
        (folder / "journal.jsonl").unlink()
        (folder / "journal.jsonl").mkdir()
    elif where == "dir-for-lock":
        (folder / ".lock").mkdir(parents=True)
    with pytest.raises((EnvironmentProblem, InputError)) as caught:
        play(suite, script, folder)
    # Where a folder stands for a file to be read, there is no run to go on with: that is input.
    assert (caught.value.exit_code, caught.value.code) == (
        (2, "U107") if "manifest" in where or "journal" in where else (3, "E304")
    )
    assert caught.value.mend and str(tmp_path) in caught.value.place


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to a read-only folder")
def test_a_read_only_folder_is_told_with_exit_3(made, tmp_path):
    suite, script, _ = made
    (tmp_path / "locked").mkdir(mode=0o555)
    with pytest.raises(EnvironmentProblem, match="E304"):
        play(suite, script, tmp_path / "locked" / "run")


def _whole_lines(folder):
    raw = (folder / "journal.jsonl").read_bytes()
    assert raw.endswith(b"\n") or raw == b""
    return [json.loads(line) for line in raw.splitlines()]


@pytest.mark.parametrize("limit", [0, 500, 4096, 20000, 33333])
def test_a_full_disk_stops_the_run_between_two_lines(made, tmp_path, limit):
    """A limit on the size of files does what a full disk does: the last write comes out short."""
    suite, script, unbroken = made
    folder = tmp_path / "run"

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [*CLI, *words(suite, script, folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=small,
        encoding="utf-8",
    )
    assert done.returncode == 3, done.stderr
    assert "E305" in done.stderr and "same command" in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("error:") == 1 and done.stdout == ""
    if (folder / "journal.jsonl").exists():
        _whole_lines(folder)
    else:
        assert limit <= 4096 and not (folder / "run.json").exists()
    again = play(suite, script, folder)
    assert verdicts(again) == verdicts(unbroken) and again.notes == []
    assert results(folder) == results(unbroken.folder)


@pytest.mark.parametrize("keep", [0, 1, 7, 60])
@pytest.mark.parametrize("nth", [1, 2, 3, 40])
def test_a_short_write_leaves_whole_lines(made, tmp_path, monkeypatch, keep, nth):
    suite, script, unbroken = made
    folder = copy_of(unbroken, tmp_path / "run", b"")
    real, count = os.write, [0]

    def write(descriptor, data):
        count[0] += 1
        return real(descriptor, data[: min(keep, len(data) - 1)]) if count[0] == nth else real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(EnvironmentProblem, match="the disk is full") as caught:
        play(suite, script, folder)
    assert caught.value.exit_code == 3 and "nothing is lost" in caught.value.mend
    assert len(_whole_lines(folder)) == nth - 1
    monkeypatch.undo()
    again = play(suite, script, folder)
    assert verdicts(again) == verdicts(unbroken) and again.notes == []


def test_a_disk_on_which_even_the_cut_fails_still_goes_on_later(made, tmp_path, monkeypatch):
    suite, script, unbroken = made
    folder = copy_of(unbroken, tmp_path / "run", b"")
    real = os.write
    monkeypatch.setattr(os, "write", lambda d, data: real(d, data[:5]))
    monkeypatch.setattr(os, "ftruncate", mock.Mock(side_effect=OSError(errno.EIO, "gone")))
    with pytest.raises(EnvironmentProblem, match="the disk is full"):
        play(suite, script, folder)
    monkeypatch.undo()
    assert (folder / "journal.jsonl").read_bytes() == b'{"e":'
    assert verdicts(play(suite, script, folder)) == verdicts(unbroken)


def test_a_disk_that_does_not_keep_a_call_does_not_pretend_to(made, tmp_path, monkeypatch):
    suite, script, unbroken = made
    folder = copy_of(unbroken, tmp_path / "run", b"")
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=OSError(errno.EDQUOT, "quota")))
    with pytest.raises(EnvironmentProblem, match="quota") as caught:
        play(suite, script, folder)
    assert caught.value.code == "E305"
    assert [e["e"] for e in _whole_lines(folder)] == ["start"]
    monkeypatch.undo()
    again = play(suite, script, folder)
    assert verdicts(again) == verdicts(unbroken) and again.resent == 1


def test_every_call_is_on_the_disk_before_the_next_is_sent(tmp_path):
    """Seen from a second process while the first waits in a call."""
    suite, script, folder = write_suite(tmp_path), write_script(tmp_path), tmp_path / "run"
    code = textwrap.dedent(
        """
        import json, sys
        rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
        print(sum(r["e"] == "call" for r in rows), sum(r["e"] == "start" for r in rows))
        """
    )
    real, seen = client.complete, []

    def complete(request, **_):
        if len(seen) < 4:
            done = subprocess.run(
                [sys.executable, "-c", code, str(folder / "journal.jsonl")],
                capture_output=True,
                text=True,
                check=True,
                encoding="utf-8",
            )
            seen.append(tuple(map(int, done.stdout.split())))
        return real(request)

    with mock.patch.object(client, "complete", complete):
        play(suite, script, folder)
    assert seen == [(0, 1), (1, 2), (2, 3), (3, 4)]
