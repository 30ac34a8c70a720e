"""The practice cluster, as its users meet it: a real Slurm is started, used and stopped."""

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from course.cluster import Cluster, ClusterError, cgroups
from course.values import COURSE_ENV, LAB, load_values

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: the cluster needs root")

ACCOUNT = load_values(LAB / COURSE_ENV)["ACCOUNT"]
ASK = f"--account={ACCOUNT} --nodes=1 --ntasks=1 --time=00:05:00"
USERS = ["marie", "martin"]


def wait_for(condition: Callable[[], object], what: str, seconds: float = 180) -> object:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} seconds"
        time.sleep(0.1)
    return found


def submit(cluster: Cluster, script: str, options: str = "", user: str = "marie") -> int:
    """Submit the lines of a job script from the home folder. Return the job's number."""
    text = f"#!/bin/bash\n{script}\n"
    command = f"sbatch --output=%j.out {ASK} {options} <<'END'\n{text}END"
    done = cluster.run(user, command)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def squeue(cluster: Cluster, job: int, column: str) -> str:
    done = cluster.run("marie", f"squeue --noheader --jobs={job} --format={column}")
    return done.stdout.strip()


def accounted(cluster: Cluster, job: int) -> str:
    """The state and exit code of an ended job, or nothing while it has not ended."""
    columns = "--format=State,ExitCode,End"
    command = f"sacct --jobs={job} --allocations --noheader --parsable2 {columns}"
    state, _, rest = cluster.run("marie", command).stdout.strip().partition("|")
    exit_code, _, end = rest.partition("|")
    return f"{state.split()[0]} {exit_code}" if end not in ("", "Unknown") else ""


def end_of(cluster: Cluster, job: int) -> str:
    return str(wait_for(lambda: accounted(cluster, job), f"the end of job {job}"))


def log_of(cluster: Cluster, job: int, user: str = "marie") -> str:
    return cluster.run(user, f"cat {job}.out").stdout


# ---- jobs


@pytest.mark.parametrize("user", USERS)
def test_a_submitted_job_runs_on_a_compute_node_and_is_accounted(
    cluster: Cluster, user: str
) -> None:
    job = submit(cluster, "hostname; id --user --name", user=user)
    assert end_of(cluster, job) == "COMPLETED 0:0"
    node, name = log_of(cluster, job, user).split()
    assert node in ("i8001", "i8002")
    assert name == user


def test_the_first_job_has_the_number_of_the_story(cluster: Cluster) -> None:
    end_of(cluster, submit(cluster, "true"))
    sacct = "sacct --jobs=1234566,1234567 --allocations --noheader --format=JobID"
    assert cluster.run("marie", sacct).stdout.split() == ["1234567"]


def test_a_failing_job_is_accounted_with_its_exit_code(cluster: Cluster) -> None:
    assert end_of(cluster, submit(cluster, "exit 3")) == "FAILED 3:0"


def test_a_job_that_does_not_fit_waits_in_the_queue(cluster: Cluster) -> None:
    big = [submit(cluster, "exec sleep 600", "--cpus-per-task=48") for _ in range(3)]
    wait_for(lambda: squeue(cluster, big[2], "%t-%r") == "PD-Resources", "the reason")
    assert squeue(cluster, big[0], "%t") == "R"
    cluster.run("marie", f"scancel {' '.join(map(str, big))}")
    for job in big:
        assert end_of(cluster, job).startswith("CANCELLED")


def test_whypending_names_the_reason(cluster: Cluster) -> None:
    job = submit(cluster, "true", "--hold")
    said = cluster.run("marie", f"whypending {job}").stdout
    cluster.run("marie", f"scancel {job}")
    assert "JobHeldUser" in said


def test_scancel_tells_the_program_that_the_job_script_became(cluster: Cluster) -> None:
    program = "trap 'echo told; exit' TERM; echo ready; while :; do sleep 0.1; done"
    job = submit(cluster, f'exec bash -c "{program}"')
    wait_for(lambda: "ready" in log_of(cluster, job), "the program's start")
    cluster.run("marie", f"scancel {job}")
    wait_for(lambda: "told" in log_of(cluster, job), "the signal")
    assert end_of(cluster, job).startswith("CANCELLED")


