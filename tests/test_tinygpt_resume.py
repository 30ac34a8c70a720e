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


def interrupt(process, number, after):
    """Send a signal some time after the training's first line; return (output, errors)."""
    first = process.stdout.readline()
    time.sleep(after)  # a random moment: that is the test
    process.send_signal(number)
    output, errors = process.communicate(timeout=120)
    return first + output, errors


def kill_again_and_again(folder, times, seed):
    """Kill a training at random moments; each next start has to go on from a whole checkpoint."""
    chance = random.Random(seed)
    short_text(folder)
    reached = 0
    for _ in range(times):
        process = start_training(folder, "--steps=1000000", "--eval-every=5")
        output, errors = interrupt(process, signal.SIGKILL, chance.uniform(0, 1.5))
        assert errors == ""
        began = going_on_at(output)
        assert began % 5 == 0
        assert began >= reached - 5, f"it was at {reached}, and went on at {began}"
        reached = max([began, *(step for step, _, _ in lines(output))])
    assert reached > 0


def stop_again_and_again(folder, times, seed):
    """Stop a training at random moments; in the end it is like one that was never stopped."""
    chance = random.Random(seed)
    short_text(folder)
    options = ["--steps=30000", "--eval-every=10000"]
    stopped_at = 0
    for _ in range(times):
        process = start_training(folder, *options)
        output, errors = interrupt(process, signal.SIGTERM, chance.uniform(0, 1.0))
        assert (process.returncode, errors) == (0, "")
        assert "Got SIGTERM, saving a checkpoint and stopping\n" in output
        assert (folder / "run/loss.png").exists()
        # The checkpoint of that very step, not the one of the last line.
        assert going_on_at(output) == stopped_at
        stopped_at = saved(folder)["trainer"]["progress"][0]
    assert stopped_at > 0
    return stopped_at


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
    while not process.stdout.readline().startswith("step "):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert "Got SIGTERM, saving a checkpoint and stopping\n" in output
    assert saved(tmp_path)["trainer"]["progress"][0] >= lines(output)[-1][0] if lines(output) else 1
