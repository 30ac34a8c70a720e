"""What several areas of tests share."""

import shutil
from pathlib import Path

import pytest

from course.scenes import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this checkout that a test may change; it shares the virtual environment."""
    copy = tmp_path / "checkout"
    leave_out = shutil.ignore_patterns(
        ".git", ".venv", "site", "build", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, copy, ignore=leave_out)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    # The folders' own commands are called build and site too, so they were left out.
    shutil.copy(ROOT / "scripts/build", copy / "scripts/build")
    return copy
