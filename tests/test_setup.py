"""setup_env.sh and activate.sh in the situations that students get into, in real shells.

Every sourcing goes through `Machine.source`, which also sees that the shell lives and that its
options, folder, traps, aliases and functions are as before.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from setup_machine import CUSTOM, LAB, MODULE_FUNCTION, SHELLS, Machine, make_torch, run_mounted

both_shells = pytest.mark.parametrize("shell", SHELLS)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def bare_machine(tmp_path: Path) -> Machine:
    """Without workspace tools."""
    return Machine(tmp_path, workspace_tools=False)


def assert_ready(machine: Machine, done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[0] == f"workspace : {machine.workspace}"
    assert lines[-1] == "environment ready"
    assert machine.ws_dir == str(machine.workspace)
    assert machine.is_complete()


def assert_says(done: subprocess.CompletedProcess, *parts: str) -> None:
    """It failed, and the last line on stderr has all the parts."""
    assert done.returncode != 0, done
    last = done.stderr.strip().splitlines()[-1]
    for part in parts:
        assert part in last, done.stderr
    assert "line " not in last or "course.env, line" in last, "a shell's message, not ours"


# What it does


@both_shells
def test_first_time_installs_and_second_time_only_activates(machine: Machine, shell: str) -> None:
    first = machine.source(shell)
    assert_ready(machine, first)
    assert "Installing" in first.stderr
    made = sorted((path, path.stat().st_mtime) for path in machine.workspace.rglob("*"))
    second = machine.source(shell)
    assert second.stdout == f"workspace : {machine.workspace}\nenvironment ready\n"
    assert second.stderr == ""
    assert sorted((path, path.stat().st_mtime) for path in machine.workspace.rglob("*")) == made


def test_data_is_in_the_workspace(machine: Machine) -> None:
    machine.source()
    assert (machine.workspace / "data" / "shakespeare.txt").read_text() == "First Citizen:\n"


def test_every_cache_is_in_the_workspace(machine: Machine) -> None:
    machine.source()
    script = f"{machine.command()} >/dev/null; env; echo \"PROMPT=$PS1\"; python -m pip cache dir"
    done = machine.run("PS1='> '; " + script)
    for name in (
        "WS_DIR HF_HOME HF_HUB_CACHE HF_XET_CACHE PIP_CACHE_DIR TORCH_HOME XDG_CACHE_HOME "
        "TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR CUDA_CACHE_PATH MPLCONFIGDIR VIRTUAL_ENV"
    ).split():
        assert re.search(rf"^{name}={machine.workspace}(/|$)", done.stdout, re.MULTILINE), name
    assert f"\nHF_HOME={machine.workspace}/.cache/huggingface\n" in done.stdout
    assert f"\n{machine.workspace}/.cache/pip\n" in done.stdout
    assert "\nPROMPT=> \n" in done.stdout


def test_home_holds_nothing_new(machine: Machine) -> None:
    before = machine.files_in_home()
    machine.source()
    machine.run(f"{machine.command('activate.sh')} && python -c 'import small'")
    assert machine.files_in_home() == before


def test_changed_requirements_are_installed(machine: Machine) -> None:
    machine.source()
    machine.require("torch==2.13.0")
    assert_says(machine.run(f"{machine.command('activate.sh')} || exit 1"), "not complete")
    done = machine.source()
    assert (done.returncode, machine.is_complete()) == (0, False)


# Where it is sourced


@both_shells
def test_under_set_eu(machine: Machine, shell: str) -> None:
    for _ in range(2):
        assert_ready(machine, machine.source(shell, before="set -eu"))


@both_shells
def test_from_any_folder(machine: Machine, shell: str) -> None:
    assert_ready(machine, machine.source(shell, cwd="/"))
    done = machine.run("source setup_env.sh && source ./setup_env.sh", shell, cwd=machine.setup)
    assert (done.returncode, done.stdout.count("environment ready")) == (0, 2)
    done = machine.run(
        "cd ../00_setup/.. && source 00_setup/setup_env.sh", shell, cwd=machine.setup
    )
    assert done.returncode == 0


@both_shells
def test_with_spaces_in_paths(tmp_path: Path, shell: str) -> None:
    top = tmp_path / "a b"
    top.mkdir()
    machine = Machine(top, lab="hpc  lab")
    for _ in range(2):
        assert_ready(machine, machine.source(shell))


@both_shells
def test_with_an_empty_environment(machine: Machine, shell: str) -> None:
    machine.env = {}
    # Without a PATH the shell looks in its own default one, which has no workspace tools.
    done = machine.source(shell, before=f"PATH={machine.bin}")
    assert_ready(machine, done)


def test_with_conda_active(machine: Machine) -> None:
    conda = machine.top / "conda" / "bin"
    conda.mkdir(parents=True)
    for name in ("python", "pip"):
        (conda / name).write_text("#!/bin/sh\necho conda\n")
        (conda / name).chmod(0o755)
    machine.env |= {"CONDA_PREFIX": str(conda.parent), "CONDA_DEFAULT_ENV": "base"}
    machine.env["PATH"] = f"{conda}:{machine.bin}"
    assert_ready(machine, machine.source(before="conda() { echo conda; }"))
    done = machine.run(f"{machine.command()} >/dev/null; command -v python; command -v pip")
    assert done.stdout.splitlines() == [
        f"{machine.workspace}/venv/bin/{name}" for name in ("python", "pip")
    ]


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONPATH": "junk"},
        {"PYTHONHOME": "/nowhere"},
        {"PIP_USER": "1"},
        {"PIP_TARGET": "elsewhere", "PIP_PREFIX": "elsewhere"},
        {"PIP_REQUIRE_VIRTUALENV": "1", "PIP_NO_DEPS": "1", "PIP_DRY_RUN": "1"},
        {"PIP_EXTRA_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_LOG": "/nowhere/log"},
        {"HF_HOME": "/nowhere", "HF_HUB_CACHE": "/nowhere", "XDG_CACHE_HOME": "/nowhere"},
    ],
    ids=lambda variables: "+".join(variables),
)
def test_with_variables_of_python_and_pip(machine: Machine, variables: dict[str, str]) -> None:
    junk = machine.home / "junk"
    junk.mkdir()
    for module in ("torch.py", "small.py", "pip.py", "random.py"):
        (junk / module).write_text("raise ImportError('not this one')\n")
    machine.env |= variables
    for _ in range(2):
        assert_ready(machine, machine.source(cwd=machine.home))
    assert not (machine.home / "elsewhere").exists()


def test_with_files_in_the_folder_that_shadow_modules(machine: Machine) -> None:
    for module in ("torch.py", "pip.py", "random.py"):
        (machine.home / module).write_text("raise ImportError('not this one')\n")
    done = machine.source(cwd=machine.home)
    assert done.returncode == 0, done


# Modules


@both_shells
def test_modules_are_loaded_once(machine: Machine, shell: str) -> None:
    machine.set_values(MODULES="release/25.06 Python/3.13.1")
    script = (
        f"{MODULE_FUNCTION}\n{machine.command()}\n{machine.command()}\necho $LOADEDMODULES $PATH"
    )
    done = machine.run(script, shell)
    loaded, path = done.stdout.splitlines()[-1].split()
    assert loaded == "release/25.06:Python/3.13.1"
    assert path.startswith(f"{machine.workspace}/venv/bin:/software/Python/3.13.1/bin:")
    assert machine.source(shell, before=MODULE_FUNCTION).returncode == 0


@both_shells
def test_module_that_is_not_there(machine: Machine, shell: str) -> None:
    machine.set_values(MODULES="Nothing/1")
    assert_says(machine.source(shell, before=MODULE_FUNCTION), "Nothing/1", "module spider Nothing")


# The workspace


def test_workspace_that_exists_already_is_used(machine: Machine) -> None:
    machine.run("ws_allocate -F horse llm-lab 100")
    (machine.workspace / "mine").touch()
    assert_ready(machine, machine.source())
    assert (machine.workspace / "mine").exists()


@both_shells
def test_workspace_that_expires_soon(machine: Machine, shell: str) -> None:
    machine.run("ws_allocate -F horse llm-lab 9")
    machine.source(shell)
    done = machine.source(shell)
    assert_ready(machine, done)
    command = "ws_extend -F horse llm-lab 100"
    assert done.stderr.startswith("Your workspace expires in 8 days,")
    assert done.stderr.strip().endswith(f"type: {command}")
    machine.run(command)
    assert machine.source(shell).stderr == ""


@pytest.mark.parametrize("state", ["expired", "gone"])
@both_shells
def test_workspace_that_is_no_longer_there(machine: Machine, state: str, shell: str) -> None:
    machine.source(shell)
    if state == "expired":
        machine.run("ws_release llm-lab")
    else:
        machine.run(f"rm -r '{machine.workspace}'")
    done = machine.source(shell)
    assert_says(done, state, "type: ws_")
    job = machine.run(f"{machine.command('activate.sh')} || exit 1")
    assert (job.returncode, job.stdout, job.stderr) == (1, "", done.stderr)
    assert machine.run(done.stderr.rpartition("type: ")[2]).returncode == 0
    assert_ready(machine, machine.source(shell))


def test_workspace_on_a_filesystem_that_is_not_there(machine: Machine) -> None:
    machine.set_values(FILESYSTEM="pony")
    assert_says(machine.source(), "not allowed to use", "type: ws_list -l")


@both_shells
def test_no_workspace_tools_takes_the_folder_that_it_names(
    bare_machine: Machine, shell: str
) -> None:
    bare_machine.workspace = bare_machine.lab / "workspace"
    for _ in range(2):
        assert_ready(bare_machine, bare_machine.source(shell))


@both_shells
def test_no_workspace_tools_takes_the_folder_that_the_student_names(
    bare_machine: Machine, shell: str
) -> None:
    terminal = bare_machine.terminal(shell)
    terminal.child.sendline(bare_machine.command())
    terminal.child.expect_exact(f"Which one? [{bare_machine.lab}/workspace] ")
    assert "environment ready" in terminal.type("~/my big disk")
    terminal.close()
    bare_machine.workspace = bare_machine.home / "my big disk"
    assert_ready(bare_machine, bare_machine.source(shell))
    bare_machine.run(f"rm -r '{bare_machine.workspace}'")
    done = bare_machine.source(shell)
    assert_says(done, "gone", "type: mkdir -p")
    bare_machine.run(done.stderr.rpartition("type: ")[2])
    assert_ready(bare_machine, bare_machine.source(shell))


# The login node


@both_shells
def test_login_node_says_that_installing_belongs_into_a_job(machine: Machine, shell: str) -> None:
    machine.make_login_node()
    done = machine.source(shell)
    assert_says(done, "--here")
    assert (
        "srun --account=p_lv_llmsecrets --nodes=1 --ntasks=1 --cpus-per-task=4 --mem-per-cpu=2G "
        "--gres=gpu:1 --time=00:45:00 --pty bash -l\n"
    ) in done.stderr
    assert not machine.workspace.exists()
    assert_ready(machine, machine.source(shell, options="--here"))
    # Scenes 0, 5 and 6 source it there.
    assert_ready(machine, machine.source(shell))


@both_shells
def test_login_node_asks_at_a_terminal(machine: Machine, shell: str) -> None:
    machine.make_login_node()
    terminal = machine.terminal(shell)
    before = terminal.state()
    for answer, ready in [("", False), ("n", False), ("y", True)]:
        terminal.child.sendline(machine.command())
        terminal.child.expect_exact("Install here all the same? [y/N] ")
        assert ("environment ready" in terminal.type(answer)) == ready
    assert terminal.state() == before
    terminal.close()


# Run instead of sourced


@both_shells
def test_run_instead_of_sourced_says_what_to_type(machine: Machine, shell: str) -> None:
    done = machine.run(
        f"{shell} 00_setup/setup_env.sh; echo [${{WS_DIR:-}}]", shell, cwd=machine.lab
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == ["source 00_setup/setup_env.sh", "[]"]
    assert "environment ready" in done.stdout
    assert machine.is_complete()


def test_run_on_a_login_node_with_an_environment_finishes(machine: Machine) -> None:
    machine.source()
    machine.make_login_node()
    done = machine.run("bash 00_setup/setup_env.sh", cwd=machine.lab)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "source 00_setup/setup_env.sh"


# Job scripts


def test_job_activates_with_an_empty_environment_and_in_silence(machine: Machine) -> None:
    machine.source()
    job = "source ../00_setup/activate.sh || exit 1\npython -c 'import small; print(small.answer)'"
    done = machine.run(
        f"PATH={machine.bin}; set -eu\n{job}", env={}, cwd=machine.lab / "04_tinygpt"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_job_without_environment_says_so_and_fails(machine: Machine) -> None:
    done = machine.run(f"{machine.command('activate.sh')} || exit 1; echo never")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert_says(done, "environment", f"type: source '{machine.setup}/setup_env.sh'")
    assert not machine.workspace.exists()


# What goes wrong


@both_shells
def test_no_network(machine: Machine, shell: str) -> None:
    machine.require("torch==2.13.0", "small==1.0", options="--index-url=http://127.0.0.1:9/simple")
    machine.env["PIP_RETRIES"] = "0"
    assert_says(machine.source(shell), "no network", "login node")
    machine.require("torch==2.13.0", "small==1.0")
    assert_ready(machine, machine.source(shell))


def test_pip_that_fails_in_the_middle(machine: Machine) -> None:
    wheel = next(machine.wheels.glob("small*"))
    good = wheel.read_bytes()
    wheel.write_bytes(good[: len(good) // 2])
    assert_says(machine.source(), "Installing failed", "small", "install.log")
    assert not machine.is_complete()
    wheel.write_bytes(good)
    assert_ready(machine, machine.source())


def test_wrong_build_of_torch(machine: Machine) -> None:
    make_torch(machine.wheels, "cpu")
    assert_says(machine.source(), "the cuda build", "found the cpu build", "TORCH_INDEX")
    machine.set_values(TORCH_BUILD="cpu")
    assert_ready(machine, machine.source())


def test_build_of_torch_comes_from_the_index_that_is_named(machine: Machine) -> None:
    index = machine.top / "index" / "torch"
    wheel = make_torch(index, "cpu", "2.13.0+cpu")
    (index / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    machine.set_values(TORCH_BUILD="cpu", TORCH_INDEX=index.parent.as_uri())
    assert_ready(machine, machine.source())


@both_shells
def test_python_that_no_longer_starts(machine: Machine, shell: str) -> None:
    machine.source(shell)
    python = machine.workspace / "venv" / "bin" / "python3"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    done = machine.source(shell)
    assert_says(done, "now there is none that starts", "type: rm -rf")
    done = machine.run(done.stderr.rpartition("type: ")[2], shell)
    assert "environment ready" in done.stdout
    assert_ready(machine, machine.source(shell))


def test_python_of_another_version(machine: Machine) -> None:
    machine.source()
    python = machine.workspace / "venv" / "bin" / "python3"
    python.unlink()
    python.write_text("#!/bin/sh\necho 3.9\n")
    python.chmod(0o755)
    assert_says(machine.source(), "now there is 3.9", "type: rm -rf")


@pytest.mark.parametrize("answer", ["echo 3.9", "exit 127"])
def test_python_too_old_or_missing(machine: Machine, answer: str) -> None:
    machine.run("ws_allocate -F horse llm-lab 100")
    (machine.bin / "python3").unlink()
    (machine.bin / "python3").write_text(f"#!/bin/sh\n{answer}\n")
    (machine.bin / "python3").chmod(0o755)
    assert_says(machine.source(), "3.10 or newer", "type: module spider Python")


@both_shells
def test_windows_line_ends_in_the_sourced_file(machine: Machine, shell: str) -> None:
    for path in machine.setup.glob("*.*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    done = machine.source(shell)
    assert done.stderr.count("\n") == 1
    assert_says(done, "Windows line ends", "type: sed")
    done = machine.run(done.stderr.rpartition("type: ")[2], shell, cwd=machine.setup)
    assert done.returncode == 0, done
    assert_ready(machine, machine.source(shell))


@pytest.mark.parametrize("name", ["course.env", "activate.sh", "requirements.txt"])
def test_windows_line_ends_in_another_file(machine: Machine, name: str) -> None:
    path = machine.setup / name
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    done = machine.source()
    assert_says(done, name, "Windows line ends", "Type: sed")
    assert machine.run(done.stderr.rpartition("Type: ")[2]).returncode == 0
    assert_ready(machine, machine.source())


def test_wrong_line_in_course_env(machine: Machine) -> None:
    path = machine.setup / "course.env"
    text = path.read_text()
    path.write_text(text.replace("CLUSTER=alpha", "CLUSTER = alpha"))
    assert_says(machine.source(), "course.env, line 14", "KEY=value")
    path.write_text(text.replace("WORKSPACE=llm-lab", ""))
    assert_says(machine.source(), "no line WORKSPACE=")


@both_shells
def test_failure_under_set_eu_does_not_close_the_terminal(machine: Machine, shell: str) -> None:
    machine.set_values(FILESYSTEM="pony")
    terminal = machine.terminal(shell)
    terminal.type(CUSTOM[shell])
    terminal.type("set -eu")
    before = terminal.state()
    assert "ws_list -l" in terminal.type(machine.command())
    assert terminal.state() == before
    terminal.close()


# Homes and disks

MOUNT_HOME = """
cp -r "{home}" "{top}/copy"
mount_at -t tmpfs -o size=1m tmpfs "{home}"
cp -r "{top}/copy/." "{home}"
"""


@pytest.mark.parametrize(
    "then",
    [
        'head -c 2000000 /dev/zero >"$HOME/full" 2>/dev/null',
        'mount_at -o remount,ro "$HOME"; ! touch "$HOME/x" 2>/dev/null || echo writable',
    ],
    ids=["full, 1 MB", "read-only"],
)
def test_home_that_cannot_be_written(machine: Machine, then: str) -> None:
    script = MOUNT_HOME.format(home=machine.home, top=machine.top) + then
    source = machine.command()
    done = run_mounted(machine, f"{script}\n{source} && {source} && python -c 'import small'")
    if done is None:
        pytest.skip("not run: this machine allows no mounts")
    assert done.returncode == 0, done
    assert done.stdout.count("environment ready") == 2
    assert "writable" not in done.stdout


def test_disk_that_is_full_and_then_is_not(machine: Machine) -> None:
    machine.run("ws_allocate -F horse llm-lab 100")
    source = machine.command()
    done = run_mounted(
        machine,
        f"""mount_at -t tmpfs -o size=4m tmpfs "{machine.workspace}"
{source}; echo "result $?"
mount_at -o remount,size=200m "{machine.workspace}"
{source} && python -c 'import small'""",
    )
    if done is None:
        pytest.skip("not run: this machine allows no mounts")
    assert done.returncode == 0, done
    assert "result 1" in done.stdout
    assert "There is no space left" in done.stderr and "type: du " in done.stderr


# Interrupted, killed, and two at once


def start(machine: Machine, shell: str = "bash") -> subprocess.Popen:
    """Sources setup_env.sh in a process group of its own."""
    return subprocess.Popen(
        [machine.bin / shell, "-c", machine.command()],
        env=machine.env,
        cwd=machine.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill_at(machine: Machine, seconds: float) -> None:
    """Kills the first sourcing after some seconds, as Slurm does; the next one must end well."""
    process = start(machine)
    time.sleep(seconds)  # what is tested is this moment
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert_ready(machine, machine.source())


@pytest.mark.parametrize("part", range(5))
def test_killed_at_a_random_moment(machine: Machine, part: int) -> None:
    # An installation takes 4 to 8 seconds here: one moment in each fifth of that.
    moment = random.uniform(part, part + 1) * 1.2
    print(f"killed after {moment:.3f} s")
    kill_at(machine, moment)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(100))
def test_killed_at_one_of_many_random_moments(machine: Machine, turn: int) -> None:
    moment = random.uniform(0, 8)
    print(f"killed after {moment:.3f} s")
    kill_at(machine, moment)


def wait_for(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def install_pid(machine: Machine) -> int | None:
    """The process id of install.sh of this machine, once pip runs under it."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if str(machine.workspace) in words[0] and "pip" in words:
            return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return None


