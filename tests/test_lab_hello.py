"""Lab 01: hello.sbatch and hello.py, run as a student and as Slurm would run them."""

import importlib.util
import os
import random
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

LAB = Path(__file__).parents[1] / "lab_code/hpc_lab/01_hello"
LAST_LINE = re.compile(r"pi ~ (3\.14\d+)   \(20,000,000 samples on (\d+) CPU\(s\) in \d+\.\d+ s\)")


def environment(**slurm):
    """The variables of a plain login shell, and those that Slurm would set."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **slurm}


def run(*command, preexec_fn=None, **slurm):
    return subprocess.run(
        command,
        cwd=LAB,
        env=environment(**slurm),
        capture_output=True,
        text=True,
        preexec_fn=preexec_fn,
    )


@pytest.fixture
def hello():
    spec = importlib.util.spec_from_file_location("hello", LAB / "hello.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_job_prints_the_lines_of_the_story(tmp_path):
    # Slurm runs a copy of the job script, from the folder in which sbatch was typed.
    spooled = tmp_path / "slurm_script"
    spooled.write_bytes((LAB / "hello.sbatch").read_bytes())
    job = run("bash", str(spooled), SLURM_JOB_ID="1234568", SLURM_CPUS_PER_TASK="4")
    assert (job.returncode, job.stderr) == (0, "")
    lines = job.stdout.splitlines()
    assert lines[0] == f"Hello from        : {socket.gethostname()}"
    assert lines[1] == "CPUs I may use    : 4   <- what Slurm allocated to me"
    assert lines[2] == "Slurm job         : 1234568"
    assert LAST_LINE.fullmatch(lines[-1])[2] == "4"


def test_without_slurm_it_uses_the_cpus_that_it_may_run_on():
    a_cpu = {min(os.sched_getaffinity(0))}
    result = run("python3", "hello.py", preexec_fn=lambda: os.sched_setaffinity(0, a_cpu))
    lines = result.stdout.splitlines()
    assert lines[1] == "CPUs I may use    : 1   <- what the operating system lets me use"
    assert LAST_LINE.fullmatch(lines[-1])[2] == "1"
    assert "Slurm allocated" not in result.stdout


def test_on_a_system_without_affinity_it_counts_the_cpus_of_the_machine(hello, monkeypatch):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity")  # as on a Mac
    assert hello.allocated_cpus() == (os.cpu_count(), "all that this machine has")


def test_the_digits_can_be_checked():
    shares = [6_666_667, 6_666_667, 6_666_666]
    hits = 0
    for seed, share in enumerate(shares):
        throw = random.Random(seed).random
        hits += sum(throw() ** 2 + throw() ** 2 < 1 for _ in range(share))
    result = run("python3", "hello.py", SLURM_CPUS_PER_TASK="3")
    assert LAST_LINE.fullmatch(result.stdout.splitlines()[-1])[1] == f"{4 * hits / 20_000_000:.6f}"


def test_no_sample_is_lost_when_they_are_shared_out(hello):
    for workers in range(1, 129):
        shares = hello.share_out(hello.SAMPLES, workers)
        assert (len(shares), sum(shares)) == (workers, 20_000_000)
        assert max(shares) - min(shares) <= 1


def cpu_seconds_of_descendants(pid):
    """CPU seconds of each process below this one, by its number; ended ones are left out."""
    children, used = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        child = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(child)
        used[child] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    found, look_at = {}, [pid]
    while look_at:
        for child in children.get(look_at.pop(), []):
            found[child] = used[child]
            look_at.append(child)
    return found


def test_one_process_computes_on_each_allocated_cpu():
    most = {}
    with subprocess.Popen(
        ["python3", "hello.py"],
        cwd=LAB,
        env=environment(SLURM_CPUS_PER_TASK="3"),
        stdout=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            most.update(cpu_seconds_of_descendants(process.pid))
            time.sleep(0.05)
    # Python's own helper processes, where it has any, use next to nothing.
    assert sum(seconds > 0.2 for seconds in most.values()) == 3


@pytest.mark.parametrize("value", ["four", "0", "-2", "1.5", "", "1000000", "²"])
def test_a_bad_number_of_cpus_gives_a_sentence(value):
    result = run("python3", "hello.py", SLURM_CPUS_PER_TASK=value)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"SLURM_CPUS_PER_TASK is '{value}', but it must be")
    assert result.stderr.count("\n") == 1
