"""From a judge's raw reply to a verdict: the closed list of forms, and nothing outside it (A14, A15, A16)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regatta_tools.llm.types import Reply
from regatta_tools.llm.verdicts import FORMS, read_verdict, reply_schema
from regatta_tools.tables.model import enum_values

FENCE = "```"
BOOLEAN = {"rc": "covered", "design": "exposed", "execution": "manifested"}
MISSING = {"unparsed", "truncated", "refused", "filtered", "empty", "failed"}


def read(text, stage="rc", outcome="ok"):
    return read_verdict(stage, Reply(outcome, text))


# -- the inputs of the public bug reports --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "outcome", "rung"),
    [
        (f'{FENCE}json\n{{"covered": true}}\n{FENCE}', "positive", "fence"),
        (
            '{"covered": true, "reason": "it shows '
            + FENCE
            + 'json {\\"covered\\": false} '
            + FENCE
            + ' as a sample"}',
            "positive",
            "as-is",
        ),
        ('Here: {"covered": true,}', "positive", "repair"),
        ("{'covered': true}", "positive", "repair"),
        ("{'covered': False, }", "negative", "repair"),
        ("{“covered”: true}", "positive", "repair"),
        ("INCORRECT", "unparsed", None),
        ("Not correct.", "unparsed", None),
        ("Yes.", "positive", "word"),
        (" yes\n", "positive", "word"),
        ("YES - but", "unparsed", None),
        ('{"match": "false"}', "unparsed", None),
        ('{"match": 0}', "unparsed", None),
        ('{"covered": "false"}', "negative", "as-is"),
        ('{"covered": 0}', "unparsed", None),
        ('{"covered": null}', "unparsed", None),
        ('{"reason": "forgot"}', "unparsed", None),
        ("As a judge I find that the final grade is B.", "unparsed", None),
        ('<think>maybe {"covered": true}</think>{"covered": false}', "negative", "as-is"),
        ('<think>never closed {"covered": true}', "unparsed", None),
        ('maybe {"covered": true}</think>\n{"covered": false}', "negative", "as-is"),
        ('<think>\nFirst thoughts:\n{"covered": true}\n', "unparsed", None),
        (f'<reasoning>\n{FENCE}json\n{{"covered": true}}\n{FENCE}\n', "unparsed", None),
        (f'{FENCE}json\n{{"covered": true}}\n{FENCE}\nIt rests on:\n{FENCE}\n§ 1\n{FENCE}', "unparsed", None),
        ('a</think>b <think>never closed {"covered": true}', "unparsed", None),
        ('<think>a <think>b</think> {"covered": true}</think>{"covered": false}', "negative", "as-is"),
        ('{"covered": true, "covered": false}', "unparsed", None),
        ("{'covered': True, 'covered': False}", "unparsed", None),
        ("", "empty", None),
        ("<think>all my words</think>\n", "empty", None),
        ("I'm sorry, but I can't help with that.", "refused", None),
        ("Xin lỗi, tôi không thể đánh giá.", "refused", None),
    ],
)
def test_replies_that_misled_other_tools(text, outcome, rung):
    reading = read(text)
    assert (reading.outcome, reading.rung) == (outcome, rung)
    assert reading.value is {"positive": True, "negative": False}.get(outcome)
    assert (reading.error is None) == (outcome in ("positive", "negative"))


def test_a_refusal_a_grade_of_another_judge_and_a_letter_are_no_category_and_no_score():
    text = "As a judge I find that the final grade is B."
    assert {read(text, stage).outcome for stage in FORMS} == {"unparsed"}


@pytest.mark.parametrize("stage", sorted(FORMS))
@pytest.mark.parametrize("text", ['thought\n{"score":', "", '{"covered": tr', "Yes", "1", "none", '{"score": 1'])
def test_a_cut_reply_without_a_closed_object_is_truncated_and_says_so(stage, text):
    reading = read(text, stage, "truncated")
    assert (reading.outcome, reading.value) == ("truncated", None)
    assert "limit" in reading.error


def test_a_cut_reply_is_read_where_the_object_closed_and_nothing_followed():
    assert read('{"covered": false}', outcome="truncated").outcome == "negative"
    for text in ('{"covered": true}\nBut on the other', 'So far: {"covered": true}', '{"covered": true} {"cov'):
        assert read(text, outcome="truncated").outcome == "truncated"


@pytest.mark.parametrize("outcome", ["refused", "filtered", "empty", "failed"])
def test_what_the_provider_calls_no_answer_is_none_whatever_text_came_along(outcome):
    assert read('{"covered": true}', outcome=outcome).outcome == outcome
    assert read_verdict("rc", Reply(outcome, error="why")).error == "why"


# -- never more than what the reply says ---------------------------------------------------------

_PIECES = """"covered"|'covered'|“covered”|covered|"reason"|{"covered": true}|{"covered": false}|{'covered': False,}
{"exposed": true}|true|false|True|False|yes|no|"yes"|"no"|"true"|null|0|1|not |n't|correct|INCORRECT|Answer: |Final:
```|```json|<think>|</think>|:|,|{|}|[|]| |"|'|\\|.|!"""
_TOKENS = st.sampled_from([piece for line in _PIECES.splitlines() for piece in line.split("|")] + ["\n", "```json\n"])
_CLAIM = re.compile(
    r"""(?<!\\)["'“”‘’]covered["'“”‘’]\s*:\s*(["'“”‘’]?\s*(?:true|false|yes|no))(?![a-z])""", re.IGNORECASE
)
_OPEN, _CLOSED = re.compile("<think>"), re.compile("<think>.*?</think>", re.DOTALL)


