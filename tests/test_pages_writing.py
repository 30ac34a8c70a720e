"""The site's text: its spelling, and the Compendium's writing rules."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup, Tag
from proselint.registry.checks import Check
from proselint.registry.checks.engine import Fast, Padding, RegexOptions
from proselint.registry.checks.types import PreferredForms

from course.scenes import ROOT

RULES = yaml.safe_load(Path(__file__).with_name("writing_rules.yml").read_text(encoding="utf-8"))


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


# Where the pattern of a rule has to be found in a text, by the part of the rules.
WHERE = {
    "sentences": r"\b(?:{})\b",
    "links": r"(?m)^(?:{})$",
    "commands": r"(?m)(?:^|[ ;&|])(?:{})",
    "terminals": r"(?m)(?:{})",
}


def lint(part: str, text: str) -> list[str]:
    """What proselint says of a text that is of this part: "'file system': write filesystem"."""
    items = {WHERE[part].format(pattern): better for pattern, better in RULES[part].items()}
    engine = Fast(RegexOptions(case_insensitive=False))
    check = Check(PreferredForms(items, Padding.RAW), engine, message="'{1}': write {0}")
    return [result.message for result in check.check(text)]


def text_of(article: Tag, part: str) -> str:
    """The sentences of a page; or its links, commands or terminals, each a line."""
    if part == "sentences":
        for element in article.select("pre, code, script, style, .terminal, .highlight"):
            element.replace_with("`")
        return article.get_text()
    selected = {
        "links": article.select("a"),
        "commands": [code for code in article.select("code") if not code.find_parent("pre")],
        "terminals": article.select(".terminal__output, .terminal__aside"),
    }
    return "\n".join(element.get_text().strip() for element in selected[part])


@pytest.mark.parametrize("part", WHERE)
def test_the_text_keeps_the_rules(part, site):
    found = []
    pages = [path for path in site.rglob("index.html") if path.parts[-3] not in ("embed", "s")]
    for path in pages:
        article = BeautifulSoup(path.read_text(encoding="utf-8"), "lxml").select_one("article")
        for take in article.select(".take, .sheet") if part == "commands" else []:
            take.decompose()  # the story's commands are kept as they were told
        page = path.parent.relative_to(site).as_posix()
        found += [f"{page}: {message}" for message in lint(part, text_of(article, part))]
    assert len(pages) >= 16
    assert not found, "\n".join(found)


BROKEN = [
    ("sentences", "Your file system is full."),
    ("sentences", "Please wait."),
    ("sentences", "You ask SLURM for a job"),
    ("sentences", "an IO error"),
    ("links", "x\nhere"),
    ("commands", "sacct -j 12"),
    ("commands", "sbatch --time=1 -c 4 hello.sbatch"),
    ("commands", "squeue --me && sacct --jobs 12"),
    ("commands", "ws_allocate --filesystem=horse x 1"),
    ("commands", "head -n 4 hello.py"),
    ("terminals", "a\n(...)\nb"),
]
KEPT = [
    ("sentences", "Your filesystem holds I/O of Slurm's job, in a workspace of ZIH."),
    ("links", "here it is told"),
    ("commands", "srun --nodes=1 --pty bash -l"),
    ("commands", "sbatch --time=00:05:00 hello.sbatch -n 3"),
    ("commands", "ws_allocate -F horse -r 7 -m MAIL -n NAME -d 30"),
    ("commands", "head --lines=4 hello.py"),
]


@pytest.mark.parametrize(("part", "text"), BROKEN)
def test_a_broken_rule_is_found(part, text):
    assert len(lint(part, text)) == 1


@pytest.mark.parametrize(("part", "text"), KEPT)
def test_what_keeps_the_rules_is_left_alone(part, text):
    assert lint(part, text) == []