def test_nothing_of_a_job_outlives_it(cluster: Cluster) -> None:
    job = submit(cluster, "setsid sleep 54321 & disown; sleep 0.5")
    end_of(cluster, job)
    wait_for(lambda: not cluster.run("marie", "pgrep -f '^sleep 54321'").stdout, "its end")


def test_a_job_over_its_memory_is_killed(cluster: Cluster) -> None:
    program = """python3 -c 'print(len(b"x" * 10**9))'"""
    job = submit(cluster, f"exec {program}", "--mem=100M")
    assert end_of(cluster, job) == "OUT_OF_MEMORY 0:125"


@pytest.mark.parametrize("user", USERS)
def test_srun_opens_a_shell_on_a_compute_node(cluster: Cluster, user: str) -> None:
    command = cluster.shell_command(user)
    shell = pexpect.spawn(command[0], command[1:], encoding="utf-8", timeout=30)
    shell.expect_exact(f"{user}@login.alpha$ ")
    shell.sendline(f"srun {ASK} --pty bash -l")
    shell.expect_exact(f"{user}@alpha$ ")
    shell.sendline("hostname; stty size; exit")
    shell.expect(r"i800[12]\r\n24 80\r\n")
    shell.expect_exact(f"{user}@login.alpha$ ")
    shell.sendline("exit")
    shell.expect(pexpect.EOF)


# ---- what Slurm refuses


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--account=p_other", "Invalid account or account/partition combination specified"),
        ("--partition=other", "invalid partition specified: other"),
        ("--gres=gpu:9", "Requested node configuration is not available"),
        (
            "--gres=gpu:2 --cpus-per-task=13",
            "Non-exclusive jobs on Alpha Centauri are allowed to request at most 6 CPU cores "
            "per requested GPU",
        ),
    ],
)
def test_sbatch_refuses(cluster: Cluster, options: str, words: str) -> None:
    done = cluster.run("marie", f"sbatch {ASK} {options} --wrap=true")
    assert done.returncode != 0
    assert words in done.stderr


def test_six_cpus_for_each_gpu_are_accepted(cluster: Cluster) -> None:
    job = submit(cluster, "true", "--gres=gpu:2 --cpus-per-task=12")
    assert end_of(cluster, job) == "COMPLETED 0:0"


# ---- GPUs

TRY_DEVICES = "for gpu in 0 1 2 3 4 5 6 7; do cat /dev/nvidia$gpu; done 2>&1"


def test_a_job_sees_only_the_gpus_that_it_asked_for(cluster: Cluster) -> None:
    job = submit(cluster, f"echo gpus $CUDA_VISIBLE_DEVICES\n{TRY_DEVICES}", "--gres=gpu:2")
    end_of(cluster, job)
    gpus, *devices = log_of(cluster, job).splitlines()
    assert gpus == "gpus 0,1"
    assert ["Operation not permitted" in line for line in devices] == [False] * 2 + [True] * 6


def test_a_job_without_gres_sees_no_gpu(cluster: Cluster) -> None:
    job = submit(cluster, f"echo gpus ${{CUDA_VISIBLE_DEVICES-none}}\n{TRY_DEVICES}\ntrue")
    assert end_of(cluster, job) == "COMPLETED 0:0"
    gpus, *devices = log_of(cluster, job).splitlines()
    assert gpus == "gpus none"
    assert all("Operation not permitted" in line for line in devices)


# ---- the users' surroundings


def test_a_home_has_a_copy_of_the_lab_with_the_cpu_build_of_torch(cluster: Cluster) -> None:
    course = cluster.run("marie", "cat ~/behind-llms-lab/hpc_lab/00_setup/course.env").stdout
    assert "TORCH_BUILD=cpu\n" in course
    assert f"ACCOUNT={ACCOUNT}\n" in course


def test_a_home_is_small(cluster: Cluster) -> None:
    done = cluster.run("martin", "head -c 600M /dev/zero >big; rm big")
    assert "No space left on device" in done.stderr


def test_a_home_is_private(cluster: Cluster) -> None:
    assert cluster.run("martin", "ls /home/marie").returncode != 0


