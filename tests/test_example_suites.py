"""The example suites keep their form, their intended mix and their independence."""

import csv
import re
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
SUITES = {
    "claims": (ROOT / "examples/suites/insurance-us-claims.yaml", "insurance-us-claims", 30),
    "demo": (ROOT / "examples/suites/insurance-us-demo.yaml", "insurance-us-demo", 5),
    "calibration": (ROOT / "examples/calibration/insurance-us.yaml", "insurance-us-calibration", 16),
}
NAMES = list(SUITES)
FAULT_IDS = re.compile(r"insurance-us-(r\d\d|fault)|ins-us-", re.I)


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def suite(name):
    return read(SUITES[name][0])


def labels(name):
    return read(label_path(name))


def label_path(name):
    return SUITES[name][0].with_suffix(".labels.yaml")


def texts(scenario):
    """Every text of a scenario, with what the agent never sees."""
    found = [turn["text"] for turn in scenario["turns"]]
    found += [scenario[key] for key in ("context", "expected") if key in scenario]
    return found + list(scenario.get("claims", {}).values())


def words(text):
    return re.findall(r"[^\W_]+", text.lower())


def runs(text, length):
    w = words(text)
    return {" ".join(w[i : i + length]) for i in range(len(w) - length + 1)}


def suite_runs(name, length):
    return set().union(*(runs(t, length) for s in suite(name)["scenarios"] for t in texts(s)))


