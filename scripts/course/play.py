"""Plays the takes of one scene on a real Slurm, as a person would, and compares.

A take opens a login shell where it starts, types its commands, and holds what they print against
its transcript. Then come the proofs: of each stage direction, of what the take claims, and its
goal, which a take that works has to reach and a take that does not work has to miss.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course.matching import difference, fill, match_output, revised, table_rows
from course.scenes import ROOT, Direction, Line, Proof, Session, Terminal, TranscriptFile
from course.shell import Shell, ShellError
from course.sites import Here, Practice

RECORDINGS = ROOT / "build/rehearsal"
LONGEST_COMMAND = 1200  # seconds; installing the environment takes the most
FINAL_STATES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")


class Failure(Exception):
    """A take went differently than it tells."""


@dataclass
class Step:
    """A command with all that belongs to it, or a wait for Slurm."""

    line: Line
    expected: list[Line] = field(default_factory=list)


@dataclass(frozen=True)
class Edit:
    """Lines of a scene's file, and the lines that the cluster printed in their place."""

    first: int
    last: int
    lines: list[str]


def steps(terminal: Terminal) -> list[Step]:
    result: list[Step] = []
    for line in terminal.lines:
        if line.kind in ("command", "until"):
            result.append(Step(line))
        else:
            result[-1].expected.append(line)
    return result