def test_pip_has_the_settings_of_who_started_the_cluster(cluster: Cluster) -> None:
    assert "global.retries='7'" in cluster.run("marie", "pip config list").stdout.split()


def test_pip_may_install_into_the_home(cluster: Cluster) -> None:
    done = cluster.run("marie", "pip install --user --no-index --dry-run pip")
    assert done.returncode == 0, done.stderr


def test_modules_can_be_loaded_at_the_login_and_in_a_job_without_its_environment(
    cluster: Cluster,
) -> None:
    name = load_values(LAB / COURSE_ENV)["MODULES"].split()[-1]
    assert name in cluster.run("marie", f"module load {name}; module list").stderr
    job = submit(cluster, f"module load {name}", "--export=NONE")
    assert end_of(cluster, job) == "COMPLETED 0:0"
    assert f"Module {name} loaded." in log_of(cluster, job)


def test_an_unknown_module_is_an_error(cluster: Cluster) -> None:
    done = cluster.run("marie", "module load Cobra/1.0")
    assert done.returncode == 1
    assert 'unknown: "Cobra/1.0"' in done.stderr


@pytest.mark.parametrize(
    "command",
    ["ws_allocate", "ws_find", "ws_list", "ws_extend", "ws_release", "whypending", "module"],
)
def test_a_stand_in_says_what_it_is(cluster: Cluster, command: str) -> None:
    done = cluster.run("marie", f"{command} --help")
    assert done.returncode == 0
    assert "stand-in" in " ".join((done.stdout + done.stderr).split())


# ---- workspaces


def ws(cluster: Cluster, command: str, user: str = "marie") -> tuple[int, str, str]:
    done = cluster.run(user, command)
    return done.returncode, done.stdout, done.stderr


def test_ws_allocate_prints_the_path_alone_on_stdout(cluster: Cluster) -> None:
    path = "/data/horse/ws/marie-by-options"
    said = ws(cluster, "ws_allocate -F horse -r 7 -m marie@example.org -n by-options -d 90")
    assert said[:2] == (0, f"{path}\n")
    assert "remaining time in days: 90" in said[2]
    assert ws(cluster, "ws_find by-options") == (0, f"{path}\n", "")
    assert cluster.run("marie", f"touch {path}/file").returncode == 0
    assert cluster.run("martin", f"ls {path}").returncode != 0


def test_ws_allocate_reuses_a_workspace_that_is_there(cluster: Cluster) -> None:
    first = ws(cluster, "ws_allocate -F horse again 30")
    second = ws(cluster, "ws_allocate -F horse again 60")
    assert first[:2] == second[:2] == (0, "/data/horse/ws/marie-again\n")
    assert "reusing" in second[2]
    assert "remaining time in days: 30" in second[2]


def test_ws_list_shows_the_users_own_workspaces(cluster: Cluster) -> None:
    ws(cluster, "ws_allocate -F horse listed 10", "martin")
    listed = ws(cluster, "ws_list -F horse", "martin")[1]
    assert re.fullmatch(
        "id: listed\n"
        "     workspace directory  : /data/horse/ws/martin-listed\n"
        "     remaining time       : 9 days 23 hours\n"
        "     creation time        : .+\n"
        "     expiration date      : .+\n"
        "     filesystem name      : horse\n"
        "     available extensions : 10\n",
        listed,
    )


def test_ws_extend_sets_the_duration_and_uses_up_an_extension(cluster: Cluster) -> None:
    ws(cluster, "ws_allocate -F horse longer 10")
    said = ws(cluster, "ws_extend -F horse longer 40")
    assert said[0] == 0
    assert "remaining extensions  : 9" in said[2]
    assert "remaining time in days: 40" in said[2]


def test_no_workspace_lasts_more_than_100_days(cluster: Cluster) -> None:
    assert "remaining time in days: 100" in ws(cluster, "ws_allocate -F horse long 365")[2]


