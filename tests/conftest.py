"""What several test files share: a package to spoil, and the material beside the repository."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from regatta_tools.tables.descriptor import build

ROOT = Path(__file__).resolve().parents[1]

# Time limits on single examples say more about a shared machine than about the code.
settings.register_profile("regatta", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("regatta")


def redescribe(root: Path) -> None:
    """Write datapackage.json anew, so that an edit of a table is the only thing that is wrong."""
    (root / "datapackage.json").write_text(json.dumps(build(root), ensure_ascii=False, indent=2), encoding="utf-8")


@pytest.fixture
def package_copy(tmp_path: Path) -> Path:
    """A copy of the package (descriptor and instruments) that a test may spoil."""
    root = tmp_path / "package"
    root.mkdir()
    shutil.copy(ROOT / "datapackage.json", root)
    shutil.copytree(ROOT / "instruments", root / "instruments")
    return root


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the repository; tests that need it are skipped where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is not there")
    return folder
