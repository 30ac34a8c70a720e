"""Holds what a command printed against what its transcript tells.

The expected lines become one regular expression over the whole output: captured numbers and
stage directions are its groups. Where it does not match, `difference` shows both line by line.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from course.scenes import Direction, Line, Number, Part, Text, Value

LONGEST_DIFFERENCE = 40  # lines


@dataclass(frozen=True)
class Match:
    """What the output had in place of captured numbers and of stage directions."""

    numbers: dict[str, str]  # name → digits
    directions: dict[str, str]  # the direction's key → the text that it stands for


class _Pattern:
    """Builds the regular expression; known numbers and values are looked up as they come."""

    def __init__(self, numbers: Mapping[str, str], values: Mapping[str, str]):
        self.numbers = numbers
        self.values = values
        self.captured: set[str] = set()
        self.directions: list[str] = []

    def parts(self, parts: Iterable[Part], *, whole_lines: bool = False) -> str:
        return "".join(self._part(part, whole_lines) for part in parts)

    def _part(self, part: Part, whole_lines: bool) -> str:
        if isinstance(part, Text):
            return re.escape(part.text).replace("…", r"[^\n]*?")
        if isinstance(part, Value):
            return re.escape(self.values[part.name])
        if isinstance(part, Number):
            if part.name in self.captured:
                return f"(?P=number_{part.name})"
            if not part.first:
                # Unknown where a line is looked at alone, because the one before it differs.
                return re.escape(self.numbers[part.name]) if part.name in self.numbers else r"\d+"
            self.captured.add(part.name)
            return rf"(?P<number_{part.name}>\d+)"
        assert isinstance(part, Direction)
        self.directions.append(part.key)
        any_text = r"(?s:.*?)" if whole_lines else r"[^\n]*?"
        return f"(?P<direction_{len(self.directions)}>{any_text})"

    def line(self, line: Line) -> str:
        """One line with its end. Omissions and directions may stand for several lines or none."""
        if line.kind == "omission":
            return r"(?:[^\n]*\n)*?"
        if line.kind == "direction":
            return self.parts(line.parts, whole_lines=True) + r"\n?"
        return self.parts(line.parts) + r"\n"


def match_output(
    lines: Sequence[Line],
    output: str,
    numbers: Mapping[str, str],
    values: Mapping[str, str],
    *,
    begins: bool = False,
) -> Match | None:
    """Match a command's output against the lines of its transcript; None where they differ.

    With begins=True the lines have to match the beginning of the output only.
    """
    pattern = _Pattern(numbers, values)
    regex = "".join(pattern.line(line) for line in lines)
    text = output if not output or output.endswith("\n") else output + "\n"
    found = re.match(regex, text) if begins else re.fullmatch(regex, text)
    if not found:
        return None
    return Match(
        {name: found[f"number_{name}"] for name in pattern.captured},
        {
            key: found[f"direction_{number}"].removesuffix("\n")
            for number, key in enumerate(pattern.directions, start=1)
        },
    )


def fill(parts: Iterable[Part], numbers: Mapping[str, str], values: Mapping[str, str]) -> str:
    """A command, as it is typed: numbers and values are those of this cluster."""
    filled = []
    for part in parts:
        if isinstance(part, Number):
            filled.append(numbers[part.name])
        elif isinstance(part, Value):
            filled.append(values[part.name])
        else:
            filled.append(part.text)
    return "".join(filled)


def actual_lines(
    lines: Sequence[Line],
    output: str,
    numbers: Mapping[str, str],
    values: Mapping[str, str],
) -> list[Line | str]:
    """The lines of the output; where one is as an expected line tells, that line in its place."""
    result: list[Line | str] = []
    for text in output.splitlines():
        result.append(text)
        for line in lines:
            if line.kind == "output" and match_output([line], text, numbers, values):
                result[-1] = line
                break
    return result


def _is_plain(line: Line) -> bool:
    """Whether a line is only text that is printed, so that another text may take its place."""
    kept = any(isinstance(p, Direction) or (isinstance(p, Number) and p.first) for p in line.parts)
    return line.kind == "output" and not line.hidden and not kept


def revised(
    lines: Sequence[Line],
    output: str,
    numbers: Mapping[str, str],
    values: Mapping[str, str],
) -> list[Line | str]:
    """The transcript's lines with what was printed in place of those that differ.

    Stage directions, omissions, captured numbers and unseen lines stay as they are: whether they
    still fit is for a person to say.
    """
    got = actual_lines(lines, output, numbers, values)
    result: list[Line | str] = []
    blocks = difflib.SequenceMatcher(None, list(lines), got, autojunk=False).get_opcodes()
    for kind, first, last, start, end in blocks:
        told, printed = lines[first:last], got[start:end]
        if kind == "equal" or all(_is_plain(line) for line in told):
            around = [*lines[max(0, first - 1) : first], *lines[last : last + 1]]
            left_out = kind == "insert" and any(not _is_plain(line) for line in around)
            result += [] if left_out else printed
            continue
        for line in told:
            result.append(printed.pop(0) if _is_plain(line) and printed else line)
    return result


def difference(
    lines: Sequence[Line],
    output: str,
    numbers: Mapping[str, str],
    values: Mapping[str, str],
) -> str:
    """A unified diff of the transcript and the output; a long one is cut."""
    expected = [line.text for line in lines]
    got = [
        line if isinstance(line, str) else line.text
        for line in actual_lines(lines, output, numbers, values)
    ]
    diff = [
        line
        for line in difflib.unified_diff(expected, got, "transcript", "cluster", "", "", 99, "")
        if not line.startswith("@@")
    ]
    if len(diff) > LONGEST_DIFFERENCE:
        left_out = len(diff) - LONGEST_DIFFERENCE
        diff[LONGEST_DIFFERENCE:] = [f"({left_out} more lines: see the recording)"]
    return "\n".join(diff)


def table_rows(output: str) -> list[dict[str, str]]:
    """The rows of a table that squeue or sacct printed, by their columns' names."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return []
    names = lines[0].split()
    rows = [line.split(maxsplit=len(names) - 1) for line in lines[1:]]
    return [dict(zip(names, row, strict=False)) for row in rows]