class SceneRehearsal:
    """Plays takes of one scene; keeps its captured numbers and its open shells."""

    def __init__(self, site: Practice | Here, scene: TranscriptFile, recordings: Path = RECORDINGS):
        self.site = site
        self.scene = scene
        self.values = {**site.values, "LOGIN": site.user}
        self.numbers: dict[str, str] = {}
        self.edits: list[Edit] = []  # what --update would write
        self._recordings = recordings
        self._shells: dict[str, Shell] = {}

    def __enter__(self) -> "SceneRehearsal":
        self._recordings.mkdir(parents=True, exist_ok=True)
        for user in (self.site.user, *self.site.helpers):
            self.recording(user).unlink(missing_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def play(self, take: Session) -> str:
        """Play one take, and return the GPU that it used, "none" where it had to do without.

        Raises Failure where it goes differently than it tells.
        """
        try:
            return self._play(take)
        except (Failure, ShellError) as failure:
            raise Failure(
                f"{self.scene.name}/{take.id} ({take.outcome}): {failure}\n"
                f"The recording: {self.recording(self.site.user)}"
            ) from None

    def _play(self, take: Session) -> str:
        if not take.after:
            self._clear()
            self.site.lay_out()
            if take.environment:
                self._set_up_environment()
        shell = self._shell(self.site.user)
        if take.start:
            self._run_unseen(shell, self.start_line(take))
        home = self._home_files()
        without_gpu = bool(take.without_gpu) and not self.site.has_gpu
        gpu = "none" if without_gpu else ""
        for terminal in take.terminals:
            for step in steps(terminal):
                if step.line.kind == "until":
                    self._wait_for_job(step.line.job, step.line.state)
                elif without_gpu:
                    self._type_only(take, step)
                else:
                    gpu = self._play_command(take, terminal, step) or gpu
        for proof in take.without_gpu if without_gpu else take.proof:
            self._prove(proof, shell)
        if take.goal and not without_gpu:
            self._check_goal(take, shell)
        if take.works and (new := self._home_files() - home):
            raise Failure(f"It wrote into the home: {', '.join(sorted(new))}")
        return gpu

    # --- Commands and their output ---

    def start_line(self, take: Session) -> str:
        """What is typed to get to where the take begins."""
        return fill(take.start_parts, self.numbers, self.values)

    def command_line(self, take: Session, line: Line) -> str:
        """What is typed for a command of the take."""
        return fill(line.parts, self.numbers, self.values)

    def _play_command(self, take: Session, terminal: Terminal, step: Step) -> str:
        """Type a command and hold its output against the transcript; return a GPU's name."""
        shell = self._shell(step.line.user or self.site.user)
        shell.type(self.command_line(take, step.line))
        expected = step.expected
        code = 0
        press = next((line for line in expected if self._presses(terminal, line)), None)
        if press:
            expected = expected[: expected.index(press)]
            output = self._wait_for_key(terminal, shell, press, expected)
            shell.press_ctrl_c()
        else:
            output, code = shell.finish(LONGEST_COMMAND)
        match = match_output(expected, output, self.numbers, self.values, begins=press is not None)
        if not match:
            if expected:
                self._remember_edit(expected, output)
            raise Failure(
                f"'{step.line.text}' printed something else:\n"
                + difference(expected, output, self.numbers, self.values)
            )
        self.numbers |= match.numbers
        if take.works and code and not step.line.hidden:
            raise Failure(f"'{step.line.text}' ended with exit code {code}.")
        gpu = ""
        for key, text in match.directions.items():
            proof = terminal.directions[key]
            self._prove_direction(key, proof, text, code, shell)
            gpu = text if proof.gpu else gpu
        return gpu

    def _type_only(self, take: Session, step: Step) -> None:
        """Without a GPU: type the command, and capture the numbers of its unseen output only."""
        shell = self._shell(step.line.user or self.site.user)
        output, _ = shell.run(self.command_line(take, step.line), LONGEST_COMMAND)
        unseen = [line for line in step.expected if line.hidden]
        if unseen:
            match = match_output(unseen, output, self.numbers, self.values)
            if not match:
                raise Failure(f"'{step.line.text}' printed something else:\n{output}")
            self.numbers |= match.numbers

    def _presses(self, terminal: Terminal, line: Line) -> bool:
        if line.kind == "press":
            return True
        return line.kind == "direction" and bool(_proof(terminal, line).press)

    def _wait_for_key(
        self, terminal: Terminal, shell: Shell, press: Line, before: Sequence[Line]
    ) -> str:
        """Wait until it is time to press a key, and return the output so far."""
        until = _proof(terminal, press).until if press.kind == "direction" else None
        if until:
            return shell.wait_until(
                lambda _: self.site.run(self.site.user, until).returncode == 0,
                self.site.longest_wait,
            )
        return shell.wait_until(
            lambda output: (
                match_output(before, output, self.numbers, self.values, begins=True) is not None
            ),
            self.site.longest_wait,
        )

    def _remember_edit(self, expected: Sequence[Line], output: str) -> None:
        source = self.scene.path.read_text(encoding="utf-8").splitlines()
        indent = source[expected[0].number - 1]
        indent = indent[: len(indent) - len(indent.lstrip())]
        lines = []
        for line in revised(expected, output, self.numbers, self.values):
            if isinstance(line, Line):
                lines.append(source[line.number - 1])
            else:
                lines.append(indent + self._as_transcript(line))
        if lines != source[expected[0].number - 1 : expected[-1].number]:
            self.edits.append(Edit(expected[0].number, expected[-1].number, lines))

    def _as_transcript(self, text: str) -> str:
        """A printed line with its known numbers and values as placeholders again."""
        known = {value: name for name, value in (self.values | self.numbers).items()}
        for value in sorted(known, key=len, reverse=True):
            if len(value) > 3:  # a shorter one may be there by chance
                text = text.replace(value, f"<<{known[value]}>>")
        return text

    # --- Proofs ---

    def _prove_direction(self, key: str, proof: Proof, text: str, code: int, shell: Shell) -> None:
        """Hold a stage direction against the text that it stands for."""
        pattern = proof.matches if proof.gpu is None else proof.gpu
        if pattern is not None and not re.fullmatch(pattern, text):
            raise Failure(f"({key}) does not match {pattern!r}:\n{text}")
        if proof.row is not None:
            self._prove_row(key, proof, text)
        if proof.no_row is not None:
            first = self._filled(proof.no_row)
            if not text.split()[:1] == ["JOBID"]:
                raise Failure(f"({key}), but this is no table of squeue:\n{text}")
            if any(first in row.values() for row in table_rows(text)):
                raise Failure(f"({key}), but there is a row '{first}':\n{text}")
        if proof.exit is not None and code != int(proof.exit):
            raise Failure(f"({key}), but the exit code is {code}, not {proof.exit}:\n{text}")
        if proof.job or proof.command:
            self._prove(proof, shell)

    def _prove_row(self, key: str, proof: Proof, text: str) -> None:
        first = self._filled(proof.row)
        rows = [row for row in table_rows(text) if next(iter(row.values())) == first]
        if not rows:
            raise Failure(f"({key}), but there is no row '{first}':\n{text}")
        for column, value in proof.shows.items():
            if rows[0].get(column, "").strip() != self._filled(value):
                raise Failure(f"({key}), but column {column} is not '{value}':\n{text}")

    def _prove(self, proof: Proof, shell: Shell) -> None:
        if proof.job:
            self._wait_for_job(proof.job, proof.state, proof.exit)
        if proof.command:
            command = self._filled(proof.command)
            output, code = shell.run(f"( {command} )", LONGEST_COMMAND)
            if code:
                raise Failure(f"The proof '{command}' failed:\n{output}")

    def _check_goal(self, take: Session, shell: Shell) -> None:
        output, code = shell.run(f"( {self._filled(take.goal)} )", LONGEST_COMMAND)
        reached = code == 0
        if reached and not take.works:
            raise Failure(f"It is told as 'does not work', but '{take.goal}' succeeds:\n{output}")
        if take.works and not reached:
            raise Failure(f"It is told as 'works', but '{take.goal}' fails:\n{output}")

    def _wait_for_job(self, name: str, state: str, exit_code: object = None) -> None:
        """Wait until Slurm says so of a job, of all its tasks for an array."""
        job = self.numbers[name]
        wanted = (state, str(exit_code)) if exit_code is not None else (state,)
        fields = "State,ExitCode" if exit_code is not None else "State"
        ask = f"sacct -j {job} --allocations --noheader --parsable2 --format={fields}"
        if state in ("PENDING", "RUNNING"):  # the database learns it some seconds later
            queue = f"squeue --jobs={job} --states=all --noheader --format=%T"
            ask = f"{{ {queue} 2>/dev/null | grep .; }} || {ask}"
        if state == "RUNNING":  # Slurm says so a moment before the log is there
            log = f"scontrol show job {job} | sed -n 's/^ *StdOut=//p'"
            settled = f'for file in $({log}); do [ -e "$file" ] || exit 1; done'
        else:  # its last words may be on their way
            settled = f"! scontrol show job {job} | grep --quiet COMPLETING"

        def said() -> list[tuple[str, ...]]:
            rows = self.site.run(self.site.user, ask).stdout.splitlines()
            # sacct says "CANCELLED by 1001"
            return [tuple(cell.partition(" ")[0] for cell in row.split("|")) for row in rows]

        end = time.monotonic() + self.site.longest_wait
        while True:
            rows = said()
            if rows and all(row == wanted for row in rows):
                if self.site.run(self.site.user, settled).returncode == 0:
                    return
            elif rows and all(row[0] in FINAL_STATES for row in rows):
                seen = ", ".join(sorted({" ".join(row) for row in rows}))
                raise Failure(f"Job {job} ({name}) is {seen}, not {' '.join(wanted)}.")
            if time.monotonic() > end:
                raise Failure(f"Job {job} ({name}) did not become {state}; sacct says {rows}.")
            time.sleep(0.3)  # Slurm offers nothing to wait on; ask it again

    # --- Shells, files, jobs ---

    def _filled(self, text: str) -> str:
        for name, number in self.numbers.items():
            text = text.replace(f"<<{name}>>", number)
        for name, value in self.values.items():
            text = text.replace(f"<<{name}>>", value)
        return text

    def recording(self, user: str) -> Path:
        """The file that receives all that appears in this user's shells."""
        return self._recordings / f"{self.scene.path.stem}-{user}.txt"

    def _shell(self, user: str) -> Shell:
        if user not in self._shells:
            self._shells[user] = Shell(self.site.shell_command(user), self.recording(user))
        return self._shells[user]

    def _run_unseen(self, shell: Shell, command: str) -> str:
        output, code = shell.run(command, LONGEST_COMMAND)
        if code:
            raise Failure(f"'{command}' ended with exit code {code}:\n{output}")
        return output

    def _set_up_environment(self) -> None:
        """What scene 0 shows, unseen: takes that need the environment can be played alone."""
        # The GPU is not for the work: whether Alpha takes a job without one is not known.
        resources = (
            "--nodes=1 --ntasks=1 --cpus-per-task=4 --mem-per-cpu=2G --gres=gpu:1 --time=00:45:00"
        )
        account = self.values["ACCOUNT"]
        script = "~/behind-llms-lab/hpc_lab/00_setup/setup_env.sh"
        self._run_unseen(
            self._shell(self.site.user), f"srun --account={account} {resources} bash {script}"
        )

    def _home_files(self) -> set[str]:
        """The files of the home outside the lab's folder."""
        find = "find ~ -path ~/behind-llms-lab -prune -o -type f -print"
        return set(self.site.run(self.site.user, find).stdout.splitlines())

    def _clear(self) -> None:
        """Close the shells, cancel the jobs that were submitted, and forget the numbers."""
        for shell in self._shells.values():
            shell.close()
        self._shells.clear()
        jobs = [number for name, number in self.numbers.items() if name.startswith("job")]
        self.numbers.clear()
        for user in (self.site.user, *self.site.helpers):
            if jobs:
                self.site.run(user, f"scancel --quiet {' '.join(jobs)}")
        while (
            jobs
            and self.site.run(
                self.site.user, f"squeue --noheader --jobs={','.join(jobs)} 2>/dev/null | grep ."
            ).stdout
        ):
            time.sleep(0.3)  # until Slurm has ended them
        self.site.clean_home()


def _proof(terminal: Terminal, line: Line) -> Proof:
    direction = next(part for part in line.parts if isinstance(part, Direction))
    return terminal.directions[direction.key]
