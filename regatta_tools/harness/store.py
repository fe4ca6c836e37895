"""The run store: what a run was asked to do, and an append-only journal of all that happened.

A folder holds ``run.json`` (written once, atomically, before the first call), ``journal.jsonl``, and ``prompts.jsonl``
(:mod:`regatta_tools.harness.kept`). One line of the journal is one event, written whole:

``{"e": "start", "key": ...}``
    a call is about to be sent. A start without a call after it was in flight when the run was killed:
    it may have been answered and paid for, so it is sent again and counted as resent.
``{"e": "call", ...}``
    a call as it came back (class ``Call`` of the schema), on the disk before the run goes on with it.
``{"e": "verdict", ...}``
    what was read in it (class ``Verdict``). It can be read in the call again, so it reaches the disk with the next
    call or at the end.
``{"e": "stop", "key": ...}``
    the provider could not be asked (wrong key, no connection): the call counts as not made. It also
    takes back a failed call and its verdict, so that an outage leaves no missing verdicts behind.

Many threads may append. Calls that end at the same time share one flush to the disk (group commit); none of them counts
before that flush has returned. The order of lines follows the order in which calls end and says nothing else.

Reading keeps the last verdict and call of each key. A call that was asked again (:meth:`RunStore.ask_again`) replaces
the old one when it is in, and its verdicts count until they are read anew. What cannot be read is reported, never
guessed at: half a last line after a kill moves to ``journal.damaged`` when the run goes on, a row that is no event of
the schema stays where it is and counts for nothing.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from regatta_tools.errors import EnvironmentProblem, InputError
from regatta_tools.files import append_line, cannot_write, replace_file
from regatta_tools.harness.kept import Kept
from regatta_tools.tables.model import enum_values

#: The suite of a calibration, which is a run of judges and not of a suite.
GOLD = "gold-probes"
RUN, JOURNAL, DAMAGED, LOCK = "run.json", "journal.jsonl", "journal.damaged", ".lock"
#: Stage, target, scenario, draw, arm (empty but for the execution stage).
VerdictKey = tuple[str, str, str, int, str]
#: Outcomes that the judges of a stage cannot have.
_NOT_OF = {
    "rc": ("rated",),
    "design": ("rated",),
    "execution": ("rated",),
    "iss": ("positive", "negative"),
    "ac": ("positive", "negative"),
}
#: What belongs to one opened store and not to what it read.
_OWN = ("_lock", "_descriptor", "_change", "_again", "_prompts")
#: Kinds of calls that brought nothing because something went wrong on the way.
FAILED = ("failed",)
_LONE = re.compile("[\ud800-\udfff]")


def line_of(event: dict[str, Any]) -> bytes:
    """An event as one line of strict JSON in UTF-8. Lone surrogates are escaped: they have no bytes of their own."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return (_LONE.sub(lambda m: f"\\u{ord(m[0]):04x}", text) + "\n").encode("utf-8")


def _cannot_read(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be read: {error.strerror or error}",
        code="U107",
        place=str(path),
        mend="see that it is a file and may be read, or name another folder",
    )


