"""What several test files share: a package to spoil, and the material beside the repository."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from regatta_tools.tables.descriptor import build

ROOT = Path(__file__).resolve().parents[1]

# Time limits on single examples say more about a shared machine than about the code.
settings.register_profile(
    "regatta", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=int(os.environ.get("REGATTA_EXAMPLES", "40")),
)  # fmt: skip
settings.load_profile("regatta")

# What reads, writes and speaks: these files run a second time under the C locale (make test).
LOCALE = {
    "test_cases", "test_cli_validate", "test_finding_formats", "test_formatter", "test_locale", "test_pages",
    "test_reader", "test_suites", "test_validation",
}  # fmt: skip


# Of these a second run shows nothing more: they are about sizes and bounds, or start both locales themselves.
ONCE = {
    "test_a_cell_of_the_greatest_size_costs_no_time", "test_every_command_says_the_same_in_every_locale",
    "test_a_file_that_unfolds_without_end_is_refused_in_bounds", "test_a_huge_table_is_few_findings_in_little_time",
    "test_a_c_locale_changes_nothing", "test_a_descriptor_with_a_million_entries_is_refused_at_once",
    "test_nothing_heavy_is_imported",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in LOCALE and item.name.partition("[")[0] not in ONCE:
            item.add_marker(pytest.mark.locale)


def redescribe(root: Path) -> None:
    """Write datapackage.json anew, so that an edit of a table is the only thing that is wrong."""
    (root / "datapackage.json").write_text(json.dumps(build(root), ensure_ascii=False, indent=2), encoding="utf-8")


def one_cell(root: Path, cell: str = "insurance-us", gold: bool = False) -> Path:
    """Copy one cell of the real package, with the sources that it cites, as a package of its own below ``root``.

    Without its gold probes unless they are asked for: they are most of its rows, and nothing is judged by them.
    """
    left_out = None if gold else shutil.ignore_patterns("gold_*.csv")
    shutil.copytree(ROOT / "instruments" / cell, root / "instruments" / cell, ignore=left_out)

    def rows(path: Path) -> list[dict[str, str]]:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    cited = {r[c] for r in rows(ROOT / "instruments" / cell / "citations.csv") for c in ("source", "kept_in_force_by")}
    for name, kept in (("cells", {cell}), ("sources", cited)):
        found = rows(ROOT / "instruments" / f"{name}.csv")
        with (root / "instruments" / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(r for r in found if r["id"] in kept)
    redescribe(root)
    return root


@pytest.fixture
def package_copy(tmp_path: Path) -> Path:
    """A package of one real cell that a test may spoil. One cell, so that every place can be counted."""
    root = tmp_path / "package"
    root.mkdir()
    return one_cell(root)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the repository; tests that need it are skipped where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is not there")
    return folder


@pytest.fixture(scope="session")
def corpus(shared: Path):
    """The held texts of the law; tests that need them are skipped where they are absent."""
    from regatta_tools.provenance.corpus import read_corpus

    return read_corpus(shared / "legal" / "texts")