def test_ws_release_gives_the_workspace_back(cluster: Cluster) -> None:
    ws(cluster, "ws_allocate -F horse gone 10")
    assert ws(cluster, "ws_release -F horse gone")[0] == 0
    assert ws(cluster, "ws_find gone")[0] != 0
    assert cluster.run("marie", "ls /data/horse/ws/marie-gone").returncode != 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ws_allocate -F scratch x 10", "no such filesystem: scratch"),
        ("ws_allocate -F horse 'a/b' 10", "only letters"),
        ("ws_find nowhere", "no such workspace: nowhere"),
        ("ws_extend nowhere 10", "no such workspace: nowhere"),
        ("ws_release nowhere", "no such workspace: nowhere"),
        ("whypending 99", "no job 99"),
    ],
)
def test_a_wrong_request_is_refused_in_words(cluster: Cluster, command: str, words: str) -> None:
    status, said, errors = ws(cluster, command)
    assert (status, said) == (1, "")
    assert words in errors


# ---- the command


def call(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [cluster.checkout / "scripts/cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_run_gives_output_and_exit_code_of_the_command(cluster: Cluster) -> None:
    done = call(cluster, "run", "martin", "pwd; exit 7")
    assert (done.stdout, done.returncode) == ("/home/martin\n", 7)


def test_status_shows_the_nodes(cluster: Cluster) -> None:
    done = call(cluster, "status")
    assert done.returncode == 0
    assert re.search(r"^alpha\* .* 2 +\w+ +i\[8001-8002\]$", done.stdout, re.MULTILINE)


def test_an_unknown_user_is_refused(cluster: Cluster) -> None:
    done = call(cluster, "shell", "mallory")
    assert done.returncode == 1
    assert done.stderr == "The practice cluster has no user mallory, only marie and martin.\n"


def test_a_cluster_that_is_not_running_says_how_to_start_it(idle_cluster: Cluster) -> None:
    words = "The practice cluster is not running. Start it: scripts/cluster start\n"
    assert call(idle_cluster, "run", "marie", "true").stderr == words
    status = call(idle_cluster, "status")
    assert (status.stdout, status.returncode) == (words, 3)


def test_stop_without_start_is_no_error(idle_cluster: Cluster) -> None:
    assert call(idle_cluster, "stop").returncode == 0


def test_start_leaves_a_running_cluster_alone(cluster: Cluster) -> None:
    before = processes(cluster)
    assert call(cluster, "start").returncode == 0
    assert daemons(cluster) <= before


def test_what_is_missing_is_said_with_the_command_that_installs_it(
    idle_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        with pytest.raises(ClusterError, match="apt-get install apt hostname mount util-linux"):
            idle_cluster.start()


def test_a_machine_without_a_network_is_told_so(idle_cluster: Cluster) -> None:
    command = ["unshare", "--net", idle_cluster.checkout / "scripts/cluster", "start"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("This machine has no network address but the loopback one")


# ---- what the machine sees of it


def processes(cluster: Cluster) -> set[int]:
    """All processes of the cluster: those in its cgroups and those in its process namespace."""
    found = cgroups.processes(cluster.cgroup)
    spaces = {process_namespace(pid) for pid in found} - {process_namespace(os.getpid())}
    everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return found | {pid for pid in everybody if process_namespace(pid) in spaces - {""}}


def daemons(cluster: Cluster) -> set[int]:
    return cgroups.processes(cluster.cgroup)


def process_namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def machine(cluster: Cluster) -> dict[str, object]:
    """What must be the same before and after: mounts, cgroups, and all files of /etc."""
    names = [cluster.cgroup, f"*/{cluster.cgroup}", "*slurm*", "*/*slurm*"]
    etc = hashlib.sha256()
    for file in sorted(Path("/etc").rglob("*")):
        status = file.lstat()
        etc.update(f"{file} {status.st_mode} {status.st_size} {status.st_mtime_ns}\n".encode())
    # Tests that run beside this one mount, too.
    mounts = [
        line
        for line in Path("/proc/self/mounts").read_text().splitlines()
        if "/pytest-of-" not in line or str(cluster.checkout) in line
    ]
    return {
        "mounts": mounts,
        "cgroups": [sorted(cgroups.TOP.glob(name)) for name in names],
        "/etc": etc.hexdigest(),
        "/home": sorted(Path("/home").iterdir()),
        "/data": Path("/data").exists(),
    }


def listening(pids: set[int]) -> set[str]:
    """The addresses (hexadecimal) on which these processes listen."""
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            sockets.add(os.readlink(descriptor))
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            is_open = words[3] == "0A" or table.startswith("udp")
            if is_open and f"socket:[{words[9]}]" in sockets:
                found.add(words[1].partition(":")[0])
    return found


def test_all_ports_are_on_the_loopback_address(cluster: Cluster) -> None:
    command = cluster.shell_command("marie")
    shell = pexpect.spawn(command[0], command[1:], encoding="utf-8", timeout=30)
    shell.expect_exact("$ ")
    shell.sendline(f"srun {ASK} --pty bash -l")  # srun listens, too
    shell.expect_exact("marie@alpha$ ")
    addresses = listening(processes(cluster))
    shell.sendeof()
    shell.expect_exact("marie@login.alpha$ ")
    shell.close()
    assert addresses == {"0100007F"}  # 127.0.0.1


def start_use_and_stop(cluster: Cluster) -> None:
    before = machine(cluster)
    cluster.start()
    submit(cluster, "exec sleep 600", "--gres=gpu:1")
    command = cluster.shell_command("martin")
    shell = pexpect.spawn(command[0], command[1:], timeout=30)
    shell.expect_exact("$ ")
    seen = processes(cluster)
    assert len(seen) > 8
    cluster.stop()
    shell.expect(pexpect.EOF)
    shell.close()
    assert [pid for pid in seen if is_alive(pid)] == []
    assert machine(cluster) == before


def test_stop_leaves_nothing_behind_three_times_in_a_row(idle_cluster: Cluster) -> None:
    for _ in range(3):
        start_use_and_stop(idle_cluster)


@pytest.mark.soak
def test_stop_leaves_nothing_behind_twenty_times(idle_cluster: Cluster) -> None:
    for _ in range(20):
        start_use_and_stop(idle_cluster)


def kill_and_start_again(cluster: Cluster, victims: set[int]) -> None:
    before = daemons(cluster)
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):  # Gone with its parent.
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, victims)), "the end of the killed processes")
    assert call(cluster, "status").returncode == 3
    cluster.start()
    assert [pid for pid in before if is_alive(pid)] == []
    assert end_of(cluster, submit(cluster, "true")) == "COMPLETED 0:0"


