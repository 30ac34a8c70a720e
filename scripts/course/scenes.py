"""Reads what is typed and what comes back, from the YAML files in lab_code/scenes/.

A scene of the story is one file, by the name of its lab's folder. It has takes, a take has
terminals, and a terminal has a transcript. Everything else is made from these files: the story's
terminal blocks, what a copy button copies, the scene index, and the rehearsal on a real Slurm.

The pages around the story have files of their own, in pages/ (the sessions of a page) and in
trouble/ (what went wrong, and the cure). They are read, proven and played in the same way.

In a transcript:

    $ sbatch hello.sbatch  # why     a command, with a comment that is shown and not copied
    node$ nproc                      a command on a compute node; local$ on your own machine
    Submitted batch job <<job = 12>> output; captures a number, shown as 12
    cat logs/hello-<<job>>.out       the same number again
    /data/<<FILESYSTEM>>/ws          a course value; <<LOGIN>> is the reader's login
    pi ~ 3.14…                       … stands for a part of the line that varies
    [...]                            stands for lines left out, or for none
    ((an empty line))                a stage direction, alone or within a line
    % $ cat logs/hello-12.out        typed, but not shown; % martin$ … is typed by martin
    % until job is RUNNING           waits for Slurm; the pages around the story say it
    % press Ctrl+C                   presses keys
    % Submitted batch job <<job>>    output that is not shown
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from course.bundle import lab_folders
from course.values import load_values

ROOT = Path(__file__).resolve().parents[2]
SCENES = ROOT / "lab_code/scenes"
LAB = ROOT / "lab_code/hpc_lab"

# The reader's login until the reader enters one. ZIH's own way to write it.
DEFAULT_LOGIN = "<zih-login>"


class SceneError(Exception):
    """A scene's file is wrong. The text names the file, the line and what to do."""

    def __init__(self, path: Path, line: int, message: str):
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        super().__init__(f"{shown}:{line}: {message}")


# --- Lines of a transcript ---------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A piece of a line that stands for itself (… in output stands for a varying part)."""

    text: str


@dataclass(frozen=True)
class Number:
    """A number that a program prints: captured where `first`, the same again elsewhere."""

    name: str
    shown: str
    first: bool = False

    @property
    def text(self) -> str:
        return self.shown

    @property
    def is_new_job(self) -> bool:
        return self.first and self.name.startswith("job")


@dataclass(frozen=True)
class Value:
    """A course value, or the reader's login (`LOGIN`)."""

    name: str
    shown: str

    @property
    def text(self) -> str:
        return self.shown


@dataclass(frozen=True)
class Direction:
    """A stage direction: what stands for output that varies, or an action."""

    key: str
    parts: tuple["Text | Number | Value", ...]

    @property
    def text(self) -> str:
        return f"({shown(self.parts)})"


Part = Text | Number | Value | Direction


@dataclass(frozen=True)
class Line:
    """One line of a transcript. `number` is its line in the scene's file."""

    kind: Literal["command", "output", "direction", "omission", "until", "press"]
    parts: tuple[Part, ...]
    number: int
    hidden: bool = False
    comment: str = ""  # a command's, with the blanks before it
    user: str = ""  # who types a command; empty: whose take it is
    place: str = ""  # where a command is typed: "node", "local"; empty: on the login node
    job: str = ""  # until: this job …
    state: str = ""  # … has this state

    @property
    def text(self) -> str:
        """The line as it is shown, a command without its prompt and comment."""
        return shown(self.parts)


def shown(parts: tuple[Part, ...]) -> str:
    """The parts as the page shows them."""
    return "".join(part.text for part in parts)


