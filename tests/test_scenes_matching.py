"""Holding an output against a transcript: what matches, and what a difference looks like."""

from pathlib import Path

import pytest

from course.matching import difference, match_output, table_rows
from course.scenes import Line, load_scenes

VALUES = {"LOGIN": "marie", "FILESYSTEM": "horse"}
SCENE = """\
title: T
page: p/
intro: i
takes:
  - id: t
    who: Marie
    works: true
    title: t
    goal: "true"
    why: w
    terminals:
      - transcript: |
          $ command
{lines}
        directions: {{{directions}}}
remember: r
"""


def lines(tmp_path: Path, transcript: str, directions: str = "") -> list[Line]:
    """The lines of a transcript's output, as the loader reads them from a file."""
    indented = "\n".join(" " * 10 + line for line in transcript.splitlines())
    text = SCENE.format(lines=indented, directions=directions)
    (tmp_path / "07_test.yaml").write_text(text)
    [scene] = load_scenes(tmp_path, VALUES)
    return list(scene.takes[0].terminals[0].lines[1:])


@pytest.mark.parametrize(
    ("transcript", "output", "matches"),
    [
        ("pi ~ 3.14…   (in … s)", "pi ~ 3.141381   (in 1.36 s)", True),
        ("pi ~ 3.14…   (in … s)", "pi ~ 3.2   (in 1.36 s)", False),
        ("a\n[...]\nz", "a\nb\nc\nz", True),
        ("a\n[...]\nz", "a\nz", True),
        ("a\n[...]\nz", "a\nb", False),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
        ("(cancelled)", "(cancelled)", True),
        ("a.c", "abc", False),
        ("<<n = 12>> and <<n>>", "7 and 7", True),
        ("<<n = 12>> and <<n>>", "7 and 8", False),
        ("/data/<<FILESYSTEM>>/<<LOGIN>>", "/data/horse/marie", True),
        ("/data/<<FILESYSTEM>>/<<LOGIN>>", "/data/horse/<zih-login>", False),
    ],
)
def test_an_output_matches_its_transcript_or_not(tmp_path, transcript, output, matches):
    found = match_output(lines(tmp_path, transcript), output, {}, VALUES)
    assert (found is not None) is matches


def test_a_command_without_output_lines_has_to_be_silent():
    assert match_output([], "", {}, VALUES)
    assert not match_output([], "surprise\n", {}, VALUES)


def test_a_number_that_was_captured_has_to_come_again(tmp_path):
    expected = lines(tmp_path, "job <<n = 12>>")
    assert match_output(expected, "job 7", {}, VALUES).numbers == {"n": "7"}


def test_a_stage_direction_yields_the_text_that_it_stands_for(tmp_path):
    expected = lines(tmp_path, "GPU : ((a name)), ready", 'a name: {matches: ".*"}')
    match = match_output(expected, "GPU : A100, ready", {}, VALUES)
    assert match.directions == {"a name": "A100"}


def test_a_stage_direction_alone_stands_for_any_number_of_lines(tmp_path):
    expected = lines(tmp_path, "a\n((anything))\nz", 'anything: {matches: ".*"}')
    assert match_output(expected, "a\nb\nc\nz", {}, VALUES).directions == {"anything": "b\nc"}
    assert match_output(expected, "a\nz", {}, VALUES).directions == {"anything": ""}


def test_a_difference_shows_the_line_that_differs_and_no_other(tmp_path):
    expected = lines(tmp_path, "pi ~ 3.14…\nend")
    shown = difference(expected, "pi ~ 3.141\nfin\n", {}, VALUES).splitlines()
    assert [line for line in shown if line[0] in "+-"][2:] == ["-end", "+fin"]


def test_a_table_is_read_by_its_columns():
    output = "JOBID  ST NODELIST(REASON)\n    7  PD (Resources, or so)\n"
    assert table_rows(output) == [
        {"JOBID": "7", "ST": "PD", "NODELIST(REASON)": "(Resources, or so)"}
    ]
