"""Reads the kept log of lab 06: what a language model really said in a job, and how.

The log begins with when and where it was kept, then comes all that generate.py printed.
"""

from dataclasses import dataclass
from pathlib import Path

from course.scenes import ROOT

LOG = ROOT / "lab_code/scenes/reports/hf-generate.log"


@dataclass(frozen=True)
class Log:
    """`settings` are the log's lines "name : value", `answers` what was said to each prompt."""

    settings: dict[str, str]
    answers: dict[str, str]


def load_answers(path: Path = LOG) -> Log:
    """The log's settings and answers."""
    head, *blocks = path.read_text(encoding="utf-8").split("\n>>> ")
    pairs = (line.partition(":") for line in head.splitlines() if ":" in line)
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    answers = {}
    for block in blocks:
        prompt, _, answer = block.partition("\n")
        answers[prompt] = answer.strip()
    # The last line of the log, behind the last answer, is about its speed.
    last = list(answers)[-1]
    answers[last] = answers[last].rpartition("\n")[0].strip()
    return Log(settings, answers)
