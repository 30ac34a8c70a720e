"""What linters see in all of the project's Python and shell files."""

import subprocess

from course.scenes import ROOT


def test_ruff_has_no_complaint():
    result = subprocess.run(["ruff", "check", ROOT], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_python_files_are_formatted():
    result = subprocess.run(["ruff", "format", "--check", ROOT], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_shellcheck_has_no_complaint_about_the_commands():
    commands = [
        path
        for path in sorted((ROOT / "scripts").iterdir())
        if path.is_file()
        and path.read_bytes().startswith((b"#!/usr/bin/env bash", b"# shellcheck"))
    ]
    assert len(commands) > 5
    result = subprocess.run(
        ["shellcheck", "--external-sources", *commands], capture_output=True, text=True, cwd=ROOT
    )
    assert result.returncode == 0, result.stdout