class RunStore:
    """One run folder, open for reading; :meth:`open_for_writing` takes the lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: dict[str, dict[str, Any]] = {}
        self.verdicts: dict[VerdictKey, dict[str, Any]] = {}
        self.starts: Counter[str] = Counter()
        #: Starts that came to an end, by a call or by a stop.
        self.ends: Counter[str] = Counter()
        self.notes: list[str] = []
        #: Dollars that the journalled calls cost, those included that were asked again later.
        self.spent_usd = 0.0
        #: Calls that were sent and not taken back before they were answered.
        self.sent = 0
        #: The call that a later one of the same key replaced.
        self._replaced: dict[str, dict[str, Any]] = {}
        #: Verdicts that were read in a call which has since been replaced.
        self._outdated: set[VerdictKey] = set()
        #: Calls that were taken back after they failed, until they are made.
        self._withdrawn: set[str] = set()
        self._again: set[str] = set()
        #: Calls whose last event is their start.
        self._begun: set[str] = set()
        self._fragment: int | None = None
        self._damaged: list[bytes] = []
        self._descriptor: int | None = None
        self._lock: Any = None
        self.manifest: dict[str, Any] = {}
        self._prompts = Kept(folder)
        #: Guards all that changes, and tells those who wait for the disk.
        self._change = threading.Condition(threading.Lock())
        #: Lines since the last flush, the number of lines written and of those on the disk.
        self._pending: list[tuple[dict[str, Any], bytes]] = []
        self._written = self._synced = 0
        self._flushing = False
        self._broken: OSError | None = None

    # -- reading ---------------------------------------------------------------------------------

    @classmethod
    def read(cls, folder: Path | str) -> RunStore:
        """Read a run. Raises :class:`InputError` where the folder holds none."""
        store = cls(Path(folder))
        path = store.folder / RUN
        try:
            store.manifest = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(
                "this folder holds no run", code="U107", place=str(folder), mend="name the folder of a run"
            ) from error
        except OSError as error:
            raise _cannot_read(path, error) from error
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"no JSON: {error}", code="U107", place=str(path), mend="name the folder of a run"
            ) from error
        _check_manifest(store.manifest, path)
        store._read_journal()
        return store

    def _read_journal(self) -> None:
        path = self.folder / JOURNAL
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise _cannot_read(path, error) from error
        end = raw.rfind(b"\n") + 1
        if end < len(raw):
            self._fragment = end
            self._damaged.append(raw[end:])
            self.notes.append("the journal ends in half a line; it is left out and its call counts as not made")
        for number, line in enumerate(raw[:end].split(b"\n")[:-1], 1):
            try:
                event = json.loads(line)
                _check_event(event)
            except (ValueError, TypeError, OverflowError, RecursionError):
                self.notes.append(f"journal line {number} is no event and is left out")
            else:
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["e"]
        if kind == "start":
            self.starts[event["key"]] += 1
            self._begun.add(event["key"])
            self.sent += 1
        elif kind == "call":
            self._take_call(event)
        elif kind == "verdict":
            # The verdict of a call that another thread has taken back in the meantime.
            if event.get("call") in self._withdrawn:
                return
            key = self.verdict_key(event)
            self.verdicts[key] = event
            self._outdated.discard(key)
        else:
            self._take_back(event["key"])

    def _take_call(self, event: dict[str, Any]) -> None:
        key = event["key"]
        if key in self.calls:
            self._replaced[key] = self.calls[key]
            self._outdated |= {k for k, v in self.verdicts.items() if v.get("call") == key}
        self.calls[key] = event
        self.ends[key] += 1
        self._begun.discard(key)
        self.spent_usd += (event.get("cost_usd") or 0.0) + (event.get("lost_usd") or 0.0)
        self._again.discard(key)
        self._withdrawn.discard(key)

    def _take_back(self, key: str) -> None:
        held = self.calls.get(key)
        if key in self._begun or held is None:
            # It was not made; what an earlier asking brought stands.
            self._begun.discard(key)
            self.ends[key] += 1
            self.sent -= 1
        elif held["outcome"] == "failed":
            if key in self._replaced:
                self.calls[key] = self._replaced.pop(key)
                return
            del self.calls[key]
            self._withdrawn.add(key)
            for verdict in [k for k, v in self.verdicts.items() if v.get("call") == key]:
                del self.verdicts[verdict]

    @staticmethod
    def verdict_key(event: dict[str, Any]) -> VerdictKey:
        return event["stage"], event.get("target") or "", event["scenario"], int(event["draw"]), event.get("arm") or ""

    def held(self, key: str) -> dict[str, Any] | None:
        """The journalled call of a key, ``None`` where there is none or it is to be asked again."""
        return None if key in self._again else self.calls.get(key)

    def verdict(self, stage: str, target: str, scenario: str, draw: int = 1, arm: str = "") -> dict[str, Any] | None:
        """The verdict (at the execution stage of the joint arm, unless another is named), ``None`` where it is to be
        asked for: while the store is open for writing, also where its call is to be made again, or has been and was
        not read yet. :attr:`verdicts` has the old ones too."""
        key = (stage, target, scenario, draw, arm or ("joint" if stage == "execution" else ""))
        found = self.verdicts.get(key)
        if found is None or self._descriptor is None:
            return found
        return None if key in self._outdated or found.get("call") in self._again else found

    def missing(self, kinds: Iterable[str] = FAILED) -> list[str]:
        """Keys of the calls whose outcome is one of these kinds, or whose reply held no verdict of these kinds
        (``unparsed``, ``refused`` ...), in the order of the journal."""
        wanted = {*kinds}
        read = {v.get("call") for v in self.verdicts.values() if v["outcome"] in wanted}
        return [key for key, call in self.calls.items() if call["outcome"] in wanted or key in read]

    def ask_again(self, keys: Iterable[str]) -> int:
        """Have these calls made anew; how many there are. The old call and its verdicts stay, in the journal and in
        every measure, until the new ones are in.

        ``store.ask_again(store.missing())`` is what ``--retry-failed`` means. To ask again what was answered until the
        answer pleases would be choosing: only calls that failed are asked again unless other kinds are named.
        """
        with self._change:
            self._again = {key for key in keys if key in self.calls}
            return len(self._again)

    def unanswered(self, key: str) -> int:
        """How often a call was sent without anyone knowing what became of it (a kill): each may have been charged."""
        return max(0, self.starts[key] - self.ends[key])

    @property
    def resent(self) -> int:
        """Calls that were sent more than once because a kill left their reply unknown."""
        return sum(max(0, n - max(1, self.ends[key])) for key, n in self.starts.items())

    # -- writing ---------------------------------------------------------------------------------

    def open_for_writing(self, manifest: dict[str, Any]) -> None:
        """Create the run, or take it up again where it was made by the same words.

        Raises :class:`InputError` (U108) with what differs where it was not, and
        :class:`EnvironmentProblem` where the folder cannot be written or another process writes to it.
        """
        import filelock

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = filelock.FileLock(str(self.folder / LOCK), timeout=0)
            self._lock.acquire()
        except filelock.Timeout as error:
            raise EnvironmentProblem(
                "another process writes to this run",
                code="E306",
                place=str(self.folder),
                mend="wait for it, or use --out",
            ) from error
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        except NotImplementedError as error:
            raise EnvironmentProblem(
                "the file system of this folder knows no locks, so two runs could write at once",
                code="E304",
                place=str(self.folder),
                mend="choose another place with --out",
            ) from error
        try:
            path = self.folder / RUN
            if path.exists():
                held = RunStore.read(self.folder)
                changed = differences(held.manifest, manifest)
                if changed:
                    raise InputError(
                        "this run was started with other settings, so it cannot go on: " + "; ".join(changed),
                        code="U108",
                        place=str(self.folder),
                        mend="give --out another folder for a new run, or bring back what changed",
                    )
                self.__dict__.update({k: v for k, v in held.__dict__.items() if k not in _OWN})
            else:
                journal = self.folder / JOURNAL
                if journal.exists() and journal.stat().st_size:
                    raise InputError(
                        "this folder holds a journal without the run.json that it belongs to",
                        code="U107",
                        place=str(self.folder),
                        mend="bring run.json back, or give --out another folder",
                    )
                self._fragment, self._damaged = None, []
                replace_file(path, (json.dumps(manifest, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))
                self.manifest = manifest
            self._set_aside()
            self._prompts.open_for_writing()
            self._descriptor = os.open(self.folder / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            self.close()
            raise cannot_write(self.folder, error) from error
        except BaseException:
            self.close()
            raise

    def _set_aside(self) -> None:
        """Move half a line out of the journal: first a copy to the disk, then the cut."""
        if self._fragment is None:
            return
        with open(self.folder / DAMAGED, "ab") as stream:
            stream.write(b"".join(self._damaged) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.truncate(self.folder / JOURNAL, self._fragment)
        self._fragment, self._damaged = None, []

    def keep_prompt(self, prompt_hash: str, sent: dict[str, Any]) -> None:
        """Keep a prompt as it is sent, once for each hash. Raises :class:`EnvironmentProblem`."""
        with self._change:
            self._prompts.add(prompt_hash, sent)

    def append(self, event: dict[str, Any]) -> None:
        """Write one event, whole or not at all, and take it in; from any thread. Raises :class:`EnvironmentProblem`.

        A call or a stop is on the disk when this returns. After a write that failed the store takes nothing more.
        """
        line = line_of(event)
        with self._change:
            self._write(event, line)
            # A start need not survive a power cut: at worst its call is not counted as resent. A verdict can be read
            # in its call again.
            if event["e"] in ("start", "verdict"):
                self._take(event)
                return
            number = self._written
            while self._synced < number:
                if self._broken is not None:
                    raise cannot_write(self.folder / JOURNAL, self._broken) from self._broken
                if self._flushing:
                    self._change.wait()
                else:
                    self._flush()

    def _write(self, event: dict[str, Any], line: bytes) -> None:
        if self._descriptor is None:
            raise RuntimeError("the store is not open for writing")
        if self._broken is not None:
            raise cannot_write(self.folder / JOURNAL, self._broken) from self._broken
        try:
            append_line(self._descriptor, line, sync=False)
        except OSError as error:
            self._broken = error
            raise cannot_write(self.folder / JOURNAL, error) from error
        self._pending.append((event, line))
        self._written += 1

    def _flush(self) -> None:
        """Bring all that is written to the disk, for every thread that waits, and take it in. Others may write on."""
        assert self._descriptor is not None
        descriptor, target, count = self._descriptor, self._written, len(self._pending)
        self._flushing = True
        self._change.release()
        failed: OSError | None = None
        try:
            os.fsync(descriptor)
        except OSError as error:
            failed = error
        finally:
            self._change.acquire()
            self._flushing = False
            self._change.notify_all()
        if failed is not None:
            self._broken = failed
            self._unwrite()
            return
        for event, _ in self._pending[:count]:
            if event["e"] not in ("start", "verdict"):
                self._take(event)
        del self._pending[:count]
        self._synced = target

    def _unwrite(self) -> None:
        """Take the calls that the disk did not keep out of the journal again; what was taken in stays."""
        assert self._descriptor is not None
        kept = b"".join(line for event, line in self._pending if event["e"] in ("start", "verdict"))
        size = os.fstat(self._descriptor).st_size - sum(len(line) for _, line in self._pending)
        with suppress(OSError):
            os.ftruncate(self._descriptor, size)
            os.write(self._descriptor, kept)
        self._pending = []

    def close(self) -> None:
        with self._change:
            while self._flushing:
                self._change.wait()
            if self._descriptor is not None:
                # The last verdicts. Where the disk does not take them, they are read in their calls again.
                if self._pending and self._broken is None:
                    with suppress(OSError):
                        os.fsync(self._descriptor)
                self._pending = []
                os.close(self._descriptor)
                self._descriptor = None
            self._prompts.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@lru_cache(maxsize=4)
def _engine(name: str) -> Any:
    from regatta_tools.tables.shape import validator

    return validator(name)


def _check_manifest(manifest: Any, path: Path) -> None:
    if not _engine("Run").is_valid(manifest) or not all(manifest[k] for k in ("scenarios", "requirements", "faults")):
        raise InputError(
            "this is no run of this version of REGATTA", code="U107", place=str(path), mend="name the folder of a run"
        )


def _check_event(event: Any) -> None:
    """``ValueError`` where a row is no event of the schema, or says what its stage cannot say."""
    kind = event.get("e") if isinstance(event, dict) else None
    rest = {k: v for k, v in event.items() if k != "e"} if kind else {}
    if kind in ("start", "stop"):
        fits = set(rest) == {"key"} and isinstance(rest["key"], str)
    elif kind == "call":
        fits = _engine("Call").is_valid(rest)
    else:
        fits = kind == "verdict" and _engine("Verdict").is_valid(rest) and _says_what_it_can(rest)
    if not fits:
        raise ValueError(kind)


def _says_what_it_can(verdict: dict[str, Any]) -> bool:
    stage, outcome = verdict["stage"], verdict["outcome"]
    if stage not in _NOT_OF or outcome in _NOT_OF[stage]:
        return False
    if outcome != "rated":
        return True
    values = ("1", "2", "3", "4", "5") if stage == "iss" else ("none", *enum_values("AdversarialCategory"))
    return verdict.get("value") in values


def differences(held: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs between two manifests, in words. The hashes come first: they name what changed."""
    words = {
        "regatta": "the version of REGATTA",
        "package": "the cell's requirements, citations, facts or faults",
        "suite": "the suite",
        "prompts": "the prompt templates",
        "models": "the models or their settings",
    }
    changed = [
        f"{text} changed"
        for key, text in words.items()
        if held.get("made_with", {}).get(key) != wanted["made_with"].get(key)
    ]
    for key in wanted:
        if key in ("made_with", "models", "id") or held.get(key) == wanted[key]:
            continue
        if key == "preregistration":
            changed.append("the thresholds changed" if held.get(key) else "it was started without thresholds")
            continue
        if key in ("scenarios", "requirements", "faults"):
            changed.append(f"the list of {key} changed")
        else:
            changed.append(f"{key} was {held.get(key)!r}, is {wanted[key]!r}")
    return changed
