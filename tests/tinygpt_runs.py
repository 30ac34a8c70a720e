"""Runs the programs of labs 04 and 05 as a job would, only smaller."""

import os
import re
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
LAB = ROOT / "lab_code/hpc_lab/04_tinygpt"
TINY = ["--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4"]


def environment():
    """A job's environment: one core for each run, and nothing of the tester's own settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "SLURM_CPUS_PER_TASK": "1"}


def short_text(folder):
    """A text that is read in no time: the first speeches of the real one."""
    path = folder / "short.txt"
    path.write_text((LAB / "shakespeare.txt").read_text(encoding="utf-8")[:30_000])
    return path


def command(program, *options):
    return [sys.executable, "-u", str(LAB / program), *map(str, options)]


def run(program, *options, **more):
    """Run a program of the lab to its end; return what subprocess.run() returns."""
    more = {"env": environment(), "capture_output": True, "text": True, "timeout": 300, **more}
    return subprocess.run(command(program, *options), **more)


def start(program, *options):
    """Start a program of the lab, its output in a pipe."""
    return subprocess.Popen(
        command(program, *options),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def train(folder, *options):
    """Run a tiny training whose results go to folder/run."""
    data = folder / "short.txt"
    if not data.exists():
        short_text(folder)
    return run("train.py", *TINY, f"--data={data}", f"--out={folder / 'run'}", *options)


def lines(output):
    """The lines of the story in a training's output: (step, train, val) each."""
    line = r"step +(\d+) \| train (\S+) \| val (\S+) \| \S+k tok/s \| \d+s"
    return [(int(s), float(t), float(v)) for s, t, v in re.findall(line, output)]


def saved(folder):
    """The checkpoint in folder/run."""
    return torch.load(folder / "run/checkpoint.pt", weights_only=True)


def is_one_sentence(text):
    """True when an error is a single line and not a traceback."""
    return len(text.strip().splitlines()) == 1 and "Traceback" not in text


def same(a, b):
    """True when two checkpoints' contents are equal to the last bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b
