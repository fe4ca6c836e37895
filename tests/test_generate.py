"""Generation: what a reply brings, what becomes of it, what is counted and kept, and that judges never see claims."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_runs import package, play, write_script

import regatta_tools
from regatta_tools.cli.generate import generate as command
from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.generation import duplicates, form, making
from regatta_tools.generation.language import is_in, language_of
from regatta_tools.generation.making import as_yaml
from regatta_tools.harness.kept import prompts as sent_prompts
from regatta_tools.llm import client
from regatta_tools.llm.types import Reply
from regatta_tools.suites.reader import check_file, load_suite

ROOT = Path(__file__).resolve().parent.parent
SUBJECTS = (
    "a wire to my landlord that bounced twice", "the card that was swallowed by a machine in Tucson",
    "an overdraft nobody told me about", "my late father's savings and who may close them",
    "a loan offer with two different rates on it", "the monthly fee that doubled in spring",
    "a deposit made by phone that never showed up", "an account opened in my name by a stranger",
    "why the branch wants my passport again", "a transfer that went to the wrong cousin",
    "statements that stopped coming in March", "the student rate and whether it still holds",
)  # fmt: skip
VI = (
    "khoản chuyển tiền cho chủ nhà bị trả lại hai lần", "chiếc thẻ bị máy nuốt ở ga Hà Nội hôm qua",
    "khoản thấu chi mà không ai báo trước cho gia đình", "sổ tiết kiệm của người cha đã mất và ai được rút",
)  # fmt: skip


def item(subject: str, **more: Any) -> dict[str, Any]:
    return {
        "turns": [{"speaker": "user", "text": f"I would like to ask you about {subject}, and what happens now?"}],
        "context": "", "expected": f"The answer explains {subject} and says what the person can do.",
        "claims": {"regulation": "a rule", "category": "question"},
    } | more  # fmt: skip


def viet(subject: str, **more: Any) -> dict[str, Any]:
    return {
        "turns": [{"speaker": "user", "text": f"Tôi muốn hỏi về {subject}, bây giờ phải làm gì?"}],
        "context": "", "expected": f"Trợ lý giải thích về {subject} và nói rõ khách hàng được làm gì.",
        "claims": {"regulation": "quy định", "category": "câu hỏi"},
    } | more  # fmt: skip


def said(*items: Any) -> str:
    return json.dumps({"scenarios": list(items)}, ensure_ascii=False)


def script(folder: Path, *entries: dict[str, Any]) -> str:
    path = folder / "generator.json"
    path.write_text(json.dumps({"replies": list(entries)}, ensure_ascii=False), encoding="utf-8")
    return f"scripted:{path}"


def on(turn: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"when": {"stage": "generate", "turn": turn}, "text": text, **more}


def make(folder: Path, model: str, **options: Any) -> tuple[making.Made, dict[str, Any]]:
    defaults = {"cell": "fintech-us", "strategy": "S1", "n": 3, "repeat": 1, "out": folder / "out",
                "package": package()}  # fmt: skip
    (made,) = regatta_tools.generate(model=model, **(defaults | options))
    return made, json.loads(made.receipt.read_text(encoding="utf-8"))


def reconciled(receipt: dict[str, Any]) -> None:
    """Every item that came is in one count, and every one that was asked for came or is missing."""
    items = receipt["counts"]["items"]
    parts = ("accepted", "malformed", "wrong-language", "duplicate", "surplus")
    assert items.get("received", 0) == sum(items.get(p, 0) for p in parts)
    assert items.get("accepted", 0) == receipt["scenarios"]
    asking = [c for c in receipt["calls"] if "asked" in c]
    assert items["asked"] == sum(c["asked"] for c in asking)
    assert items["missing"] == sum(max(0, c["asked"] - c["items"]) for c in asking)
    rejected = Counter(r["outcome"] for c in receipt["calls"] for r in c.get("rejected", ()))
    assert rejected == Counter({p: items[p] for p in parts[1:] if items.get(p)})
    assert sum(receipt["counts"]["replies"].values()) == len(receipt["calls"])


# The small model first: one cell and strategy run for true, without a key or a network


def test_the_embedded_model_makes_a_suite_that_the_reader_takes_and_is_called_poor(tmp_path):
    words = ["--cell", "insurance-us", "--strategy", "S1", "--model", "embedded", "-n", "1", "--repeat", "1",
             "--out", str(tmp_path / "out"), "--format", "json"]  # fmt: skip
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    (made,) = json.loads(done.stdout)
    assert "nothing leaves this machine" in done.stderr and any("poor" in note for note in made["notes"])
    suite = load_suite(made["path"])
    assert len(suite.scenarios) == 1 and suite.made_with["strategy"] == "S1" and "poor" in suite.made_with["note"]
    before = Path(made["path"]).read_bytes()
    again = CliRunner().invoke(command, words)
    assert again.exit_code == 0 and Path(made["path"]).read_bytes() == before
    asked = (tmp_path / "out" / "insurance-us-S1-r1.journal.jsonl").read_text("utf-8").splitlines()
    assert len(asked) == 3, "asked once"


# What a reply brings


@pytest.mark.parametrize(
    ("text", "outcome", "rung", "count"),
    [
        (said(1, 2), "read", "as-is", 2), ("[1, 2]", "read", "as-is", 2),
        (f"```json\n{said(1)}\n```", "read", "fence", 1),
        (f"<think>{said(1, 2, 3)}</think>{said(1)}", "read", "as-is", 1),
        (f"Here they are:\n{said({'a': 1}, {'a': 2})}", "read", "pieces", 2),
        (said({"a": 1}, {"a": 2}, {"a": 3})[:-9], "half", "pieces", 2), ('{"a": 1}\n{"a": 2}', "read", "pieces", 2),
        (said(), "unparsed", "", 0), ("No.", "unparsed", "", 0), ("I'm sorry, I can't do that.", "refused", "", 0),
        ("Xin lỗi, tôi không thể giúp.", "refused", "", 0), ("<think>{", "empty", "", 0),
        ("[" * 5000, "unparsed", "", 0), (said({"a": "đồng"})[:20], "unparsed", "", 0),
        ('{"scenarios": 3}', "read", "pieces", 1),
    ],
)  # fmt: skip
def test_the_ladder(text, outcome, rung, count):
    found = form.read_reply(Reply("ok", text))
    assert (found.outcome, found.rung, len(found.items)) == (outcome, rung, count)


@pytest.mark.parametrize("outcome", ["refused", "filtered", "empty", "failed"])
def test_a_call_without_a_text_brings_an_outcome_and_no_empty_list(outcome):
    found = form.read_reply(Reply(outcome, error="why"))
    assert (found.outcome, found.items, found.why) == (outcome, [], "why")


@given(cut=st.integers(0, 400), n=st.integers(1, 4))
def test_of_a_cut_list_every_whole_item_is_kept_and_no_half_one(cut, n):
    items = [item(SUBJECTS[i]) for i in range(n)]
    text = said(*items)[: -min(cut, 400) or None]
    found = form.read_reply(Reply("truncated" if cut else "ok", text))
    whole = sum(text.startswith(said(*items[: k + 1])[:-2]) for k in range(n))
    assert found.items == items[:whole]
    assert found.outcome == ("read" if not cut else "half" if whole else "truncated") or cut <= 2


def test_the_schema_of_a_reply_is_that_of_the_suite():
    schema = form.reply_schema(2)
    jsonschema.Draft202012Validator.check_schema(schema)
    ok = {"scenarios": [item("a"), item("b")]}
    jsonschema.validate(ok, schema)
    read = form.read_item(ok["scenarios"][0], "en")
    jsonschema.validate({"id": "s", "scenarios": [{"id": "s1", **read.value}]}, _suite_schema())
    for wrong in (
        {"scenarios": [item("a", id="x")]}, {"scenarios": []}, {"scenarios": [item("a")] * 3},
        {"scenarios": [item("a", turns=[{"speaker": "judge", "text": "x"}])]},
        {"scenarios": [{k: v for k, v in item("a").items() if k != "expected"}]},
    ):  # fmt: skip
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    assert "items" not in json.dumps(form.reply_schema(1)["properties"]["scenarios"]["items"]["properties"]["claims"])


def _suite_schema() -> dict[str, Any]:
    from regatta_tools.tables.shape import class_schema

    return class_schema("Suite")


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (3, "malformed"), ({}, "malformed"), (item("x", expected=""), "malformed"), (item("x", turns=[]), "malformed"),
        (item("x", turns="hello"), "malformed"), (item("x", turns=[{"speaker": "user", "text": "  "}]), "malformed"),
        (item("x", turns=[{"speaker": s, "text": "Who are you?"} for s in ("user", "agent")]), "malformed"),
        (item("x", expected="\ud800"), "malformed"), (item("x", context=["a"]), "malformed"),
        (item("x", claims="none"), "malformed"), (viet(VI[0]), "wrong-language"),
        (item("x", expected=viet(VI[0])["expected"]), "wrong-language"), (item("x", title="more"), "accepted"),
    ],
)  # fmt: skip
def test_what_becomes_of_one_item(raw, outcome):
    found = form.read_item(raw, "en")
    assert found.outcome == outcome and bool(found.why) == (outcome != "accepted")


# Language and near-duplicates


def test_every_text_of_the_package_is_told_its_language():
    """Hundreds of texts that somebody wrote in a known language: none is taken for the other, few for neither."""
    seen = Counter()
    for name in (c.key for c in package().table("cells")):
        for table in ("requirements", "rules", "roles", "decisions", "handoffs", "concepts"):
            for row in package().cell_records(table, name):
                for column, text in row.cells.items():
                    if column[-3:] in ("_en", "_vi") and text and len(text.split()) >= 12:
                        seen[column[-2:], language_of(text)] += 1
    assert seen["vi", "vi"] > 150 and seen["en", "en"] > 400 and not seen["vi", "en"] and not seen["en", "vi"]
    assert seen["vi", None] < 0.05 * seen["vi", "vi"] and seen["en", None] < 0.05 * seen["en", "en"], seen


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bonjour, je voudrais savoir pourquoi ma carte a été refusée hier à Paris.", None),
        ("Wie lange dauert es, bis das Geld auf meinem Konto ist?", None), ("12345 67 89", None), ("", None),
        ("The customer Nguyễn Thị Hoa asks why the branch of the bank keeps her passport.", "en"),
        ("Khách hàng John Smith hỏi vì sao chi nhánh giữ hộ chiếu của ông ấy.", "vi"),
        ("toi muon hoi ve khoan vay cua toi tai ngan hang", None), ("1.1.1.2.2.2 1 1 2 2 2", None),
    ],
)  # fmt: skip
def test_other_texts(text, language):
    assert language_of(text) == language


def test_texts_of_two_languages_are_in_neither():
    assert is_in("vi", [viet(VI[0])["turns"][0]["text"], "", viet(VI[0])["expected"]])
    assert not is_in("vi", [viet(VI[0])["turns"][0]["text"], item(SUBJECTS[0])["expected"]])


@given(st.data())
@settings(max_examples=20)
def test_the_threshold_is_where_the_page_says(data):
    words = [f"w{i}" for i in range(60)]
    def with_changed(places: list[int]) -> duplicates.Runs:
        text = " ".join("other" + str(i) if i in places else w for i, w in enumerate(words))
        return duplicates.runs({"turns": [{"text": text}]}, "en")

    start = data.draw(st.integers(3, 5))
    apart = [start + 6 * k for k in range(8)]
    assert duplicates.twin_of(with_changed(apart[:4]), [with_changed([])]) == 0
    assert duplicates.twin_of(with_changed(apart), [with_changed([])]) is None
    assert duplicates.resemblance(with_changed(apart), with_changed([])) == pytest.approx(34 / 82)


# A suite


def test_dedup_top_up_malformed_and_wrong_language_are_handled_and_counted(tmp_path):
    a, b, c, d = (item(s) for s in SUBJECTS[:4])
    near = item(SUBJECTS[0], claims={"category": "other words about the same"}) | {"expected": a["expected"] + " Soon."}
    model = script(
        tmp_path,
        on("0|0|3", said(a, near, {"turns": []})),
        on("1|3|2", said(viet(VI[0]), b)),
        on("2|5|1", said(c, d)),
    )
    made, receipt = make(tmp_path, model)
    assert made.complete and made.scenarios == 3 and made.calls == 3
    items = receipt["counts"]["items"]
    assert [items[k] for k in ("duplicate", "malformed", "wrong-language", "surplus")] == [1, 1, 1, 1]
    reconciled(receipt)
    suite = load_suite(made.path)
    assert [s.turns[0].text for s in suite.scenarios] == [x["turns"][0]["text"] for x in (a, b, c)]
    assert check_file(made.path).ok
    # The list of what is there already stands in later prompts, not in the first.
    lines = (tmp_path / "out" / "fintech-us-S1-r1.journal.jsonl").read_text("utf-8").splitlines()
    journal = [json.loads(line) for line in lines]
    assert [e["e"] for e in journal] == ["plan", *["start", "call"] * 3]
    assert next(e["text"] for e in journal if e["e"] == "call") == said(a, near, {"turns": []}), "the raw reply is kept"
    assert [c.get("already_listed", 0) for c in receipt["calls"]] == [0, 1, 2]


def test_too_few_is_reported_short_and_leaves_with_1(tmp_path):
    model = script(tmp_path, {"text": said(item(SUBJECTS[0]))})
    words = ["--cell", "fintech-us", "--strategy", "S3", "--model", model, "-n", "2", "--repeat", "1", "--out",
             str(tmp_path / "out")]  # fmt: skip
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 1 and "1 of 2 scenarios" in done.stdout and "1 of 2 scenarios are missing" in done.stdout
    receipt = json.loads((tmp_path / "out" / "fintech-us-S3-r1.receipt.json").read_text(encoding="utf-8"))
    assert not receipt["complete"] and receipt["counts"]["items"]["duplicate"] == making.TOP_UPS
    reconciled(receipt)
    assert len(load_suite(tmp_path / "out" / "fintech-us-S3-r1.yaml").scenarios) == 1, "what there is is not lost"


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        ({"outcome": "refused", "error": "no"}, "refused"), ({"text": "I'm sorry, I cannot help."}, "refused"),
        ({"outcome": "filtered"}, "filtered"), ({"text": "nonsense"}, "unparsed"), ({"text": ""}, "empty"),
        ({"text": said(item("a"))[:40], "outcome": "truncated"}, "truncated"),
        ({"outcome": "failed", "error": "broken"}, "failed"),
    ],
)  # fmt: skip
def test_replies_without_a_scenario_are_counted_and_write_no_suite(tmp_path, entry, outcome):
    made, receipt = make(tmp_path, script(tmp_path, entry))
    assert made.path is None and receipt["file"] is None and not list((tmp_path / "out").glob("*.yaml"))
    assert receipt["counts"]["replies"] == {outcome: 1 + making.TOP_UPS} and receipt["scenarios"] == 0
    assert receipt["counts"]["items"]["missing"] == receipt["counts"]["items"]["asked"]
    reconciled(receipt)


def test_half_a_list_is_kept_and_the_rest_asked_for(tmp_path):
    items = [item(s) for s in SUBJECTS[:3]]
    model = script(tmp_path, on("0|0|3", said(*items)[:-200], outcome="truncated"), on("1|3|1", said(items[2])))
    made, receipt = make(tmp_path, model)
    assert made.complete and receipt["counts"]["replies"] == {"half": 1, "read": 1}
    assert receipt["counts"]["items"]["missing"] == 1
    reconciled(receipt)


def test_batches_and_cases(tmp_path):
    """Cases of S4 stand with a scenario where the reply has as many as were asked for, and only there."""
    many = [item(s) for s in SUBJECTS]
    model = script(tmp_path, on("0|0|5", said(*many[:5])), on("0|5|5", said(*many[5:9])), on("0|10|1", said(many[9])),
                   {"text": said(many[10], many[11])})  # fmt: skip
    made, receipt = make(tmp_path, model, strategy="S4", n=11, batch=5)
    assert [c["asked"] for c in receipt["calls"]] == [5, 5, 1, 1] and made.complete
    drawn = [dict(s.claims).get("items") for s in load_suite(made.path).scenarios]
    assert all(drawn[:5]) and not any(drawn[5:9]) and drawn[9] and not drawn[10]
    context = {i["id"] for i in receipt["receipt"]["included"]}
    assert {x for d in drawn if d for x in d} <= context


@given(
    replies=st.lists(st.lists(st.one_of(
        st.sampled_from([item(s) for s in SUBJECTS]), st.just(3), st.just(viet(VI[0])), st.just(item("x", turns=[]))),
        max_size=5), min_size=1, max_size=8),
    n=st.integers(1, 6), batch=st.integers(1, 4),
)  # fmt: skip
@settings(max_examples=25)
def test_whatever_comes_counts_add_up_and_scenarios_are_distinct(tmp_path_factory, replies, n, batch):
    folder = tmp_path_factory.mktemp("any")
    turns = iter(replies)
    calls = []

    def answer(request):
        calls.append(request)
        return Reply("ok", said(*next(turns, [])), prompt_tokens=1, completion_tokens=1, cost_usd=0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "complete", answer)
        made, receipt = make(folder, script(folder, {"text": "-"}), n=n, batch=batch)
        first = made.path.read_bytes() if made.path else None
        count = len(calls)
        made_again, receipt_again = make(folder, script(folder, {"text": "-"}), n=n, batch=batch)
    reconciled(receipt)
    assert len(calls) == count, "a finished suite asks nothing again"
    assert receipt_again == receipt and (made_again.path.read_bytes() if made_again.path else None) == first
    assert count <= (1 + making.TOP_UPS) * n
    if made.path:
        suite = load_suite(made.path)
        texts = [s.turns[0].text for s in suite.scenarios]
        assert len(texts) == len(set(texts)) == made.scenarios <= n
        assert receipt["suite_hash"] == suite.hash
        assert suite.made_with["receipt"] == hashlib.sha256(made.receipt.read_bytes()).hexdigest()
        assert len({r.seed for r in calls}) == len(calls) and {r.temperature for r in calls} == {0.3}


def test_seeds_differ_by_cell_strategy_repeat_and_seed(tmp_path):
    seeds: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "complete", lambda r: seeds.append(r.seed) or Reply("ok", said(item(SUBJECTS[0]))))
        model = script(tmp_path, {"text": "-"})
        for number, options in enumerate(({}, {"cell": "insurance-us"}, {"strategy": "S2"}, {"seed": "1"})):
            regatta_tools.generate(model=model, n=1, out=tmp_path / str(number), package=package(),
                                   **({"cell": "fintech-us", "strategy": "S1", "repeat": 2} | options))  # fmt: skip
        assert len(set(seeds)) == len(seeds) == 8
        first = seeds[:2]
        regatta_tools.generate(model=model, n=1, out=tmp_path / "again", package=package(), cell="fintech-us",
                               strategy="S1", repeat=2)  # fmt: skip
        assert seeds[-2:] == first


def test_a_broken_off_suite_goes_on_and_a_kill_in_flight_is_told(tmp_path, monkeypatch):
    replies = [said(item(SUBJECTS[i])) for i in range(3)]
    model = script(tmp_path, *(on(f"0|{i}|1", replies[i]) for i in range(3)))
    real, calls = client.complete, []

    def breaking(request):
        calls.append(request)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(request)

    monkeypatch.setattr(client, "complete", breaking)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, model, batch=1)
    journal = tmp_path / "out" / "fintech-us-S1-r1.journal.jsonl"
    with journal.open("ab") as stream:
        stream.write(b'{"e":"call","key":"0|1|1","text":"ha')
    monkeypatch.setattr(client, "complete", lambda r: calls.append(r) or real(r))
    made, _ = make(tmp_path, model, batch=1)
    assert made.complete and [c.purpose["turn"] for c in calls] == ["0|0|1", "0|1|1", "0|1|1", "0|2|1"]
    assert any("sent again" in note for note in made.notes)
    assert b'"ha' in journal.with_suffix(".damaged").read_bytes()


def test_other_settings_do_not_go_on(tmp_path):
    model = script(tmp_path, {"text": said(item(SUBJECTS[0]))})
    make(tmp_path, model, n=1)
    with pytest.raises(InputError, match="n was 1, is 2") as error:
        make(tmp_path, model, n=2)
    assert error.value.code == "U236"
    (tmp_path / "out" / "fintech-us-S1-r1.journal.jsonl").write_text("what is this\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        make(tmp_path, model, n=1)
    assert error.value.code == "U237"


def test_a_model_out_of_reach_stops_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "complete", lambda r: Reply("failed", error="no route", unreachable=True))
    model = script(tmp_path, {"text": said(item(SUBJECTS[0]))})
    with pytest.raises(EnvironmentProblem, match="does not answer"):
        make(tmp_path, model, n=1)
    monkeypatch.undo()
    made, receipt = make(tmp_path, model, n=1)
    assert made.complete and receipt["counts"]["replies"] == {"read": 1}


# Receipts


@pytest.mark.parametrize("strategy", ["S1", "S2", "S3", "S4"])
@pytest.mark.parametrize("budget", [None, 2600, 1500])
def test_every_item_of_the_cell_is_accounted_for_once(tmp_path, strategy, budget):
    model = script(tmp_path, on("0|0|2", said(item(SUBJECTS[0]), item(SUBJECTS[1]))))
    _, receipt = make(tmp_path, model, strategy=strategy, n=2, budget=budget, hold_out=2, seed="x")
    folder = ROOT / "instruments" / "fintech-us" / "context"
    ids = [line.partition(",")[0] for t in ("roles", "rules", "concepts", "decisions", "handoffs")
           for line in (folder / f"{t}.csv").read_text(encoding="utf-8").splitlines()[1:]]  # fmt: skip
    told = receipt["receipt"]
    assert Counter(e["id"] for e in (*told["included"], *told["left_out"])) == Counter(ids)
    assert all(e["reason"] for e in told["left_out"])
    assert len([e for e in told["left_out"] if e["reason"] == "held out"]) == 2 == len(told["hold_out"]["rules"])
    for entry in receipt["prompts"].values():
        assert budget is None or entry["tokens"] <= budget
        assert Counter(e["id"] for k in ("included", "left_out") for e in entry["receipt"][k]) == Counter(ids)
    assert "\\u" not in json.dumps(receipt, ensure_ascii=False)


def test_vietnamese_is_written_as_itself_and_read_back(tmp_path):
    model = script(tmp_path, {"text": said(*(viet(s) for s in VI))})
    made, receipt = make(tmp_path, model, cell="banking-vn", n=4, strategy="S4", budget=2600)
    raw = made.path.read_text(encoding="utf-8")
    assert made.complete and "khoản thấu chi" in raw and "\\u" not in raw and "\\x" not in raw
    assert {s.language for s in load_suite(made.path).scenarios} == {"vi"}
    assert "khoản" in made.receipt.read_text(encoding="utf-8") or receipt["complete"]


@given(st.lists(st.text(min_size=1, max_size=40).filter(lambda t: t.strip()), min_size=1, max_size=4))
@settings(max_examples=60)
def test_yaml_is_read_back_text_for_text(tmp_path_factory, texts):
    texts = [t for t in texts if t.isprintable() and re.search(r"\S", t)]
    texts += ["NO", "1:30", "0o17", "1e3", "null", "~", "- a"]
    value = {"id": "a", "scenarios": [{"id": "s", "turns": [{"speaker": "user", "text": t} for t in texts]}]}
    path = tmp_path_factory.mktemp("yaml") / "suite.yaml"
    path.write_bytes(as_yaml(value))
    assert [t.text for t in load_suite(path).scenarios[0].turns] == texts


# Claims apart


def test_prompts_of_a_run_are_the_same_bytes_without_claims_pair_and_origin(tmp_path):
    model = script(tmp_path, on("0|0|2", said(*(item(s, claims={"regulation": "SECRET-RULE", "category": "SECRET-KIND"})
                                               for s in SUBJECTS[:2]))))  # fmt: skip
    made, _ = make(tmp_path, model, n=2, strategy="S4")
    import yaml

    value = yaml.safe_load(made.path.read_text(encoding="utf-8"))
    assert all(s["claims"]["items"] for s in value["scenarios"]) and value["made_with"]["strategy"] == "S4"
    bare = {k: v for k, v in value.items() if k != "made_with"}
    bare["scenarios"] = [{k: v for k, v in s.items() if k != "claims"} for s in value["scenarios"]]
    paired = {**bare, "scenarios": [{**s, "pair": s["id"]} for s in bare["scenarios"]]}
    sent = {}
    for name, content in (("whole", value), ("bare", bare), ("paired", paired)):
        path = tmp_path / f"{name}.yaml"
        path.write_bytes(as_yaml(content))
        store = play(path, write_script(tmp_path), tmp_path / "runs" / name, cell="fintech-us")
        sent[name] = {p["prompt_hash"]: json.dumps(p, ensure_ascii=False) for p in sent_prompts(store.folder)}
    assert sent["whole"] == sent["bare"] == sent["paired"] and len(sent["whole"]) > 50
    assert not any("SECRET" in text or "fintech-us-rule" in text for text in sent["whole"].values())


# Pairs


def test_pairs_are_asked_for_and_held_to_turns_and_numbers(tmp_path):
    first = viet(VI[0], context="Số dư của khách hàng là 1.500.000 đồng và phí là 3,5 phần trăm.")
    second = viet(VI[1])
    balance = "The balance of the customer is 1,500,000 dong and the fee is 3.5 per cent."
    right = item("the transfer that came back", context=balance)
    wrong = right | {"context": balance.replace("1,500,000", "1,500,001")}
    model = script(
        tmp_path, on("0|0|2", said(first, second)), on("pair|1|0", said(wrong)), on("pair|1|1", said(right)),
        on("pair|2|0", said(second)), on("pair|2|1", "no"), on("pair|2|2", said(right)),
        on("pair|2|3", said(right, right)),
    )  # fmt: skip
    made, receipt = make(tmp_path, model, cell="banking-vn", n=2, pairs=True)
    assert made.scenarios == 2 and made.unpaired == 1 and not made.complete
    suite = load_suite(made.path)
    assert [(s.id, s.language, s.pair) for s in suite.scenarios] == [
        ("s01-vi", "vi", "s01"), ("s01-en", "en", "s01"), ("s02", "vi", None),
    ]  # fmt: skip
    items = receipt["counts"]["items"]
    assert {k: v for k, v in items.items() if k.startswith("pair ")} == {
        "pair other-numbers": 1, "pair accepted": 1, "pair wrong-language": 1, "pair no-version": 2,
        "pair other-turns": 1,
    }  # fmt: skip


# Bad input


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-n", "0"], "U235"), (["--repeat", "0"], "U235"), (["--batch", "0"], "U235"), (["--strategy", "S9"], "U234"),
        (["--cell", "nowhere"], "U103"), (["--budget-tokens", "20"], "U232"), (["--hold-out", "99"], "U233"),
        (["--language", "vi"], "U231"), (["--pairs"], "U238"),
    ],
)  # fmt: skip
def test_bad_words_are_told_and_leave_nothing(tmp_path, words, code):
    model = script(tmp_path, {"text": said(item(SUBJECTS[0]))})
    first = {"--cell": "fintech-us", "--strategy": "S1", "--model": model, "--out": str(tmp_path / "out")}
    first |= dict(zip(words[::2], words[1::2])) if len(words) == 2 else {}
    done = CliRunner().invoke(command, [w for pair in first.items() for w in pair] + (words if len(words) == 1 else []))
    assert isinstance(done.exception, InputError) and done.exception.code == code and done.exception.mend
    assert not (tmp_path / "out").exists()
    page = (ROOT / "docs" / "generation.md").read_text(encoding="utf-8")
    assert code == "U103" or f"| {code} |" in page


def test_nothing_goes_to_a_hosted_model_unasked(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "check_model", lambda m: {"name": m})
    monkeypatch.setattr(client, "provider_of", lambda m: ("big", "vendor", ""))
    monkeypatch.setattr(client, "complete", lambda r: pytest.fail("a call was made"))
    words = ["--cell", "fintech-us", "--strategy", "S4", "--model", "vendor/big", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, InputError) and done.exception.code == "U137"
    assert "to vendor (model big) go: the ontology context" in done.stderr and not (tmp_path / "out").exists()


def test_rules_that_no_scenario_claims(tmp_path):
    """By item, by name in a sentence, by id in brackets; another cell's suite claims nothing here."""
    from regatta_tools.graph import query
    from regatta_tools.graph.suites import read, triples

    rules = package().cell_records("rules", "banking-vn")
    ids = [r.key for r in rules]
    claims = [
        {"items": [ids[0], "banking-vn-role-teller"]}, {"regulation": f"Theo {rules[1]['name_vi'].upper()} thì sao"},
        {"regulation": f"[{ids[2]}]"}, {"category": rules[3]["name_vi"]},
    ]  # fmt: skip
    scenarios = [{"id": f"s{i}", "claims": c, **{"turns": viet(VI[0])["turns"]}} for i, c in enumerate(claims)]
    path = tmp_path / "suite.yaml"
    path.write_bytes(as_yaml({"id": "claims", "cell": "banking-vn", "scenarios": scenarios}))
    asked = {"cell": "banking-vn", "language": "vi"}
    found = query.run_named(package(), "rules-without-scenario", asked, beside=triples(read([path])))
    assert [row[0] for row in found.rows] == sorted(ids[3:])
