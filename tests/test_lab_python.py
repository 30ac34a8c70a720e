"""Labs 01 and 02 run with the cluster's own python3, so they must be Python 3.9."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MATCH_STATEMENT = "match 1:\n    case 1:\n        pass\n"


def ruff(*arguments, text=None):
    return subprocess.run(
        ["ruff", "check", *arguments], cwd=ROOT, input=text, capture_output=True, text=True
    )


@pytest.mark.parametrize("lab", ["01_hello", "02_cancel"])
def test_the_programs_are_python_3_9(lab):
    result = ruff(f"lab_code/hpc_lab/{lab}")
    assert (result.returncode, result.stdout) == (0, "All checks passed!\n")


@pytest.mark.parametrize("lab", ["01_hello", "02_cancel"])
def test_newer_syntax_in_the_programs_would_be_seen(lab):
    result = ruff("--stdin-filename", f"lab_code/hpc_lab/{lab}/newer.py", "-", text=MATCH_STATEMENT)
    assert "Cannot use `match` statement on Python 3.9" in result.stdout