# --- The files' data model ---------------------------------------------------------------------


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Proof(Model):
    """How a stage direction, or what a take claims, is proven in the rehearsal: one of

    - matches: the regular expression that the left-out output matches, whole
    - gpu: the same, of a text that names the GPU; the report keeps it
    - row, shows: a row of the table that was printed starts with this, and these columns hold that
    - no_row: no row of the table starts with this
    - exit: the command's exit code
    - press: keys pressed, and before that, until: a shell command that has to succeed
    - job, state, exit: what sacct says of a job
    - command: a shell command, run in the take's folder, that has to succeed
    """

    matches: str | None = None
    gpu: str | None = None
    row: str | None = None
    shows: dict[str, str] = {}
    no_row: str | None = None
    press: Literal["Ctrl+C"] | None = None
    until: str | None = None
    job: str | None = None
    state: str | None = None
    exit: str | int | None = None
    command: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Proof":
        given = set(self.model_fields_set)
        kinds: list[tuple[set[str], set[str]]] = [  # what a kind needs, what it may have
            ({"matches"}, set()),
            ({"gpu"}, set()),
            ({"row", "shows"}, set()),
            ({"no_row"}, set()),
            ({"exit"}, set()),
            ({"press"}, {"until"}),
            ({"job", "state"}, {"exit"}),
            ({"command"}, set()),
        ]
        if not any(needs <= given <= needs | may for needs, may in kinds):
            raise ValueError(
                "a proof is one of: matches · gpu · row and shows · no_row · exit · "
                "press (and until) · job and state (and exit) · command"
            )
        return self


