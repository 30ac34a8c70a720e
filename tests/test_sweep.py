"""Lab 05: what the collector makes of the results, and what the scripts refuse.

The sweep itself, as Slurm runs it, is played with scene 5 (scripts/rehearse).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).parents[1] / "lab_code/hpc_lab/05_sweep"
RATES = ["0.003", "0.01", "0.03", "0.1"]


def result(workspace, sweep, task, losses, steps=500):
    """Leave what train.py leaves of one task: a line each 250 steps."""
    folder = workspace / f"sweep/{sweep}/{task}"
    folder.mkdir(parents=True)
    history = [[250 * (n + 1), loss - 0.1, loss, 10.0 * n] for n, loss in enumerate(losses)]
    (folder / "losses.json").write_text(
        json.dumps({"settings": {"steps": steps}, "history": history})
    )


def collect(workspace, *arguments, folder=None):
    environment = {"PATH": os.environ["PATH"]}
    if workspace:
        environment["WS_DIR"] = str(workspace)
    return subprocess.run(
        [sys.executable, LAB / "collect.py", *map(str, arguments)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_the_table_is_sorted_by_the_validation_loss(tmp_path):
    for task, loss in enumerate([2.0, 1.6, 1.5, 1.9]):
        result(tmp_path, 77, task, [loss + 0.5, loss])
    done = collect(tmp_path, 77, *RATES)
    assert (done.returncode, done.stderr) == (0, "")
    table = [line.split("|") for line in done.stdout.splitlines() if line[:4].strip().isdigit()]
    assert [line[1].strip() for line in table] == ["0.03", "0.01", "0.1", "0.003"]
    assert [line[2].strip() for line in table] == ["1.5000", "1.6000", "1.9000", "2.0000"]
    assert (tmp_path / "sweep/77/sweep.png").read_bytes().startswith(b"\x89PNG")


def test_failed_and_missing_tasks_are_named_with_their_log(tmp_path):
    result(tmp_path, 77, 0, [2.5, 2.0])
    result(tmp_path, 77, 1, [2.5])  # stopped in the middle
    # 2 left nothing, 3 left rubbish
    (tmp_path / "sweep/77/3").mkdir()
    (tmp_path / "sweep/77/3/losses.json").write_text("{")
    done = collect(tmp_path, 77, *RATES)
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if "0.01" in line]
    assert line.endswith("250 of   500  not finished: read logs/sweep-77_1.err")
    for task in (2, 3):
        assert f"no result: read logs/sweep-77_{task}.err" in done.stdout


def test_a_sweep_without_any_result_fails_in_a_sentence(tmp_path):
    done = collect(tmp_path, 77, *RATES)
    assert done.returncode == 1
    assert f"No job of sweep 77 left a result in {tmp_path}/sweep/77." in done.stderr


def test_two_sweeps_do_not_mix(tmp_path):
    for task in range(4):
        result(tmp_path, 77, task, [2.0, 1.5])
        result(tmp_path, 78, task, [3.0, 2.5])
    assert "1.5000" in collect(tmp_path, 77, *RATES).stdout
    assert "1.5000" not in collect(tmp_path, 78, *RATES).stdout


def test_forty_learning_rates_work_as_well(tmp_path):
    rates = [f"{0.001 * (n + 1):g}" for n in range(40)]
    for task in range(40):
        result(tmp_path, 77, task, [2.5, 2 - task / 100])
    done = collect(tmp_path, 77, *rates)
    assert done.returncode == 0
    assert done.stdout.splitlines()[3].split("|")[1].strip() == "0.04"


@pytest.mark.parametrize("arguments", [[], ["77"], ["seventy", "0.1"]])
def test_the_collector_says_how_it_is_called(tmp_path, arguments):
    done = collect(tmp_path, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("Usage: python collect.py")


def test_the_collector_needs_the_workspace():
    done = collect(None, 77, *RATES)
    assert done.returncode == 1
    assert "source ../00_setup/setup_env.sh" in done.stderr


@pytest.fixture
def copy(tmp_path):
    """A copy of the lab's folder, to change it."""
    folder = tmp_path / "05_sweep"
    shutil.copytree(LAB, folder)
    return folder


def submit(folder, **environment):
    """Run ./submit_sweep.sh where there is no Slurm."""
    return subprocess.run(
        ["./submit_sweep.sh"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
    )


def test_without_the_environment_it_says_the_line_of_the_story(copy):
    done = submit(copy)
    expected = "./submit_sweep.sh: line 7: WS_DIR: run source ../00_setup/setup_env.sh first\n"
    assert (done.stdout, done.stderr) == ("", expected)
    assert done.returncode != 0


def test_more_learning_rates_than_jobs_are_noticed_before_anything_is_submitted(copy):
    script = copy / "submit_sweep.sh"
    script.write_text(script.read_text().replace("learning_rates=(", "learning_rates=(0.2 0.3 "))
    done = submit(copy, WS_DIR="/somewhere")
    assert "For 6 learning rates, sweep.sbatch needs this line:\n#SBATCH --array=0-5" in done.stderr
    assert (done.stdout, done.returncode) == ("", 1)


def test_fewer_jobs_than_learning_rates_are_noticed_too(copy):
    script = copy / "sweep.sbatch"
    script.write_text(script.read_text().replace("--array=0-3", "--array=0-2"))
    done = submit(copy, WS_DIR="/somewhere")
    assert "#SBATCH --array=0-3" in done.stderr
    assert (done.stdout, done.returncode) == ("", 1)


def test_shellcheck_finds_nothing_in_the_shell_scripts():
    result = subprocess.run(["shellcheck", LAB / "submit_sweep.sh"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "")
