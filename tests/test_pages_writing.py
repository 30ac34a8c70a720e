"""The spelling of the site's text, and the terms of the Compendium."""

import shutil
import subprocess
import sys

import pytest

from course.scenes import ROOT


@pytest.mark.skipif(shutil.which("aspell") is None, reason="aspell is missing")
def test_the_text_has_no_word_that_aspell_does_not_know(site):
    (ROOT / "build").mkdir(exist_ok=True)  # the compiled word list
    found = subprocess.run(
        [sys.executable, "-m", "pyspelling", "--config", "tests/writing.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr
