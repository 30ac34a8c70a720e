"""Lab 02: sleepy.sbatch and sleepy.py, stopped in every way that a student may stop them."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

LAB = Path(__file__).parents[1] / "lab_code/hpc_lab/02_cancel"
STEP_LINE = re.compile(r"\[sleepy\] step ([ \d]{4})  \d\d:\d\d:\d\d  still working\.\.\.")
SAVED_LINE = re.compile(r"\[sleepy\] saved (checkpoint-\w+\.json) at step (\d+) \(cancelled\)")
SIGTERM_LINE = "[sleepy] received signal 15 (SIGTERM) -> cleaning up"


@pytest.fixture
def lab(tmp_path):
    """A copy of the lab's folder, so that the checkpoints land in no other place."""
    return Path(shutil.copytree(LAB, tmp_path / "02_cancel"))


def environment(**slurm):
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **slurm}


def run(lab, *options, **slurm):
    return subprocess.run(
        ["python3", "sleepy.py", *options],
        cwd=lab,
        env=environment(**slurm),
        capture_output=True,
        text=True,
    )


def start(lab, *options):
    """Start it as a job would, and return after the first line."""
    process = subprocess.Popen(
        ["python3", "sleepy.py", *options],
        cwd=lab,
        env=environment(SLURM_JOB_ID="1234570"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout.readline().startswith("[sleepy] ")
    return process


def steps_in(lines):
    return [int(match[1]) for match in map(STEP_LINE.fullmatch, lines) if match]


def wait_for(text, path, process):
    """Wait until the file holds this text while the process is still running."""
    while text not in path.read_text():
        assert process.poll() is None, f"ended without '{text}': {path.read_text()}"
        time.sleep(0.05)


def test_it_runs_to_its_end_and_says_so(lab):
    result = run(lab, "--steps", "3", "--seconds", "0")
    lines = result.stdout.splitlines()
    assert (result.returncode, result.stderr) == (0, "")
    assert steps_in(lines) == [1, 2, 3]
    assert lines[-1] == "[sleepy] finished all 3 steps"
    assert list(lab.glob("checkpoint*")) == []


def test_a_canceled_job_ends_with_the_two_lines_of_the_story(lab):
    # As Slurm does it: a copy of the job script, the signal to its first process, a log file.
    spooled, log = lab.parent / "slurm_script", lab.parent / "sleepy-1234570.out"
    shutil.copy(lab / "sleepy.sbatch", spooled)
    with log.open("w") as out:
        job = subprocess.Popen(
            ["bash", spooled, "--seconds", "0.2"],
            cwd=lab,
            env=environment(SLURM_JOB_ID="1234570"),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    wait_for("[sleepy] step    3  ", log, job)
    job.terminate()
    assert job.wait() == 0
    lines = log.read_text().splitlines()
    last = steps_in(lines)[-1]
    assert lines[-2:] == [
        SIGTERM_LINE,
        f"[sleepy] saved checkpoint-1234570.json at step {last + 1} (cancelled)",
    ]
    assert json.loads((lab / "checkpoint-1234570.json").read_text()) == {
        "step": last + 1,
        "steps": 60,
    }


def test_lines_appear_in_the_log_while_the_job_runs(lab):
    log = lab.parent / "log"
    with log.open("w") as out:
        job = subprocess.Popen(
            ["bash", "sleepy.sbatch", "--seconds", "0.2"], cwd=lab, env=environment(), stdout=out
        )
    wait_for("still working...", log, job)
    job.terminate()
    job.wait()


def test_ctrl_c_by_hand_saves_and_says_so(lab):
    terminal = pexpect.spawn(
        "python3", ["sleepy.py"], cwd=str(lab), env=environment(), encoding="utf-8", timeout=20
    )
    terminal.expect_exact("[sleepy] step 1 to 60")
    terminal.sendintr()
    terminal.expect_exact("[sleepy] received signal 2 (SIGINT) -> cleaning up")
    terminal.expect_exact("[sleepy] saved checkpoint-local.json at step 1 (cancelled)")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert (lab / "checkpoint-local.json").exists()


def test_it_goes_on_from_a_checkpoint(lab):
    checkpoint = lab / "checkpoint-1234570.json"
    checkpoint.write_text('{"step": 4, "steps": 6}')
    result = run(lab, "--resume", checkpoint.name, "--seconds", "0")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("[sleepy] step 4 to 6, ")
    assert steps_in(lines) == [4, 5, 6]
    assert lines[-1] == "[sleepy] finished all 6 steps"


def kill_and_resume(lab, pause, second_pause):
    """Stop it after a pause, perhaps twice, and see it end where an undisturbed run ends."""
    process = start(lab, "--steps", "400", "--seconds", "0.02")
    time.sleep(pause)
    process.send_signal(signal.SIGTERM)
    if second_pause is not None:
        time.sleep(second_pause)
        process.send_signal(signal.SIGTERM)
    lines = process.communicate()[0].splitlines()
    assert lines[-2] == SIGTERM_LINE
    saved = SAVED_LINE.fullmatch(lines[-1])
    checkpoint = json.loads((lab / saved[1]).read_text())
    assert checkpoint == {"step": int(saved[2]), "steps": 400}
    rest = run(lab, "--resume", saved[1], "--seconds", "0").stdout.splitlines()
    assert steps_in(lines) + steps_in(rest) == list(range(1, 401))
    assert rest[-1] == "[sleepy] finished all 400 steps"
    assert not list(lab.glob("*.part"))


# The seeds make a failure come back. What the signal meets differs from run to run all the same.
@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(s, marks=pytest.mark.soak) for s in range(10, 60))]
)
def test_after_sigterm_at_a_random_moment_no_step_is_lost(lab, seed):
    moment = random.Random(seed)
    pause = moment.uniform(0, 1)
    second_pause = moment.uniform(0, 0.03) if seed % 2 else None
    kill_and_resume(lab, pause, second_pause)


