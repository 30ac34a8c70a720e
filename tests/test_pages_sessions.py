"""The pages around the story: their commands are played, their titles agree, they are complete."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from course.page_macros import PageError, default_of, line_of, options_of
from course.rehearse import chosen, rehearse
from course.report import digest, load_reports
from course.scenes import LAB, ROOT, SCENES, SceneError, load_pages, load_scenes
from course.sites import Practice
from course.values import load_values

PAGES = load_pages()
PASTED = yaml.safe_load(Path(__file__).with_name("pasted_messages.yaml").read_text())
PLAYED = [(page, take) for page in PAGES for take in page.takes if not take.not_played]
NOT_PLAYED = [(page, take) for page in PAGES for take in page.takes if take.not_played]
# These take a minute or so; the others are played by scripts/test soak, but for sessions that hold
# a known trouble. Whether each one was played since it was changed is looked at in every run.
QUICK = ("1-hello", "submitting")
KNOWN = yaml.safe_load(Path(__file__).with_name("known_troubles.yaml").read_text())
LONG = {page.name for page in PAGES} - set(QUICK)
HOLDING = [name for trouble in KNOWN for name in trouble.get("sessions", [])]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=() if page.name in QUICK else pytest.mark.soak)
        for page in PAGES
    ],
)
def test_every_session_is_played_as_told(page, cluster, tmp_path):
    entries, failures = rehearse(Practice(cluster), chosen([page], []), recordings=tmp_path)
    assert not failures, "\n\n".join(failures)
    assert len(entries) == len([take for take in page.takes if not take.not_played])
    seen = without_numbers(*(file.read_text() for file in tmp_path.glob("*.txt")))
    ids = [take.id for take in page.takes]
    pasted = [message["pasted"] for message in PASTED if message["entry"] in ids]
    assert [text for text in pasted if without_numbers(text) not in seen] == []


@pytest.mark.parametrize("name", [name for name in HOLDING if name.split("/")[0] in LONG])
def test_a_session_that_holds_a_known_trouble_is_played_as_told(name, cluster, tmp_path):
    takes = chosen(PAGES, [name])
    _, failures = rehearse(Practice(cluster), takes, recordings=tmp_path)
    assert not failures, "\n\n".join(failures)


def without_numbers(*texts: str) -> str:
    """The texts in one line, and # for each number, which is another one each time."""
    return re.sub(r"\d+", "#", " ".join(" ".join(texts).split()))


@pytest.mark.parametrize(
    ("page", "take"),
    [pytest.param(page, take, id=f"{page.name}/{take.id}") for page, take in PLAYED],
)
def test_the_kept_report_is_of_the_session_as_it_is_now(page, take):
    entries = load_reports().get(f"{page.name}/{take.id}", [])
    assert digest(page, take) in [entry.digest for entry in entries], (
        "changed since it was played: scripts/rehearse --report"
    )


def test_these_alone_are_not_played():
    assert {f"{page.name}/{take.id}" for page, take in NOT_PLAYED} == {
        "4-tinygpt/picture",
        "5-sweep/picture",
        "setup/log-in",
        "setup/copy",
        "setup/copy-from-git",
        "setup/practice",
        "failing/out-of-memory-on-the-gpu",
        "submitting/sbatch-command-not-found",
        "submitting/connection-timed-out",
        "submitting/could-not-resolve-hostname",
        "submitting/ssh-permission-denied",
        "submitting/host-key-changed",
        "submitting/host-key-changed-cure",
    }


@pytest.mark.parametrize(
    ("page", "take"),
    [pytest.param(page, take, id=f"{page.name}/{take.id}") for page, take in NOT_PLAYED],
)
def test_what_is_not_played_says_why_and_is_not_played_elsewhere(page, take):
    assert re.fullmatch(r"\S.+\.", take.not_played)
    played = [line for _, take in PLAYED for line in shown_commands(take)]
    assert not set(shown_commands(take)) & set(played)


def shown_commands(take) -> list[tuple[str, str]]:
    """A take's commands, with the places where they are typed."""
    return [
        (line.place, line.text)
        for terminal in take.terminals
        for line in terminal.lines
        if line.kind == "command" and not line.hidden
    ]