@settings(max_examples=1500, deadline=None)
@given(st.lists(_TOKENS, max_size=14).map("".join))
@example('{"covered": false}\n```json\n{"covered": true}\n```')
@example('not {"covered": true}')
@example('{"covered": true}\nno')
@example('<think>{"covered": true}</think>{"covered": true}{"covered": true}')
def test_a_verdict_is_the_only_one_that_the_reply_holds(text):
    """An oracle that shares no code: the claims that stand in the reply, counted by one pattern."""
    reading = read(text)
    if reading.outcome not in ("positive", "negative"):
        assert reading.outcome in MISSING and reading.value is None and reading.error
        return
    wanted = ("true", "yes") if reading.outcome == "positive" else ("false", "no")
    if reading.rung == "word":
        word = _CLOSED.sub(" ", text).rpartition("</think>")[2].strip().strip('"').strip().rstrip(".!").lower()
        assert word in wanted
        return
    claims = _CLAIM.findall(_CLOSED.sub(" ", text).rpartition("</think>")[2])
    assert [c.strip("\"'“”‘’ ").lower() in wanted for c in claims] == [True]


_objects = st.sampled_from(['{"covered": true}', '{"covered": false}', "{'covered': True}", '{"covered": "yes",}'])
_fenced = _objects.map(lambda o: f"{FENCE}json\n{o}\n{FENCE}")
_words = st.sampled_from(["Yes.", "no", "TRUE", "false!"])
_forms = st.one_of(_objects, _fenced, _words)


@given(
    st.lists(_forms, min_size=2, max_size=4), st.sampled_from(["", " ", "\n", "\n\n", ", ", " or ", "\nFinal answer: "])
)
def test_two_verdicts_are_none_even_where_they_agree(forms, between):
    assert read(between.join(forms)).outcome == "unparsed"


@given(
    st.sampled_from(
        ["not", "Not:", "I would never say", "It is wrong to say:", "n't", "This isn't:", "instead of", "không"]
    ),
    _objects,
)
def test_an_object_that_is_denied_in_its_line_is_no_verdict(denial, form):
    assert read(f"{denial} {form}").outcome == "unparsed"


@given(_objects, st.sampled_from([" is wrong", " would be false", "? No", " - or not", " if the duty applied"]))
def test_an_object_that_its_line_goes_on_about_is_no_verdict(form, rest):
    assert read(form + rest).outcome == "unparsed"


_letters = st.text(st.characters(categories=["L"]), max_size=6)


@given(_letters, st.sampled_from(["yes", "no", "true", "false", "correct"]), _letters, st.sampled_from(["", ".", "!"]))
@example("in", "correct", "", "")
@example("un", "true", "", ".")
def test_a_word_inside_a_longer_word_is_no_verdict(before, word, after, end):
    if not before and not after and word != "correct":
        return
    for text in (before + word + after + end, f"not {word}{after}{end}", f"{word}, {before}x"):
        assert read(text).outcome in ("unparsed", "refused"), text


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(_json)
@example("Yes, it does")
@example([True])
@example({"covered": True})
def test_a_value_of_another_kind_is_no_verdict(value):
    if isinstance(value, bool) or (
        isinstance(value, str) and value.strip().rstrip(".!").casefold() in ("yes", "no", "true", "false")
    ):
        return
    assert read(json.dumps({"covered": value})).outcome == "unparsed"


@settings(max_examples=300)
@given(st.sampled_from(sorted(FORMS)), st.text(), st.sampled_from(["ok", "truncated"]))
def test_any_text_gives_an_outcome_of_the_schema(stage, text, outcome):
    reading = read(text, stage, outcome)
    assert reading.outcome in enum_values("VerdictOutcome")
    assert (reading.value is None) == (reading.outcome in MISSING)