def run_with_signal_while_writing(lab, number):
    """Run sleepy.py so that this signal comes just before its checkpoint is on the disk."""
    program = f"""
import os, runpy, sys
real_fsync = os.fsync
def fsync(fd):
    os.kill(os.getpid(), {int(number)})
    real_fsync(fd)
os.fsync = fsync
sys.argv = ["sleepy.py", "--seconds", "0.05"]
runpy.run_path("sleepy.py", run_name="__main__")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=lab,
        env=environment(SLURM_JOB_ID="1234570"),
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    process.terminate()
    return process.communicate()[0], process.returncode


def test_a_second_signal_while_the_checkpoint_is_written_does_no_harm(lab):
    out, code = run_with_signal_while_writing(lab, signal.SIGTERM)
    assert code == 0
    assert SAVED_LINE.fullmatch(out.splitlines()[-1])
    assert json.loads((lab / "checkpoint-1234570.json").read_text())["steps"] == 60


def test_killed_while_writing_it_leaves_the_older_checkpoint_whole(lab):
    older = '{"step": 7, "steps": 60}'
    (lab / "checkpoint-1234570.json").write_text(older)
    _, code = run_with_signal_while_writing(lab, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert (lab / "checkpoint-1234570.json").read_text() == older


BAD_CHECKPOINTS = {
    "empty": b"",
    "half": b'{"step": 4, "st',
    "not-utf8": b"\xff\xfe\x00",
    "list": b"[4, 60]",
    "text-for-number": b'{"step": "4", "steps": 60}',
    "truth-for-number": b'{"step": true, "steps": 60}',
    "number-missing": b'{"step": 4}',
    "step-zero": b'{"step": 0, "steps": 60}',
    "past-the-end": b'{"step": 61, "steps": 60}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", BAD_CHECKPOINTS.values(), ids=BAD_CHECKPOINTS.keys())
def test_a_bad_checkpoint_gives_a_sentence_and_is_kept(lab, content):
    bad = lab / "checkpoint-1234570.json"
    bad.write_bytes(content)
    result = run(lab, "--resume", bad.name, SLURM_JOB_ID="1234570")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("[sleepy] checkpoint-1234570.json is not a checkpoint of")
    assert result.stderr.count("\n") == 1
    assert bad.read_bytes() == content


def test_a_missing_checkpoint_gives_a_sentence(lab):
    result = run(lab, "--resume", "checkpoint-1.json")
    assert result.returncode == 1
    assert result.stderr == (
        "[sleepy] cannot open checkpoint-1.json: No such file or directory. "
        "ls checkpoint-* shows what is there.\n"
    )


def test_a_checkpoint_that_cannot_be_written_gives_a_sentence(lab):
    (lab / "checkpoint-1234570.json").mkdir()  # root may write everywhere, but not over a folder
    process = start(lab, "--seconds", "0.1")
    process.terminate()
    last_line = process.communicate()[0].splitlines()[-1]
    assert process.returncode == 1
    assert last_line.startswith("[sleepy] could not save checkpoint-1234570.json: Is a directory.")


@pytest.mark.parametrize(
    "options",
    [
        ["--steps", "0"],
        ["--steps", "many"],
        ["--seconds", "-1"],
        ["--seconds", "nan"],
        ["--seconds", "soon"],
        ["--steps", "5", "--resume", "checkpoint-1.json"],
    ],
    ids=" ".join,
)
def test_a_bad_option_is_named(lab, options):
    result = run(lab, *options)
    assert result.returncode == 2
    assert re.search(r"error: argument --(steps|seconds|resume)", result.stderr)
    assert "Traceback" not in result.stderr