def test_installer_killed_while_its_pip_goes_on(machine: Machine) -> None:
    process = start(machine)
    wait_for(lambda: install_pid(machine))
    os.kill(install_pid(machine), signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode != 0
    assert errors.splitlines()[-1].startswith("The setup was killed. Type the same again")
    assert_ready(machine, machine.source())


@both_shells
def test_ctrl_c_while_installing(machine: Machine, shell: str) -> None:
    terminal = machine.terminal(shell)
    terminal.type(CUSTOM[shell])
    before = terminal.state()
    terminal.child.sendline(machine.command())
    wait_for(lambda: install_pid(machine))
    terminal.child.sendintr()
    assert "Interrupted. Type the same again" in terminal.wait()
    assert terminal.state() == before
    assert "environment ready" in terminal.type(machine.command())
    assert terminal.state() == before
    terminal.close()


@pytest.mark.parametrize("with_flock", [True, False], ids=["flock", "no flock"])
def test_two_at_once(machine: Machine, with_flock: bool) -> None:
    if not with_flock:
        machine.remove_tool("flock")
    machine.run("ws_allocate -F horse llm-lab 100")
    processes = [start(machine), start(machine)]
    results = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    # One installed, and the other one waited.
    assert sorted(output.count("Successfully installed") for output, _ in results) == [0, 1]
    assert machine.is_complete()


def test_lock_folder_of_a_killed_shell_is_taken_over(machine: Machine) -> None:
    machine.remove_tool("flock")
    machine.run("ws_allocate -F horse llm-lab 100")
    lock = machine.workspace / ".install.lock.d"
    lock.mkdir()
    two_minutes_ago = time.time() - 120
    os.utime(lock, (two_minutes_ago, two_minutes_ago))
    assert_ready(machine, machine.source())
    assert not lock.exists()


# The files


def test_shell_files_of_the_lab_are_clean() -> None:
    files = sorted([*LAB.rglob("*.sh"), *LAB.rglob("*.sbatch")])
    done = subprocess.run(
        [Path(sys.executable).parent / "shellcheck", "--external-sources", *files],
        capture_output=True,
        text=True,
        cwd=LAB / "00_setup",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_are_short_enough_to_read() -> None:
    for path in (LAB / "00_setup").glob("*.sh"):
        assert len(path.read_text().splitlines()) < 200, path.name


def test_packages_are_those_that_the_tests_use() -> None:
    requirements = (LAB / "00_setup" / "requirements.txt").read_text()
    project = (LAB.parents[1] / "pyproject.toml").read_text()
    block = re.search(r"^lab = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    packages = re.findall(r'"(\S+==\S+)"', block[1])
    assert packages
    for package in packages:
        assert f"\n{package}\n" in requirements