def all_daemons(cluster: Cluster) -> set[int]:
    return {pid for pid in daemons(cluster) if "course.cluster.boot" not in command_of(pid)}


def first_process(cluster: Cluster) -> int:
    """The one process whose end ends all others."""
    return next(pid for pid in daemons(cluster) if "course.cluster.boot" in command_of(pid)[:5])


def command_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_start_cleans_up_after_every_daemon_was_killed(idle_cluster: Cluster) -> None:
    before = machine(idle_cluster)
    idle_cluster.start()
    kill_and_start_again(idle_cluster, all_daemons(idle_cluster))
    idle_cluster.stop()
    assert machine(idle_cluster) == before


def test_start_cleans_up_after_the_first_process_was_killed(idle_cluster: Cluster) -> None:
    before = machine(idle_cluster)
    idle_cluster.start()
    kill_and_start_again(idle_cluster, {first_process(idle_cluster)})
    idle_cluster.stop()
    assert machine(idle_cluster) == before


@pytest.mark.soak
def test_start_cleans_up_twenty_times_after_every_daemon_was_killed(idle_cluster: Cluster) -> None:
    idle_cluster.start()
    for _ in range(20):
        kill_and_start_again(idle_cluster, all_daemons(idle_cluster))


def test_two_checkouts_have_clusters_at_the_same_time(
    cluster: Cluster, idle_cluster: Cluster
) -> None:
    idle_cluster.start()
    for one in (cluster, idle_cluster):
        assert end_of(one, submit(one, "true")) == "COMPLETED 0:0"
    idle_cluster.stop()
    assert cluster.dead_daemons() == []


def test_a_start_that_fails_says_where_its_logs_are_and_leaves_nothing(
    idle_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = machine(idle_cluster)
    monkeypatch.setattr("course.cluster.control.USERS", ("marie", "mallory"))
    with pytest.raises(ClusterError, match=r"did not start: .*mallory"):
        idle_cluster.start()
    assert (idle_cluster.run_folder / "log/boot.log").exists()
    assert daemons(idle_cluster) == set()
    assert machine(idle_cluster) == before