class Terminal(Model):
    """One window of commands and output."""

    transcript: str
    title: str = ""  # what the window's bar says
    intro: str = ""  # Markdown above the window
    directions: dict[str, Proof] = {}

    _lines: tuple[Line, ...] = ()
    _title_parts: tuple[Part, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    @property
    def title_parts(self) -> tuple[Part, ...]:
        return self._title_parts

    @property
    def new_jobs(self) -> list[Number]:
        """The numbers of jobs that this terminal is the first to show."""
        shown = (part for line in self.lines if not line.hidden for part in line.parts)
        return [part for part in shown if isinstance(part, Number) and part.is_new_job]

    @property
    def typed_jobs(self) -> list[Number]:
        """The numbers of jobs that stand in its shown commands, each once."""
        lines = (line for line in self.lines if line.kind == "command" and not line.hidden)
        parts = (part for line in lines for part in line.parts)
        jobs = {p.name: p for p in parts if isinstance(p, Number) and p.name.startswith("job")}
        return list(jobs.values())

    @property
    def commands(self) -> list[str]:
        """The commands that are shown, exactly as they are typed."""
        return [line.text for line in self.lines if line.kind == "command" and not line.hidden]


class Session(Model):
    """Commands with their output, typed one after the other in one shell."""

    id: str = Field(pattern=r"^[a-z]+(-[a-z]+)*$")
    works: bool = True
    terminals: list[Terminal] = Field(min_length=1)
    start: str = ""  # what brings a fresh login shell to where it begins
    after: str = ""  # the session of this file in whose shell, and with whose jobs, it goes on
    environment: bool = False  # needs the environment of lab 00 from the start
    goal: str = ""  # a shell command, run in its shell at the end: succeeds where it works
    without_gpu: list[Proof] = []  # needs a GPU; what is proven instead on a cluster without one
    proof: list[Proof] = []
    not_played: str = ""  # why it cannot be played, in a sentence

    _start_parts: tuple[Part, ...] = ()

    @property
    def start_parts(self) -> tuple[Part, ...]:
        return self._start_parts

    @property
    def commands(self) -> list[str]:
        return [command for terminal in self.terminals for command in terminal.commands]

    @property
    def outcome(self) -> str:
        return "works" if self.works else "does not work"

    def asked_jobs(self, terminal: Terminal) -> list[Number]:
        """The jobs whose own numbers a reader can enter beside this terminal."""
        return terminal.new_jobs


class Take(Session):
    """One attempt in the story: who tries what, and whether it works."""

    who: Literal["Marie", "Martin"]
    works: bool
    title: str
    why: str  # Markdown: why not, or what it does
    intro: str = ""  # Markdown
    goal: str
    went_wrong: str = ""  # the closing table's words, of a take that does not work
    rule: str = ""

    @property
    def outcome(self) -> str:
        return f"{self.who}, {super().outcome}"

    @model_validator(mode="after")
    def _rule_where_it_fails(self) -> "Take":
        if self.works == bool(self.rule and self.went_wrong):
            raise ValueError("went_wrong and rule belong to each take that does not work, only")
        return self


class Trouble(Session):
    """Something that goes wrong: what one sees, why, and what to do."""

    works: Literal[False]
    title: str
    message: str = ""  # what one pastes to find it; every line stands in the output
    also: str = ""  # what programs that are not ours print in its place
    symptom: str = ""  # in words, where no program prints a message
    cause: str  # Markdown
    remedy: str  # Markdown

    def asked_jobs(self, terminal: Terminal) -> list[Number]:
        return []  # nothing to copy here; the cure asks

    @model_validator(mode="after")
    def _has_a_sign(self) -> "Trouble":
        if not self.message and not self.symptom:
            raise ValueError("a trouble has a message, or a symptom where nothing is printed")
        return self


class Cure(Session):
    """What mends a trouble, typed after it."""

    works: Literal[True]
    after: str

    def asked_jobs(self, terminal: Terminal) -> list[Number]:
        return terminal.typed_jobs  # most of them are submitted in the trouble, which is folded


class Quote(Model):
    """A piece of a lab file that the scene quotes. It has to be in both."""

    file: str
    text: str
    line: int | None = None


class Lesson(Model):
    """A row of the closing table that no take stands for."""

    went_wrong: str
    rule: str


def _with_helpers(labs: Iterable[str]) -> set[str]:
    """These lab folders, and those on whose files they depend."""
    found = {"00_setup", *labs}
    return found | {"04_tinygpt"} if "05_sweep" in found else found  # its train.py does the work


class TranscriptFile(Model):
    """What one file holds: sessions, and what they quote."""

    takes: list[Session] = Field(min_length=1)
    quotes: list[Quote] = []

    _path: Path = Path()

    @property
    def path(self) -> Path:
        return self._path

    @property
    def name(self) -> str:
        """How the rehearsal and the reports call it."""
        return self._path.stem

    @property
    def labs(self) -> set[str]:
        """The lab folders on which its sessions depend."""
        text = self._path.read_text(encoding="utf-8")
        return _with_helpers(lab.name for lab in lab_folders(LAB) if lab.name in text)

    def anchor(self) -> str:
        """What the ids of its parts begin with."""
        return self.name

    @property
    def told_waits(self) -> set[str]:
        """The jobs for which a reader has to wait as well: those whose numbers appear."""
        terminals = (terminal for take in self.takes for terminal in take.terminals)
        return {job.name for terminal in terminals for job in terminal.new_jobs}

    def take(self, take_id: str) -> Session:
        """Raises KeyError where there is no such one."""
        return {take.id: take for take in self.takes}[take_id]

    def source(self, take: Session) -> str:
        """The take as it stands in its file."""
        text = self._path.read_text(encoding="utf-8")
        found = re.search(rf"^  - id: {take.id}\n(?:    .*\n|\n(?=    ))*", text, re.MULTILINE)
        return textwrap.dedent(found[0]).rstrip()


class Scene(TranscriptFile):
    """One numbered part of the story; belongs to one lab folder and one page."""

    title: str
    page: str
    intro: str
    takes: list[Take] = Field(min_length=1)
    remember: str
    outro: str = ""
    also_learned: list[Lesson] = []

    @property
    def lab(self) -> str:
        """The lab's folder, by which the file is named: 01_hello."""
        return self._path.stem

    @property
    def labs(self) -> set[str]:
        return _with_helpers([self.lab])

    @property
    def number(self) -> int:
        return int(self.lab[:2])

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def page_source(self) -> str:
        """The Markdown file of the scene's page."""
        return self.page.rstrip("/") + ".md"

    def anchor(self, take: Take | None = None) -> str:
        return f"scene-{self.number}" + (f"-{take.id}" if take else "")

    @property
    def told_waits(self) -> set[str]:
        return set()  # a story does not say each time that one waits


class Troubles(TranscriptFile):
    """Troubles of one kind, each with its cure after it."""

    title: str
    takes: list[Annotated[Trouble | Cure, Field(discriminator="works")]] = Field(min_length=1)

    @property
    def troubles(self) -> list[Trouble]:
        return [take for take in self.takes if isinstance(take, Trouble)]

    def cures(self, trouble: Trouble) -> list[Cure]:
        return [take for take in self.takes if take.after == trouble.id and take.works]


# --- Loading -----------------------------------------------------------------------------------

_PIECE = re.compile(r"\(\((?P<direction>.*?)\)\)|<<(?P<name>\w+)(?: = (?P<shown>\d+))?>>")
_COMMAND = re.compile(r"(?P<user>[a-z]*)\$ (?P<command>.*?)(?P<comment> +# .*)?")
_PLACES = ("node", "local")  # the words before a $ that are places; any other is a user
_File = TypeVar("_File", bound=TranscriptFile)
_UNTIL = re.compile(r"until (?P<job>\w+) is (?P<state>[A-Z_]+)")


class _Loader:
    """Reads one file; knows its course values, its captured numbers and its lines."""

    def __init__(self, path: Path, values: dict[str, str]):
        self.path = path
        self.values = values
        self.numbers: dict[str, str] = {}  # name → as shown

    def error(self, line: int, message: str) -> SceneError:
        return SceneError(self.path, line, message)

    def load(self, kind: type[_File]) -> _File:
        text = self.path.read_text(encoding="utf-8")
        try:
            # The one in C reads ten times faster than safe_load().
            node = yaml.compose(text, Loader=yaml.CSafeLoader)
            data = yaml.load(text, Loader=yaml.CSafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            if "duplicate anchor" in (error.context or ""):
                anchor = text.splitlines()[mark.line][mark.column + 1 :].split()[0]
                raise self.error(
                    mark.line + 1,
                    f"'&{anchor}' stands twice. Write '*{anchor}' to repeat what it names, "
                    "or choose another name.",
                ) from None
            raise self.error(mark.line + 1, f"This is not YAML: {error.problem}.") from None
        if node is None:
            raise self.error(1, "The file is empty. Another scene's file shows what belongs in it.")
        self._refuse_double_keys(node)
        try:
            scene = kind.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(key) for key in first["loc"])
            message = f"{where}: {first['msg'].removeprefix('Value error, ')}."
            raise self.error(_line_of(node, first["loc"]), message) from None
        scene._path = self.path
        ids: list[str] = []
        begun = 0  # the last take that was played from a fresh start: what was before it is gone
        for index, take in enumerate(scene.takes):
            line = _line_of(node, ("takes", index, "id"))
            if take.id in ids:
                raise self.error(line, f"The scene has two takes '{take.id}'. Rename one.")
            if take.after and take.after not in ids:
                raise self.error(line, f"'after: {take.after}' names no earlier take.")
            begun = begun if take.after or take.not_played else index
            if take.after and take.after not in ids[begun:]:
                raise self.error(
                    line,
                    f"'{take.id}' goes on from '{take.after}', but '{ids[begun]}' between them "
                    "starts anew. Move it up.",
                )
            ids.append(take.id)
            self._complete_take(take, node, ("takes", index))
        self._check_prose(scene, node)
        for index, quote in enumerate(scene.quotes):
            self._check_quote(scene, quote, _line_of(node, ("quotes", index)))
        return scene

    def _refuse_double_keys(self, node: yaml.Node) -> None:
        """YAML would silently keep the last of two equal keys."""
        for mapping in _nodes(node):
            if isinstance(mapping, yaml.MappingNode):
                seen = set()
                for key, _ in mapping.value:
                    if key.value in seen:
                        raise self.error(key.start_mark.line + 1, f"'{key.value}' stands twice.")
                    seen.add(key.value)

    def _complete_take(self, take: Session, node: yaml.Node, where: tuple) -> None:
        take._start_parts = self._parts(take.start, _line_of(node, (*where, "start")))
        for index, terminal in enumerate(take.terminals):
            here = (*where, "terminals", index)
            first = _line_of(node, (*here, "transcript")) + 1  # below the line of the |
            terminal._lines = tuple(self._transcript(terminal.transcript, first))
            terminal._title_parts = self._parts(terminal.title, _line_of(node, (*here, "title")))
            if not take.not_played:
                self._match_directions(terminal, node, here)
        for field in ("proof", "without_gpu"):
            for index, proof in enumerate(getattr(take, field)):
                self._check_proof(proof, _line_of(node, (*where, field, index)))
        self._parts(take.goal, _line_of(node, (*where, "goal")))
        self._check_places(take)
        if isinstance(take, Trouble):
            self._check_message(take, _line_of(node, (*where, "message")))

    def _check_places(self, take: Session) -> None:
        for terminal in take.terminals:
            for line in terminal.lines:
                if line.place == "local" and not take.not_played:
                    message = "A command on your own machine: 'not_played:' has to say why."
                    raise self.error(line.number, message)

    def _check_message(self, trouble: Trouble, line: int) -> None:
        """What a reader pastes has to be what the transcript shows."""
        shown_lines = [
            line.text
            for terminal in trouble.terminals
            for line in terminal.lines
            if line.kind == "output" and not line.hidden
        ]
        for raw in trouble.message.splitlines():
            text = shown(self._parts(raw, line))
            if not any(text in shown_line for shown_line in shown_lines):
                raise self.error(line, f"No output shows the message: {text}")

    def _transcript(self, transcript: str, first: int) -> Iterator[Line]:
        has_command = False
        for number, raw in enumerate(transcript.splitlines(), start=first):
            line = self._line(raw, number)
            if line.kind == "command":
                has_command = True
            if line.kind in ("output", "direction", "omission") and not has_command:
                raise self.error(
                    number, "Output before any command. A command starts with a prompt, '$ '."
                )
            yield line

    def _line(self, raw: str, number: int) -> Line:
        hidden = raw.startswith("% ")
        text = raw.removeprefix("% ")
        if command := _COMMAND.fullmatch(text):
            who = command["user"]
            return Line(
                "command",
                self._parts(command["command"], number),
                number,
                hidden,
                comment=command["comment"] or "",
                user="" if who in _PLACES else who,
                place=who if who in _PLACES else "",
            )
        if text.startswith("$"):
            raise self.error(number, "A prompt is '$', one blank, and a command.")
        if hidden and (until := _UNTIL.fullmatch(text)):
            job = self._placeholder(until["job"], None, number)
            return Line("until", (job,), number, hidden, job=job.name, state=until["state"])
        if hidden and text == "press Ctrl+C":
            return Line("press", (), number, hidden)
        if text == "[...]":
            return Line("omission", (Text(text),), number, hidden)
        parts = self._parts(text, number)
        alone = len(parts) == 1 and isinstance(parts[0], Direction)
        return Line("direction" if alone else "output", parts, number, hidden)

    def _parts(self, text: str, line: int) -> tuple[Part, ...]:
        parts: list[Part] = []
        end = 0
        for piece in _PIECE.finditer(text):
            if piece.start() > end:
                parts.append(Text(text[end : piece.start()]))
            end = piece.end()
            if piece["direction"] is not None:
                inner = self._parts(piece["direction"], line)
                parts.append(Direction(piece["direction"], inner))
            else:
                parts.append(self._placeholder(piece["name"], piece["shown"], line))
        if end < len(text):
            parts.append(Text(text[end:]))
        return tuple(parts)

    def _placeholder(self, name: str, shown: str | None, line: int) -> Number | Value:
        if name.isupper():
            if name == "LOGIN":
                return Value(name, DEFAULT_LOGIN)
            if name not in self.values:
                known = ", ".join(["LOGIN", *self.values])
                raise self.error(line, f"<<{name}>> is no course value. There are: {known}.")
            return Value(name, self.values[name])
        if shown is not None:
            if name in self.numbers:
                raise self.error(line, f"<<{name}>> is captured twice. Give it another name.")
            self.numbers[name] = shown
            return Number(name, shown, first=True)
        self._known_number(name, line)
        return Number(name, self.numbers[name])

    def _known_number(self, name: str, line: int) -> None:
        if name not in self.numbers:
            raise self.error(
                line, f"<<{name}>> was never captured. Write <<{name} = 1234567>> where it appears."
            )

    def _match_directions(self, terminal: Terminal, node: yaml.Node, where: tuple) -> None:
        """Each stage direction needs a proof, and each proof a direction."""
        used = {
            part.key: line.number
            for line in terminal.lines
            for part in line.parts
            if isinstance(part, Direction)
        }
        for key, number in used.items():
            if key not in terminal.directions:
                raise self.error(
                    number,
                    f"The stage direction '{key}' has no proof. Add it below 'directions:' of "
                    "this terminal, with what proves it.",
                )
        for key, proof in terminal.directions.items():
            line = _line_of(node, (*where, "directions", key))
            if key not in used:
                raise self.error(line, f"No stage direction '(({key}))' stands in the transcript.")
            self._check_proof(proof, line)

    def _check_proof(self, proof: Proof, line: int) -> None:
        if proof.job:
            self._known_number(proof.job, line)
        texts = (proof.matches, proof.gpu, proof.row, proof.no_row, proof.until, proof.command)
        for text in (*texts, *proof.shows.values()):
            self._parts(text or "", line)

    def _check_prose(self, scene: TranscriptFile, node: yaml.Node) -> None:
        """Prose may hold course values, which are filled in when it is shown, and nothing else."""
        for field in ("intro", "outro", "remember"):
            self._prose(getattr(scene, field, ""), _line_of(node, (field,)))
        for index, take in enumerate(scene.takes):
            for field in ("intro", "why", "went_wrong", "rule", "symptom", "cause", "remedy"):
                self._prose(getattr(take, field, ""), _line_of(node, ("takes", index, field)))
            for number, terminal in enumerate(take.terminals):
                where = ("takes", index, "terminals", number, "intro")
                self._prose(terminal.intro, _line_of(node, where))

    def _prose(self, text: str, line: int) -> None:
        for part in self._parts(text, line):
            if isinstance(part, Number):
                raise self.error(
                    line, f"<<{part.name}>> is known in transcripts only, not in prose."
                )

    def _check_quote(self, scene: TranscriptFile, quote: Quote, line: int) -> None:
        file = LAB / quote.file
        if quote.text not in _all_text(scene):
            raise self.error(line, f"The scene does not show what it quotes: {quote.text}")
        if not file.exists():
            raise self.error(line, f"The scene quotes {quote.file}, and there is no such file.")
        lines = file.read_text(encoding="utf-8").splitlines()
        where = quote.file
        if quote.line is not None:
            lines = lines[quote.line - 1 : quote.line]
            where = f"line {quote.line} of {quote.file}"
        if not any(_stands_in(quote.text, text) for text in lines):
            raise self.error(
                line,
                f"The scene quotes '{quote.text}', which is not in {where} any more. "
                "Change the scene, or put the line back.",
            )


def _stands_in(quoted: str, line: str) -> bool:
    """True where a line of a file is what was quoted, or holds it as whole words.

    An order to Slurm is the whole line: '#SBATCH --gres=gpu:1' is not in '##SBATCH --gres=gpu:1'.
    Anything else does not count where the line is a comment.
    """
    if quoted.startswith("#SBATCH"):
        return line.rstrip() == quoted
    if line.lstrip().startswith("#"):
        return False
    return re.search(rf"(?<!\w){re.escape(quoted)}(?!\w)", line) is not None


def _all_text(scene: Scene) -> str:
    """All that a scene shows, to look up what it quotes."""
    texts = [scene.intro, scene.outro, scene.remember]
    for take in scene.takes:
        texts += [take.intro, take.why, *(terminal.intro for terminal in take.terminals)]
        texts += [line.text for terminal in take.terminals for line in terminal.lines]
    return "\n".join(texts)


def _nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    yield node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _nodes(key)
            yield from _nodes(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _nodes(item)


def _line_of(node: yaml.Node, where: tuple[Any, ...]) -> int:
    """The line of the value at this path of keys, or of the last that exists on the way."""
    line = node.start_mark.line + 1
    for step in where:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(step)]
            if not found:
                return line
            key, node = found[0]
            line = key.start_mark.line + 1
        elif (
            isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value)
        ):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def load_scenes(folder: Path = SCENES, values: dict[str, str] | None = None) -> list[Scene]:
    """All scenes in their order.

    Raises SceneError for the first file that is wrong.
    """
    return _load(folder.glob("[0-9][0-9]_*.yaml"), Scene, values)


def load_pages(folder: Path = SCENES, values: dict[str, str] | None = None) -> list[TranscriptFile]:
    """The sessions of the pages around the story, and then the troubles, by their files' names.

    Raises SceneError for the first file that is wrong.
    """
    troubles = _load(folder.glob("trouble/*.yaml"), Troubles, values)
    _check_anchors(troubles)
    return [*_load(folder.glob("pages/*.yaml"), TranscriptFile, values), *troubles]


def _check_anchors(files: list[Troubles]) -> None:
    """The troubles of all files stand on one page, below the names of their files."""
    taken = {file.name: file.path for file in files}
    for file in files:
        text = file.path.read_text(encoding="utf-8")
        for trouble in file.troubles:
            if trouble.id in taken:
                line = text[: text.index(f"  - id: {trouble.id}\n")].count("\n") + 1
                message = f"'{trouble.id}' is taken by {taken[trouble.id].name}. Rename one."
                raise SceneError(file.path, line, message)
            taken[trouble.id] = file.path


def _load(paths: Iterable[Path], kind: type[_File], values: dict[str, str] | None) -> list[_File]:
    if values is None:
        values = load_values(LAB / "00_setup/course.env")
    return [_Loader(path, values).load(kind) for path in sorted(paths)]
