"""Every job script of the lab: what Slurm reads in it, what shellcheck says, how Slurm runs it."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from course.cluster import Cluster
from course.sites import LAB_FOLDER, Practice

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


@pytest.mark.parametrize("name", ["train", "train_two_gpus", "sweep"])
def test_a_training_asks_to_be_warned_before_its_time_is_up(name):
    [script] = LAB_CODE.rglob(f"{name}.sbatch")
    assert sbatch_options(script.read_text())["signal"] == "B:TERM@60"


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


# --- As Slurm runs them ---

# Takes the place of every program of the lab, so that nothing has to be installed or computed:
# says where it is, and stays until it is told to stop.
STAND_IN = """\
import json, os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
print("a line for the log")
names = ("SLURM_CPUS_PER_TASK", "HF_HOME")
found = {"folder": os.getcwd(), "python": sys.executable} | {n: os.getenv(n) for n in names}
with open("found.part", "w") as file:
    json.dump(found, file)
os.rename("found.part", "found-" + os.environ["SLURM_JOB_ID"])
signal.pause()
"""
# A workspace of its own, with an environment that looks whole, but has no packages.
PREPARE = r"""
cd 00_setup && sed --in-place 's/^WORKSPACE=.*/WORKSPACE=job-scripts/' course.env && source check.sh
workspace=$(ws_allocate -F "$FILESYSTEM" "$WORKSPACE" 1 2>/dev/null)
python3 -m venv --without-pip "$workspace/venv"
printf '#!/bin/sh\nshift 2\nexec python "$@"\n' >"$workspace/venv/bin/torchrun"
chmod +x "$workspace/venv/bin/torchrun"
{ wanted && echo "python $(python_version python3)"; } >"$workspace/venv/lab-environment"
echo "$workspace"
"""


@dataclass
class Job:
    """What was seen of the job of one script."""

    found: dict[str, str]  # by the program: its folder, its Python, and some variables
    log_while_running: str
    log: str  # after the script's first process was told to stop


class Student:
    """Marie on the practice cluster, with the lab laid out anew in her home."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        Practice(cluster).lay_out()
        self.workspace = self.run(PREPARE).strip()

    def run(self, command: str) -> str:
        done = self.cluster.run("marie", f"cd ~/{LAB_FOLDER} && {{\n{command}\n}}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, program: str, text: str) -> None:
        self.run(f"cat >{program} <<'END'\n{text}\nEND")

    def queue(self) -> str:
        return self.run("squeue --me --noheader --array --format='%A %t %r'")


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for this; what comes too late is seen by the test."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)


@pytest.fixture(scope="module")
def student(cluster: Cluster) -> Iterator[Student]:
    marie = Student(cluster)
    yield marie
    marie.run("scancel --me; rm -rf */logs; ws_release -F horse job-scripts")
    Practice(cluster).lay_out()


@pytest.fixture(scope="module")
def jobs(student: Student) -> dict[str, Job]:
    """All scripts, each submitted in its folder, and with nothing of the shell's environment."""
    for program in student.run("ls [0-9]*/*.py").split():
        student.write(program, STAND_IN)
    numbers = {}
    for script in SCRIPTS:
        # Of the sweep, one job is enough. It needs a number; the others leave it alone.
        array = "--array=0" if script.name == "sweep.sbatch" else ""
        sbatch = f"sbatch --parsable --export=NONE {array} {script.name} 0.1"
        numbers[script.name] = student.run(f"cd {script.parent.name}; mkdir -p logs; {sbatch}")[:-1]

    def seen(job: str) -> str:
        return student.run(f"cat */found-{job} 2>/dev/null || true")

    def log(job: str) -> str:
        return student.run(f"cat */logs/*-{job}[._]* 2>/dev/null || true")

    def in_queue(job: str) -> bool:
        return job in student.queue()

    wait_until(lambda: all(seen(job) or not in_queue(job) for job in numbers.values()))
    running = {job: log(job) for job in numbers.values()}
    # Those that have failed already are unknown to scancel.
    student.run(f"scancel --batch --signal=TERM {' '.join(numbers.values())} || true")
    wait_until(lambda: not any(map(in_queue, numbers.values())))
    return {
        name: Job(json.loads(seen(job) or "{}"), running[job], log(job))
        for name, job in numbers.items()
    }


every_job = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)


@every_job
def test_slurm_runs_a_copy_of_it_and_it_finds_its_folder(script, jobs):
    # The copy is in a folder of Slurm's, so what $0 says is of no use.
    assert jobs[script.name].found.get("folder", "").endswith(f"{LAB_FOLDER}/{script.parent.name}")


@every_job
def test_it_needs_nothing_of_the_shell_in_which_it_was_submitted(script, jobs, student):
    found = jobs[script.name].found
    assert found, jobs[script.name].log
    if script.parent.name in ("01_hello", "02_cancel"):
        assert found["python"] == "/usr/bin/python3"
    else:
        assert found["python"] == f"{student.workspace}/venv/bin/python"
        assert found["HF_HOME"] == f"{student.workspace}/.cache/huggingface"


@every_job
def test_its_program_knows_how_many_cpus_it_has(script, jobs):
    # In Slurm 22.05 to 23.02, a program that is started with srun would not.
    asked = sbatch_options(script.read_text())["cpus-per-task"]
    assert jobs[script.name].found.get("SLURM_CPUS_PER_TASK") == asked


@every_job
def test_a_line_is_in_its_log_at_once(script, jobs):
    assert "a line for the log\n" in jobs[script.name].log_while_running


@every_job
def test_its_program_is_told_when_slurm_tells_the_script_to_stop(script, jobs):
    assert "told to stop\n" in jobs[script.name].log


def test_the_table_of_a_sweep_is_made_although_its_jobs_have_failed(student):
    student.write("04_tinygpt/train.py", "import sys\nsys.exit(1)")
    student.write("05_sweep/collect.py", "print('the table')")
    submit = f"mkdir -p logs; WS_DIR={student.workspace} ./submit_sweep.sh"
    said = student.run(f"cd 05_sweep; {submit}")
    collector = re.search(r"collect job +: (\d+)", said)[1]
    wait_until(lambda: collector not in student.queue() or "Never" in student.queue())
    assert "Never" not in student.queue()
    assert student.run(f"cat 05_sweep/logs/collect-{collector}.out") == "the table\n"
