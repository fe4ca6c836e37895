"""`regatta audit --changed-since`: a pull request on the law answers for the obligations that it touches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from audit_world import World
from helpers import Sheet
from test_changes import commit, git, own_git, repository  # noqa: F401 (own_git is used by each test)
from test_cli_validate import invoke

import regatta_tools
from regatta_tools.errors import InputError


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The invented package below a folder of a repository, read whole, with the branch ``edit`` checked out."""
    top = repository(tmp_path / "repo")
    world = World(top / "data").write().read_by()
    commit(top)
    git(top, "switch", "--quiet", "--create", "edit")
    return world


def edit(world: World, table: str, row: str, **cells: str) -> None:
    """Change one row where it stands: the readings and hashes of the others stay."""
    sheet = Sheet(world.root, table, "boats-us")
    sheet.set(row, **cells)
    sheet.save()


def since(world: World, revision: str = "main", **options):
    return regatta_tools.audit(world.root, texts=world.folder, changed_since=revision, **options)


def told(report) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for finding in report.findings:
        found.setdefault(finding.record, set()).add(finding.code)
    return found


def test_nothing_touched_is_nothing_told(world):
    report = since(world)
    assert (report.items, report.findings, report.ok, report.since, report.older) == ([], [], True, "main", 0)


def test_only_what_was_touched_is_told(world):
    edit(world, "facts", "boats-us-r01-f1", value="16")
    report = since(world)
    assert [i.requirement.key for i in report.items] == ["boats-us-r01"] and not report.ok
    assert told(report)["boats-us-r01-f1"] == {"A201"}
    assert sum(report.summary.values()) == 1
    # What was wrong before is counted and does not fail the change.
    commit(world.root)
    git(world.root, "switch", "--quiet", "--create", "next")
    edit(world, "requirements", "boats-us-r03", actor="owner")
    report = since(world, "edit")
    assert [i.requirement.key for i in report.items] == ["boats-us-r03"]
    assert told(report) == {"boats-us-r03": {"A243"}} and report.older >= 1 and report.ok
    assert not regatta_tools.audit(world.root, texts=world.folder).ok


def test_a_source_touches_all_that_rests_on_it(world):
    edit(world, "sources", "us-cfr-50-999", status="repealed")
    report = since(world)
    assert [i.requirement.key for i in report.items] == [f"boats-us-r{n:02d}" for n in (1, 2, 3, 4)]
    assert {"A211"} <= {f.code for f in report.findings}


def test_an_old_fault_on_a_line_that_is_touched_is_told(world):
    edit(world, "facts", "boats-us-r01-f1", value="16")
    commit(world.root)
    git(world.root, "switch", "--quiet", "--create", "next")
    edit(world, "facts", "boats-us-r01-f1", label="another")
    assert "A201" in told(since(world, "edit"))["boats-us-r01-f1"]


def test_readings_are_only_added(world):
    world.read_by("boats-us-r03-c1", reader="Minh")
    report = since(world)
    assert report.ok and [i.requirement.key for i in report.items] == ["boats-us-r03"]
    commit(world.root)
    git(world.root, "switch", "--quiet", "--create", "next")
    edit(world, "audit", "boats-us-r03-c1-a2", reader="Lan")
    sheet = Sheet(world.root, "audit", "boats-us")
    del sheet.rows[sheet.find("boats-us-r04-c1-a1")]
    sheet.save()
    report = since(world, "edit")
    gone = {f.record: f.message for f in report.findings if f.code == "A003"}
    assert gone == {"boats-us-r03-c1-a2": "this reading was changed after it was recorded: reader",
                    "boats-us-r04-c1-a1": "this reading was taken out"}  # fmt: skip
    assert not report.ok


def test_a_reading_goes_with_its_citation(world):
    for table in ("audit", "citations"):
        sheet = Sheet(world.root, table, "boats-us")
        del sheet.rows[sheet.find("boats-us-r02-c2")]
        sheet.save()
    assert not any(f.code == "A003" for f in since(world).findings)


def test_what_cannot_be_compared_is_refused(world, tmp_path):
    with pytest.raises(InputError) as caught:
        since(world, "nowhere")
    assert caught.value.code == "U113"
    code, _, err = invoke("audit", "--package", world.root, "--changed-since", "-x")
    assert code == 2 and "U113" in err
    code, _, err = invoke("audit", "--package", world.root, "--checklist", tmp_path, "--changed-since", "main")
    assert code == 2 and "not about a checklist" in err


@pytest.mark.parametrize("form", ["text", "json", "table", "github", "sarif", "junit"])
def test_every_format_holds_what_the_change_brought_in(world, form):
    edit(world, "facts", "boats-us-r01-f1", value="16")
    edit(world, "facts", "boats-us-r02-f1", value="3")
    commit(world.root)
    git(world.root, "switch", "--quiet", "--create", "next")
    edit(world, "facts", "boats-us-r04-f1", value="6")
    code, out, _ = invoke("audit", "--package", world.root, "--texts", world.folder, "--changed-since", "edit",
                          "--format", form)  # fmt: skip
    assert code == 1
    if form == "table":
        assert out.splitlines()[2].split() == ["boats-us", "1", "0", "0", "0", "0", "1"]
        return
    assert "does not state 6" in out and "does not state 16" not in out and "does not state 3" not in out
    if form == "json":
        value = json.loads(out)
        assert (value["since"], [i["requirement"] for i in value["items"]]) == ("edit", ["boats-us-r04"])
        assert value["older"] >= 2
    if form == "text":
        assert "touched since edit" in out and "older findings not shown" in out
