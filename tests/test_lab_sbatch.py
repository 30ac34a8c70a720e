"""Every job script of the lab: what Slurm reads in it, and what shellcheck says about it."""

import re
import subprocess
from pathlib import Path

import pytest

LAB_CODE = Path(__file__).parents[1] / "lab_code"
SCRIPTS = sorted(LAB_CODE.rglob("*.sbatch"))

every_script = pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda path: str(path.relative_to(LAB_CODE))
)


def sbatch_options(text):
    """The options that Slurm reads: #SBATCH lines above the first command, exactly so written."""
    options = {}
    for line in text.splitlines():
        if line.startswith("#SBATCH"):
            # Text behind the value is a hard error in Slurm.
            name, value = re.fullmatch(r"#SBATCH --([a-z-]+)=(\S+)", line).groups()
            assert name not in options, f"--{name} twice"
            options[name] = value
        elif line.strip() and not line.startswith("#"):
            break
    return options


def megabytes(text):
    number, unit = re.fullmatch(r"(\d+)([MG]?)", text).groups()
    return int(number) * (1024 if unit == "G" else 1)


def test_the_job_scripts_are_found():
    assert {"hello.sbatch", "sleepy.sbatch", "gpu.sbatch"} <= {path.name for path in SCRIPTS}


@every_script
def test_it_says_what_the_job_needs(script):
    text = script.read_bytes().decode("ascii")
    assert text.startswith("#!/bin/bash\n")
    assert "\r" not in text
    options = sbatch_options(text)
    written = re.findall(r"^\s*#\s*SBATCH\s+--", text, flags=re.MULTILINE)
    assert len(written) == len(options), "Slurm would not read every #SBATCH line"
    assert options["account"] == "p_lv_llmsecrets"
    assert (options["nodes"], options["ntasks"]) == ("1", "1")
    assert re.fullmatch(r"[a-z-]+", options["job-name"])
    assert re.fullmatch(r"\d\d:\d\d:\d\d", options["time"])
    assert re.fullmatch(r"logs/%x-(%j|%A_%a)\.out", options["output"])
    assert options["error"] == options["output"].removesuffix("out") + "err"


@every_script
def test_it_keeps_to_what_alpha_allows_for_each_gpu(script):
    options = sbatch_options(script.read_text())
    gpus = int(options.get("gres", "gpu:1").removeprefix("gpu:"))
    cpus = int(options["cpus-per-task"])
    assert cpus <= 6 * gpus
    if "mem" in options:
        memory = megabytes(options["mem"])
    else:
        memory = cpus * megabytes(options["mem-per-cpu"])
    assert memory <= 123_750 * gpus


@every_script
def test_shellcheck_finds_nothing(script):
    # SC1091 only says that shellcheck does not look into a file that is sourced.
    result = subprocess.run(
        ["shellcheck", "--exclude=SC1091", script], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (0, "")