def test_no_command_leaves_the_number_of_cpus_to_srun():
    """Typed in a job, srun takes it over from sbatch before Slurm 22.05 only."""
    commands = [
        command
        for file in [*load_scenes(), *PAGES]
        for take in file.takes
        for command in shown_commands(take)
        if take.works and "srun " in command[1]
    ]
    assert len(commands) >= 4
    for place, command in commands:
        assert (place, "--cpus-per-task=" in command) == ("", True), command


class Code(HTMLParser):
    """The code in a page's sentences: not in terminals, listings, takes, messages."""

    NOT = ("terminal", "highlight", "trouble__message", "take", "take__start")
    EMPTY = ("img", "br", "hr", "input", "meta", "link")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []  # the elements around, and whether to leave them out
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag not in self.EMPTY:
            classes = (dict(attributes).get("class") or "").split()
            out = any(name in self.NOT for name in classes) or tag == "script"
            self.open.append((tag, out))
            if tag == "code" and not self.left_out:
                self.found.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if any(tag == "code" for tag, _ in self.open) and not self.left_out:
            self.found[-1] += data

    @property
    def left_out(self) -> bool:
        return any(out for _, out in self.open)


# Words that are commands where another word follows. With one word alone, the text talks about it.
PROGRAMS = """
    sbatch srun squeue scancel sacct sinfo scontrol whypending ssh scp tar cd mkdir source python
    python3 bash tail cat ls rm cp mv sed grep module pip git nvidia-smi echo env
    ws_list ws_allocate ws_extend ws_release ws_find ./submit_sweep.sh scripts/cluster
"""
THE_STORY = ("story", "embed", "s")
# What a sentence names of a longer command, without its number or its folder.
PARTS = {"tail -f", "bash -l", "scontrol show job"}
LEFT_OUT = {"source …/setup_env.sh": "source ../00_setup/setup_env.sh"}
# What only an instructor's own cluster can answer.
ASKED_ON_THE_REAL_CLUSTER = {
    f"module load {load_values(LAB / '00_setup/course.env')['MODULES']}",
    "python3 --version",
}


def test_each_command_in_a_sentence_is_one_that_is_played(site):
    known = [  # what is typed, and the lines of job scripts that a page quotes
        line.text
        for file in [*load_scenes(), *PAGES]
        for take in file.takes
        for terminal in take.terminals
        for line in terminal.lines
        if line.kind == "command"
    ]
    assert all(any(f" {part} " in f" {line} " for line in known) for part in PARTS)
    assert set(LEFT_OUT.values()) <= set(known)
    known += [line for file in LAB.rglob("*.sbatch") for line in file.read_text().splitlines()]
    known += [*PARTS, *LEFT_OUT, *ASKED_ON_THE_REAL_CLUSTER]
    unknown = []
    checked = 0
    for path in site.rglob("index.html"):
        page = path.relative_to(site)
        if page.parts[0] in THE_STORY:
            continue
        for text in Code(path.read_text(encoding="utf-8")).found:
            words = text.split()
            if len(words) > 1 and words[0] in PROGRAMS.split():
                checked += 1
                if text not in known:
                    unknown.append(f"{page}: {text}")
    assert checked > 20
    assert not unknown, "\n".join(unknown)


