"""Stored runs as they are: a list of them, one call with all that went out and came back, a table of everything."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

from regatta_tools.errors import InputError, RegattaError
from regatta_tools.files import replace_file
from regatta_tools.harness.kept import prompt, prompts
from regatta_tools.harness.store import RUN, RunStore
from regatta_tools.text import sha256_json

#: Columns of an exported run, in this order: whose judgement, what it was, and the call that it was read in.
COLUMNS = (
    "run", "suite", "cell", "stage", "target", "scenario", "draw", "arm", "judge", "outcome", "value", "rung", "error",
    "call", "model", "served_model", "call_outcome", "finish_reason", "text", "prompt_tokens", "completion_tokens",
    "cost_usd", "attempts", "cached", "prompt_hash", "prompt",
)  # fmt: skip
_OF_CALL = (
    "model", "served_model", "finish_reason", "text", "prompt_tokens", "completion_tokens", "cost_usd", "attempts",
    "cached", "prompt_hash",
)  # fmt: skip


def runs(folder: Path | str, *, package: Any = None) -> list[dict[str, Any]]:
    """The runs in a folder, or the one that it is, by name.

    Each row: ``folder``, ``suite``, ``cell``, ``complete``, ``pending`` (judgements to be made), ``calls``, ``usd``
    (``None`` where a price is not known), ``missing`` (verdicts without a value, by kind). A run that cannot be read or
    scored with this package has ``folder`` and ``problem``. Raises :class:`InputError` where there is no such folder.
    """
    from regatta_tools.tables.package import Package
    from regatta_tools.validation.run import load

    root = Path(folder)
    if not root.is_dir():
        raise InputError("there is no such folder", code="U107", place=str(root), mend="name the folder of your runs")
    found = [root] if (root / RUN).exists() else sorted(p.parent for p in root.glob(f"*/{RUN}"))
    held = package if isinstance(package, Package) or not found else load(package)
    return [_row(path, held) for path in found]


def _row(path: Path, package: Any) -> dict[str, Any]:
    from regatta_tools.measures.evidence import score

    try:
        store = RunStore.read(path)
        evidence = score(store, package=package)
    except RegattaError as error:
        return {"folder": str(path), "problem": f"{error.message} [{error.code}]"}
    missing = Counter(v["outcome"] for v in store.verdicts.values())
    return {
        "folder": str(path),
        "suite": store.manifest["suite"],
        "cell": store.manifest["cell"],
        "complete": evidence["complete"],
        "pending": sum(row["pending"] for row in evidence["outcomes"]),
        "calls": len(store.calls),
        "usd": evidence["cost"]["usd"],
        "missing": {k: n for k, n in sorted(missing.items()) if k not in ("positive", "negative", "rated")},
    }


def show(run: Path | str, call: str) -> dict[str, Any]:
    """One call of a run: ``call`` as journalled, ``prompt`` as it was sent (``None`` where it was not kept),
    ``prompt_fits`` (whether its hash is that of the journal), ``verdicts`` that were read in it.

    ``call`` is its key, its number in the journal from 1, or a part of its key that no other has. Raises
    :class:`InputError` (U107, U173).
    """
    store = RunStore.read(run)
    key = _key(store, call)
    held = store.calls[key]
    sent = prompt(store.folder, held["prompt_hash"])
    fits = sent is not None and held["prompt_hash"] == sha256_json(
        [sent["messages"], sent["temperature"], sent["max_tokens"], sent["seed"]]
    )
    return {
        "call": {k: v for k, v in held.items() if k != "e"},
        "prompt": sent,
        "prompt_fits": fits,
        "verdicts": [_plain(v) for v in store.verdicts.values() if v.get("call") == key],
    }


def _key(store: RunStore, call: str) -> str:
    keys = list(store.calls)
    if call in store.calls:
        return call
    if call.isdecimal():
        if 1 <= int(call) <= len(keys):
            return keys[int(call) - 1]
        raise InputError(
            f"the run has {len(keys)} calls, none with the number {call}", code="U173", place=str(store.folder)
        )
    near = [key for key in keys if call in key]
    if len(near) == 1:
        return near[0]
    what = f"{len(near)} calls have {call!r} in their keys" if near else f"no call has {call!r} in its key"
    some = f": {', '.join((near or keys)[:5])}" + (" ..." if len(near or keys) > 5 else "")
    raise InputError(what, code="U173", place=str(store.folder), mend=f"name one of them{some}")


def _plain(verdict: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in verdict.items() if k != "e"}


def table(run: Path | str) -> list[dict[str, Any]]:
    """Everything that a run holds, one row for each verdict and for each call in which none was read (the agent's
    answers, replies that were cut and asked for again), in an order that does not depend on when calls ended.

    Columns are :data:`COLUMNS`; ``None`` where there is nothing. ``prompt`` is the list of messages as JSON.
    """
    store = RunStore.read(run)
    sent = {p["prompt_hash"]: p["messages"] for p in prompts(store.folder)}
    who = {"run": store.folder.resolve().name, "suite": store.manifest["suite"], "cell": store.manifest["cell"]}
    rows = []
    for verdict in store.verdicts.values():
        call = store.calls.get(verdict.get("call") or "")
        rows.append(who | _plain(verdict) | (_of_call(call, sent) if call else {}))
    # A verdict that says that no answer came was read in nothing.
    read = {v.get("call") for v in store.verdicts.values() if v["outcome"] != "no-answer"}
    for key, call in store.calls.items():
        if key not in read:
            rows.append(who | {"stage": call["stage"], "call": key} | _of_call(call, sent))
    order = ("stage", "target", "scenario", "draw", "arm", "call")
    rows.sort(key=lambda row: tuple(str(row.get(name) or "") for name in order))
    return [{name: row.get(name) for name in COLUMNS} for row in rows]


def _of_call(call: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    messages = sent.get(call["prompt_hash"])
    return {name: call.get(name) for name in _OF_CALL} | {
        "call_outcome": call["outcome"],
        "prompt": None if messages is None else json.dumps(messages, ensure_ascii=False),
    }


def export(run: Path | str, to: Path | str) -> int:
    """Write :func:`table` as ``.jsonl``, ``.csv`` or ``.parquet``; the number of rows.

    Raises :class:`InputError` for another ending (U173) or where Parquet needs a package that is not installed (U208),
    and :class:`~regatta_tools.errors.EnvironmentProblem` where the file cannot be written.
    """
    to = Path(to)
    writers = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
    write = writers.get(to.suffix.lower())
    if write is None:
        raise InputError(
            "the form of a table is read off its name",
            code="U173",
            place=str(to),
            mend=f"end it in {', '.join(writers)}",
        )
    rows = table(run)
    replace_file(to, write(rows, to))
    return len(rows)


def _jsonl(rows: list[dict[str, Any]], _: Path) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _csv(rows: list[dict[str, Any]], _: Path) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", "backslashreplace")


def _parquet(rows: list[dict[str, Any]], to: Path) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow, which is not installed", code="U208", place=str(to),
            mend="pip install 'regatta-tools[parquet]', or write .jsonl or .csv",
        ) from error  # fmt: skip
    kinds = {"draw": pa.int64(), "prompt_tokens": pa.int64(), "completion_tokens": pa.int64(), "attempts": pa.int64(),
             "cost_usd": pa.float64(), "cached": pa.bool_()}  # fmt: skip
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    return sink.getvalue()