def file_texts(folder):
    """The texts of a folder; archives are opened, bytes that are no UTF-8 are passed over."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                try:
                    blobs = [archive.read(n) for n in archive.namelist()]
                except NotImplementedError:  # a packing that the standard library does not know
                    blobs = []
        else:
            blobs = [path.read_bytes()]
        for blob in blobs:
            text = blob.decode("utf-8", errors="ignore")
            text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m.group(1), 16)), text)
            yield path, re.sub(r"\\[nrt\"]", " ", text)


# --- form, read from the schema itself -------------------------------------------------------------

SCHEMA = read(ROOT / "schema/suite.yaml")
CORE = read(ROOT / "schema/core.yaml")
TYPES = {**CORE["types"], **SCHEMA["types"]}
ENUMS = {**CORE["enums"], **SCHEMA["enums"]}


def problems(value, class_name, where):
    """What keeps a mapping from having the form of a class of schema/suite.yaml."""
    if not isinstance(value, dict):
        return [f"{where}: not a mapping"]
    attributes = SCHEMA["classes"][class_name]["attributes"]
    found = [f"{where}: unknown key {key}" for key in value if key not in attributes]
    for name, slot in attributes.items():
        here = f"{where}.{name}"
        if name not in value:
            found += [f"{here}: missing"] if slot.get("required") else []
            continue
        items = value[name]
        if not slot.get("multivalued"):
            items = [items]
        elif not isinstance(items, list):
            found.append(f"{here}: not a list")
            continue
        elif len(items) < slot.get("minimum_cardinality", 0):
            found.append(f"{here}: too few")
        for number, item in enumerate(items):
            found += slot_problems(item, slot, f"{here}[{number}]")
    return found


def slot_problems(item, slot, here):
    kind = slot.get("range", "string")
    if kind in SCHEMA["classes"]:
        return problems(item, kind, here)
    if not isinstance(item, str):
        return [f"{here}: not text"]
    if kind in ENUMS:
        return [] if item in ENUMS[kind]["permissible_values"] else [f"{here}: {item!r} is not one of {kind}"]
    pattern = r"^\d{4}-\d{2}-\d{2}$" if kind == "date" else TYPES.get(kind, {}).get("pattern")
    patterns = [p for p in (pattern, slot.get("pattern")) if p]
    return [f"{here}: {item!r} does not match {p}" for p in patterns if not re.search(p, item)]


@pytest.mark.parametrize("name", NAMES)
def test_form(name):
    assert problems(suite(name), "Suite", name) == []
    assert problems(labels(name), "LabelSet", name) == []


def test_form_checker_finds_faults():
    first = {"id": "s01", "turns": [{"speaker": "bot", "text": " "}]}
    broken = {"id": "A b", "cell": "insurance-us", "note": "x", "scenarios": [first, {"turns": []}]}
    found = "\n".join(problems(broken, "Suite", "x"))
    for part in (
        "unknown key note",
        "'A b' does not match",
        "is not one of Speaker",
        "' ' does not match",
        "id: missing",
        "turns: too few",
    ):
        assert part in found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path_of", [lambda n: SUITES[n][0], label_path], ids=["suite", "labels"])
def test_yaml_1_1_and_1_2_agree(name, path_of):
    """No plain scalar that a reader could take for a date, a number or a truth value."""
    text = path_of(name).read_text(encoding="utf-8")
    assert yaml.safe_load(text) == yaml.load(text, Loader=yaml.BaseLoader)


@pytest.mark.parametrize("name", NAMES)
def test_number_and_uniqueness(name):
    _, identifier, count = SUITES[name]
    s = suite(name)
    ids = [x["id"] for x in s["scenarios"]]
    assert (s["id"], s["cell"], s["language"]) == (identifier, "insurance-us", "en")
    assert len(ids) == count == len(set(ids))
    if name != "demo":
        letter = {"claims": "s", "calibration": "c"}[name]
        assert ids == [f"{letter}{n:02d}" for n in range(1, count + 1)]


@pytest.mark.parametrize("name", NAMES)
def test_lengths(name):
    for scenario in suite(name)["scenarios"]:
        for turn in scenario["turns"]:
            assert len(turn["text"].split()) <= 90, scenario["id"]
        assert len(scenario.get("context", "").split()) < 60, scenario["id"]
        assert scenario["turns"][0]["speaker"] == scenario["turns"][-1]["speaker"] == "user", scenario["id"]


def test_turns():
    several = [s["id"] for s in suite("claims")["scenarios"] if sum(t["speaker"] == "user" for t in s["turns"]) > 1]
    assert 4 <= len(several) <= 5
    assert all(len(s["turns"]) == 1 for s in suite("demo")["scenarios"])


def test_braces_and_percent_survive():
    first = next(s for s in suite("claims")["scenarios"] if s["id"] == "s26")["turns"][0]["text"]
    assert "{{policy_no}}" in first and "15 %" in first


# --- labels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_labels_complete(name):
    label_set, s = labels(name), suite(name)
    assert label_set["suite"] == s["id"] and label_set["cell"] == s["cell"]
    assert label_set["labeller_kind"] == "ai"
    assert [x["scenario"] for x in label_set["labels"]] == [x["id"] for x in s["scenarios"]]
    for entry in label_set["labels"]:
        assert entry["why"].strip(), entry["scenario"]
        for key in ("requirements", "faults"):
            assert len(entry[key]) == len(set(entry[key])), entry["scenario"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table, key", [("requirements", "requirements"), ("faults", "faults")])
def test_label_targets_exist(name, table, key):
    path = ROOT / "instruments/insurance-us" / f"{table}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there yet: label targets not checked")
    with path.open(encoding="utf-8", newline="") as stream:
        known = {row["id"] for row in csv.DictReader(stream)}
    used = {target for entry in labels(name)["labels"] for target in entry[key]}
    assert used and used <= known, used - known


def test_demo_is_part_of_claims():
    whole = SUITES["claims"][0].read_text(encoding="utf-8")
    demo = SUITES["demo"][0].read_text(encoding="utf-8")
    blocks = [b for b in re.split(r"(?m)^(?=  - id: )", demo) if b.startswith("  - id: ")]
    assert len(blocks) == 5
    for block in blocks:
        assert block in whole, block.splitlines()[0]
    by_id = {e["scenario"]: e for e in labels("claims")["labels"]}
    for entry in labels("demo")["labels"]:
        assert entry == by_id[entry["scenario"]]


def test_mix_of_claims():
    entries = labels("claims")["labels"]
    assert sum(not e["requirements"] for e in entries) >= 9
    assert 10 <= len({r for e in entries for r in e["requirements"]}) <= 14
    assert 1 <= len({f for e in entries for f in e["faults"]}) <= 4


def test_mix_of_calibration():
    entries = labels("calibration")["labels"]
    assert sum(not e["requirements"] for e in entries) >= 5
    assert len({f for e in entries for f in e["faults"]}) == 5
    tested = {r for e in entries for r in e["requirements"]}
    touched = set(re.findall(r"\br\d\d\b", label_path("calibration").read_text(encoding="utf-8").split("suite:")[0]))
    every = {f"insurance-us-r{n:02d}" for n in range(1, 26)}
    assert tested | {f"insurance-us-{r}" for r in touched} == every
    assert not tested & {f"insurance-us-{r}" for r in touched}


# --- independence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_id_in_texts(name):
    for scenario in suite(name)["scenarios"]:
        for text in texts(scenario):
            assert not FAULT_IDS.search(text), (scenario["id"], text)


def test_calibration_shares_nothing_with_claims():
    assert suite_runs("claims", 8) & suite_runs("calibration", 8) == set()


@pytest.mark.shared
@pytest.mark.parametrize("folder", ["cases/suites", "archive", "legal"])
def test_nothing_copied(folder):
    if not (SHARED / folder).is_dir():
        pytest.skip(f"{SHARED / folder} is not there: copying not checked")
    own = suite_runs("claims", 10) | suite_runs("calibration", 10)
    shared = [(path.name, run) for path, text in file_texts(SHARED / folder) for run in own & runs(text, 10)]
    assert shared == []
