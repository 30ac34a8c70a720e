"""Nothing is lost: trainings that are stopped or killed go on, to the same result."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tinygpt_runs import (
    LAB,
    TINY,
    environment,
    lines,
    same,
    saved,
    short_text,
    start,
    train,
)


def start_training(folder, *options):
    return start(
        "train.py",
        *TINY,
        f"--data={folder / 'short.txt'}",
        f"--out={folder / 'run'}",
        *options,
    )


def going_on_at(output):
    """The step at which a training went on, as it says itself; 0 when it began."""
    for line in output.splitlines():
        if line.startswith("Going on at step "):
            return int(line.split()[4].rstrip(","))
    return 0


def interrupt(process, number, chance):
    """Send a signal at a random moment: after some lines and some more time. Return the output."""
    output = ""
    for _ in range(chance.randint(1, 6)):  # the first line comes before the training
        output += process.stdout.readline()
    time.sleep(chance.uniform(0, 0.1))  # anywhere in a step, or in the middle of saving
    process.send_signal(number)
    rest, errors = process.communicate(timeout=120)
    assert errors == ""
    return output + rest


def kill_again_and_again(folder, times, seed):
    """Kill a training at random moments; each next start has to go on from a whole checkpoint."""
    chance = random.Random(seed)
    short_text(folder)
    reached = 0
    for _ in range(times):
        process = start_training(folder, "--steps=1000000", "--eval-every=5")
        output = interrupt(process, signal.SIGKILL, chance)
        began = going_on_at(output)
        if began == 0 and not lines(output):
            continue  # killed before it could say where it goes on
        assert began % 5 == 0
        assert began >= reached - 5, f"it was at {reached}, and went on at {began}"
        reached = max([began, *(step for step, _, _ in lines(output))])
    assert reached > 0


def stop_again_and_again(folder, times, seed):
    """Stop a training at random moments: each next start has to go on at that very step."""
    chance = random.Random(seed)
    short_text(folder)
    stopped_at = [0]
    for _ in range(times):
        process = start_training(folder, "--steps=1000000", "--eval-every=100")
        output = interrupt(process, signal.SIGTERM, chance)
        assert process.returncode == 0
        assert "Got SIGTERM, saving a checkpoint and stopping\n" in output
        assert (folder / "run/loss.png").exists()
        assert going_on_at(output) == stopped_at[-1]
        stopped_at.append(saved(folder)["trainer"]["progress"][0])
        assert stopped_at[-1] >= max([0, *(step for step, _, _ in lines(output))])
    # Not the checkpoints of the lines, which are saved every 100 steps.
    assert any(step % 100 for step in stopped_at)


def test_after_kill_9_it_goes_on_from_a_whole_checkpoint(tmp_path):
    kill_again_and_again(tmp_path, times=10, seed=1)


@pytest.mark.soak
def test_after_kill_9_it_goes_on_from_a_whole_checkpoint_100_times(tmp_path):
    kill_again_and_again(tmp_path, times=100, seed=2)


def test_sigterm_saves_the_very_step(tmp_path):
    stop_again_and_again(tmp_path, times=10, seed=3)


@pytest.mark.soak
def test_sigterm_saves_the_very_step_30_times(tmp_path):
    stop_again_and_again(tmp_path, times=30, seed=4)


def test_going_on_leads_to_the_same_bits_as_never_stopping(tmp_path):
    stopped, undisturbed = tmp_path / "stopped", tmp_path / "undisturbed"
    options = ["--steps=600", "--eval-every=100"]
    for folder in (stopped, undisturbed):
        folder.mkdir()
        short_text(folder)
    process = start_training(stopped, *options)
    while not process.stdout.readline().startswith("step   200"):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert "Got SIGTERM" in out
    assert 200 <= saved(stopped)["trainer"]["progress"][0] < 600
    assert train(stopped, *options).returncode == 0
    assert train(undisturbed, *options).returncode == 0

    a, b = saved(stopped), saved(undisturbed)
    for state in (a, b):  # the seconds may differ, nothing else
        step, _, history = state["trainer"]["progress"]
        state["trainer"]["progress"] = [step, [line[:3] for line in history]]
    assert same(a, b)


def test_two_processes_learn_what_one_learns(tmp_path):
    alone, together = tmp_path / "alone", tmp_path / "together"
    for folder in (alone, together):
        folder.mkdir()
        short_text(folder)
    options = ["--steps=60", "--eval-every=20"]
    one = train(alone, *options)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    two = subprocess.run(
        [
            *torchrun,
            LAB / "train.py",
            *TINY,
            f"--data={together / 'short.txt'}",
            f"--out={together / 'run'}",
            *options,
        ],
        env={**environment(), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert two.returncode == 0, two.stderr
    assert len(lines(one.stdout)) == 3
    for a, b in zip(lines(one.stdout), lines(two.stdout), strict=True):
        assert a == pytest.approx(b, abs=2e-3)


def test_torchrun_passes_sigterm_on_and_nothing_is_lost(tmp_path):
    short_text(tmp_path)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    options = [f"--data={tmp_path / 'short.txt'}", f"--out={tmp_path / 'run'}"]
    process = subprocess.Popen(
        [*torchrun, LAB / "train.py", *TINY, *options, "--steps=1000000", "--eval-every=10"],
        env={**environment(), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    output = ""
    while not lines(output):
        output += process.stdout.readline()
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    output += process.communicate(timeout=120)[0]
    assert "Got SIGTERM, saving a checkpoint and stopping\n" in output
    assert saved(tmp_path)["trainer"]["progress"][0] >= lines(output)[-1][0]