def test_no_listing_and_no_terminal_is_written_in_a_page_by_hand():
    by_hand = [
        file.name
        for file in (ROOT / "docs").rglob("*.md")
        if re.search(r"^ *(```|~~~)", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert by_hand == ["teach.md"]  # what an instructor types on their own machine


def test_every_title_is_that_of_the_navigation():
    def entries(nav):
        for entry in nav:
            for title, target in entry.items():
                if isinstance(target, list):
                    yield from entries(target)
                else:
                    yield title, target

    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text.partition("\nnav:")[2].join(["nav:", ""]))["nav"]
    pages = list(entries(nav))
    assert len(pages) >= 16
    for title, file in pages:
        [heading] = re.findall(r"^# (.+)$", (ROOT / "docs" / file).read_text(), re.MULTILINE)[:1]
        assert heading == title, file


EXERCISES = sorted((ROOT / "docs/exercises").glob("*.md"))


@pytest.mark.parametrize("page", EXERCISES, ids=lambda page: page.stem)
def test_an_exercise_has_all_its_parts(page):
    text = page.read_text(encoding="utf-8")
    for part in ("**Goal:**", "**Time:**", "**You need:**"):
        assert part in text
    for anchor in ("script", "wrong", "questions", "further", "done"):
        assert f"{{ #{anchor} }}" in text
    assert len(re.findall(r"^\*\*[123] · ", text, re.MULTILINE)) == 3
    assert text.count("??? question") >= 3
    assert re.search(r"{{ take\(\d, ", text)
    assert re.search(r"{{ listing\(", text)


def test_six_exercises():
    assert len(EXERCISES) == 6


# --- What a page asks for and is not there ---


def test_a_line_that_a_file_has_not_is_refused(tmp_path):
    (tmp_path / "x.sh").write_text("#SBATCH --time=1\n#SBATCH --mem=2\n")
    assert line_of("x.sh", "#SBATCH --time", tmp_path) == "#SBATCH --time=1"
    for start in ("#SBATCH --gres", "#SBATCH"):  # none, two
        with pytest.raises(PageError, match=r"lines of x.sh start with"):
            line_of("x.sh", start, tmp_path)
    with pytest.raises(PageError, match="no file"):
        line_of("y.sh", "x", tmp_path)


def test_options_and_defaults_are_those_of_the_program(tmp_path):
    (tmp_path / "x.py").write_text(
        "add('--steps', type=int, default=7, help='how long (default: 7)')\n"
        "parser.add_argument('--data', default=f'{HERE}/x', help='a text (default: x)')\n"
    )
    assert options_of("x.py", tmp_path) == {
        "--steps": {"default": 7, "help": "how long"},
        "--data": {"help": "a text (default: x)"},
    }
    assert default_of("x.py", "--steps", tmp_path) == 7
    for option in ("--data", "--gone"):
        with pytest.raises(PageError, match=option):
            default_of("x.py", option, tmp_path)


@pytest.mark.parametrize("text", ["", ", help=f'in {HERE}'"])
def test_an_option_whose_help_cannot_be_shown_is_refused(text, tmp_path):
    (tmp_path / "x.py").write_text(f"add('--data', default=1{text})\n")
    with pytest.raises(PageError, match=r"help of --data in x.py"):
        options_of("x.py", tmp_path)


WRONG = {
    "a command on one's own machine without a reason": (
        "takes:\n  - id: a\n    terminals:\n      - transcript: |\n          local$ ssh alpha\n",
        "5: A command on your own machine",
    ),
    "a field that there is not": (
        "takes:\n  - id: a\n    colour: red\n    terminals:\n      - transcript: |\n"
        "          $ ls\n",
        "3: takes.0.colour",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_its_line(name, tmp_path: Path):
    text, message = WRONG[name]
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/x.yaml").write_text(text)
    with pytest.raises(SceneError, match=message):
        load_pages(tmp_path)


@pytest.mark.parametrize("other", ["other", "wrong-account"], ids=["in a file", "as its name"])
def test_a_trouble_whose_anchor_is_taken_elsewhere_is_refused(other, tmp_path: Path):
    (tmp_path / "trouble").mkdir()
    for name in ("submitting", other):
        shutil.copy(SCENES / "trouble/submitting.yaml", tmp_path / f"trouble/{name}.yaml")
    message = f"submitting.yaml:4: 'wrong-account' is taken by {other}.yaml"
    with pytest.raises(SceneError, match=message):
        load_pages(tmp_path)


def test_a_message_that_the_transcript_does_not_show_is_refused(tmp_path: Path):
    (tmp_path / "trouble").mkdir()
    text = (SCENES / "trouble/submitting.yaml").read_text()
    changed = text.replace("      Invalid --time specification\n", "      Wrong time\n")
    assert changed != text
    (tmp_path / "trouble/submitting.yaml").write_text(changed)
    with pytest.raises(SceneError, match="No output shows the message: Wrong time"):
        load_pages(tmp_path)
