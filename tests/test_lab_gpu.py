"""Lab 03: gpu.sbatch and check_gpu.py, with and without a GPU."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

LAB = Path(__file__).parents[1] / "lab_code/hpc_lab/03_gpu"
NO_GPU_LINES = """\
CUDA available        : False
No GPU found. Did you ask for one with --gres=gpu:1 ?
"""
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: no GPU")
needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="not run: there is a GPU")
needs_cpu_build = pytest.mark.skipif(
    torch.version.cuda is not None, reason="not run: this PyTorch is not the CPU build"
)


def run(*command, cwd=LAB, **slurm):
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **slurm}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture
def check_gpu():
    spec = importlib.util.spec_from_file_location("check_gpu", LAB / "check_gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def lab(tmp_path):
    """The lab's folder beside an environment: the one in which these tests run."""
    (tmp_path / "00_setup").mkdir()
    (tmp_path / "00_setup/activate.sh").write_text(f'PATH="{Path(sys.executable).parent}:$PATH"\n')
    return Path(shutil.copytree(LAB, tmp_path / "03_gpu"))


# Empty, or what is no GPU's number, hides the GPUs of a machine that has some. Slurm before 21.08
# wrote NoDevFiles where a job had not asked for one.
@pytest.mark.parametrize(
    "visible",
    [
        "",
        "NoDevFiles",
        pytest.param(None, marks=needs_no_gpu, id="unset"),
        pytest.param("1", marks=needs_no_gpu),
    ],
)
def test_without_a_gpu_it_prints_the_two_lines_of_the_story(visible):
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    result = run(sys.executable, "check_gpu.py", **variables)
    assert (result.returncode, result.stdout, result.stderr) == (0, NO_GPU_LINES, "")


@needs_cpu_build
@pytest.mark.parametrize("gpu", ["0", "1"])  # the first or another one of the machine
def test_where_slurm_allocated_a_gpu_it_says_that_pytorch_is_built_without_cuda(gpu):
    job = {"SLURM_JOB_ID": "1234575", "SLURM_JOB_GPUS": gpu, "CUDA_VISIBLE_DEVICES": gpu}
    result = run(sys.executable, "check_gpu.py", **job)
    assert result.returncode == 0
    third_line = result.stdout.removeprefix(NO_GPU_LINES)
    assert third_line.startswith(
        "Slurm did allocate a GPU, but this PyTorch is built without CUDA."
    )
    assert third_line.count("\n") == 1


def test_it_tells_a_build_without_cuda_from_a_driver_that_is_too_old(check_gpu):
    assert "is built without CUDA" in check_gpu.why_no_gpu(None)
    too_old = check_gpu.why_no_gpu("13.0")
    assert "built for CUDA 13.0" in too_old
    assert "the driver is too old" in too_old


def test_without_the_gres_line_the_job_still_runs(lab):
    script = lab / "gpu.sbatch"
    text = script.read_text()
    assert text.count("\n#SBATCH --gres=gpu:1\n") == 1
    script.write_text(text.replace("#SBATCH --gres=gpu:1\n", ""))
    result = run("bash", "gpu.sbatch", cwd=lab, CUDA_VISIBLE_DEVICES="")
    assert (result.returncode, result.stdout) == (0, NO_GPU_LINES)


def test_without_an_environment_the_job_fails_at_once(lab):
    (lab / "../00_setup/activate.sh").write_text("echo No environment. >&2\nreturn 1\n")
    result = run("bash", "gpu.sbatch", cwd=lab)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "No environment.\n")


def test_without_pytorch_it_says_what_to_source():
    # -I and -S leave out everything that is installed beside Python.
    result = run(sys.executable, "-I", "-S", "check_gpu.py")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        "This Python has no PyTorch. Switch the lab's environment on and try again: "
        "source ../00_setup/setup_env.sh\n"
    )


def test_the_speed_of_the_cpu_is_plausible(check_gpu):
    # Between a phone and a whole node; a slip of 1000 (GFLOP/s, milliseconds) lies outside.
    assert 0.002 < check_gpu.tflops("cpu", torch.float32, 1024) < 10


@pytest.mark.parametrize(("free_gib", "size"), [(38, 8192), (1, 6656), (0.1, 2048), (0, 256)])
def test_the_matrices_fit_into_the_free_memory(check_gpu, free_gib, size):
    assert check_gpu.largest_size(free_gib * 2**30) == size


@needs_gpu
def test_with_a_gpu_it_prints_its_name_and_three_speeds(lab):
    result = run("bash", "gpu.sbatch", cwd=lab)
    lines = result.stdout.splitlines()
    assert lines[0] == "CUDA available        : True"
    assert re.fullmatch(r"GPU 0                 : .+, \d+\.\d GiB", lines[1])
    speeds = [
        float(re.fullmatch(rf"{label}   : +([\d.]+) TFLOP/s   \(.+\)", line)[1])
        for label, line in zip(
            ["CPU, 32-bit numbers", "GPU, 32-bit numbers", "GPU, 16-bit numbers"],
            lines[2:],
            strict=True,
        )
    ]
    assert speeds == sorted(speeds)