# -- no less than what the reply says ------------------------------------------------------------

_extra = st.dictionaries(st.text(min_size=1, max_size=8).filter(lambda k: k not in BOOLEAN.values()), _json, max_size=3)
_space = st.text(" \n\t", max_size=4)
_wrap = st.sampled_from(["none", "fence", "named fence", "think", "think and fence", "closing tag"])


def _wrapped(body, how, thoughts):
    fenced = f"{FENCE}{'' if how == 'fence' else 'json'}\n{body}\n{FENCE}"
    think = f"<think>{thoughts}</think>"
    return {
        "none": body,
        "fence": fenced,
        "named fence": fenced,
        "think": think + body,
        "think and fence": f"{think}\n{fenced}",
        "closing tag": f"{thoughts}</think>\n{body}",
    }[how]


@settings(max_examples=400, deadline=None)
@given(
    stage=st.sampled_from(sorted(BOOLEAN)),
    value=st.booleans(),
    extra=_extra,
    first=st.booleans(),
    how=_wrap,
    space=_space,
    thoughts=st.sampled_from(["", "maybe yes", '{"covered": true}', '{"exposed": false}', "```\nno\n```", "a\nb"]),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_a_whole_object_keeps_its_verdict(stage, value, extra, first, how, space, thoughts, indent, ascii_only):
    key = BOOLEAN[stage]
    content = {key: value} | extra if first else extra | {key: value}
    body = json.dumps(content, indent=indent, ensure_ascii=ascii_only)
    if "think" in how or "tag" in how:
        # A tag inside a text of the object cannot be told from one of the reasoning.
        body = body.replace("<", "(")
    reading = read(space + _wrapped(body, how, thoughts) + space, stage)
    assert reading.outcome == ("positive" if value else "negative")
    assert reading.rung in ("as-is", "fence")


@given(st.booleans(), st.text(max_size=40), _space)
@example(True, "</think> ``` <think> {'covered': false}", "")
def test_a_reply_that_is_json_as_it_stands_is_not_searched(value, reason, space):
    """Tags, fences and objects in a reason are quotations."""
    text = space + json.dumps({"covered": value, "reason": reason}) + space
    assert (read(text).value, read(text).rung) == (value, "as-is")
    fenced = f"{FENCE}json\n{json.dumps({'reason': reason, 'covered': value})}\n{FENCE}"
    assert (read(fenced).value, read(fenced).rung) == (value, "fence")


@given(
    st.booleans(),
    st.sampled_from(["Here:", "**Verdict:**", "My verdict is as follows:\n", "It mentions the law.\n\n", ""]),
)
def test_words_that_only_introduce_the_object_are_let_through(value, introduction):
    body = json.dumps({"covered": value})
    assert read(f"{introduction} {body}").value is value
    assert read(f"{introduction}\n{FENCE}json\n{body}\n{FENCE}\nThe scenario speaks of claims.").value is value


# -- scores and categories -----------------------------------------------------------------------


@given(st.integers() | st.floats() | st.text(max_size=4) | st.booleans() | st.none())
@example(0)
@example(6)
@example(True)
@example("5")
@example("٣")
def test_a_score_is_a_whole_number_from_one_to_five(value):
    reading = read(json.dumps({"score": value}), "iss")
    text = value.strip().rstrip(".!") if isinstance(value, str) else ""
    fits = (type(value) is int and 1 <= value <= 5) or text in ("1", "2", "3", "4", "5")
    assert (reading.outcome, reading.value) == (("rated", int(str(value).strip()[0])) if fits else ("unparsed", None))


def test_every_category_is_read_in_its_spellings_and_no_other_word_is_one():
    for name in (*enum_values("AdversarialCategory"), "none"):
        for spelling in (name, name.upper(), name.replace("-", " "), name.replace("-", "_").title() + "."):
            assert read(json.dumps({"category": spelling}), "ac").value == name
            assert read(spelling, "ac").value == name
    for other in ("injection", "prompt", "not none", "none of these", "prompt-injection, role-confusion", ""):
        assert read(json.dumps({"category": other}), "ac").outcome == "unparsed"


@pytest.mark.parametrize("stage", sorted(FORMS))
def test_the_schema_given_to_a_decoder_and_the_reader_agree(stage):
    import jsonschema

    key, _ = FORMS[stage]
    schema = reply_schema(stage)
    values = {"iss": range(1, 6), "ac": [*enum_values("AdversarialCategory"), "none"]}.get(stage, [True, False])
    for value in values:
        jsonschema.validate({key: value}, schema)
        assert read(json.dumps({key: value}), stage).value == value
    assert not jsonschema.Draft202012Validator(schema).is_valid({key: "maybe"})
