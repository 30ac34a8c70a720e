"""setup_env.sh and activate.sh in the situations that students get into, in real shells.

Every sourcing goes through `Machine.source`, which also sees that the shell lives and that its
options, folder, traps, aliases and functions are as before.
"""

import functools
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from setup_machine import CUSTOM, LAB, MODULE_FUNCTION, SHELLS, Machine, make_torch, run_mounted

both_shells = pytest.mark.parametrize("shell", SHELLS)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine that was set up: its packages and its workspace are lent to the others."""
    machine = Machine(tmp_path_factory.mktemp("made"))
    start = time.monotonic()
    assert_ready(machine, machine.source())
    machine.seconds = time.monotonic() - start
    return machine


@pytest.fixture
def fresh(tmp_path: Path, made: Machine) -> Machine:
    """Nothing is set up yet."""
    return Machine(tmp_path, made.wheels)


@pytest.fixture
def machine(fresh: Machine, made: Machine) -> Machine:
    """The environment is there already."""
    fresh.add_environment(made.workspace)
    return fresh


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
    assert not re.search(r"line \d+:.*:|command not found", done.stderr), "a shell's own message"


# What it does


@both_shells
def test_first_time_installs_and_second_time_only_activates(fresh: Machine, shell: str) -> None:
    home = fresh.files_in_home()
    first = fresh.source(shell)
    assert_ready(fresh, first)
    assert "Installing" in first.stderr
    made = sorted((path, path.stat().st_mtime) for path in fresh.workspace.rglob("*"))
    second = fresh.source(shell)
    assert second.stdout == f"workspace : {fresh.workspace}\nenvironment ready\n"
    assert second.stderr == ""
    assert sorted((path, path.stat().st_mtime) for path in fresh.workspace.rglob("*")) == made
    assert fresh.files_in_home() == home, "something new outside the lab's own folder"


def test_data_is_in_the_workspace(machine: Machine) -> None:
    assert (machine.workspace / "data" / "shakespeare.txt").read_text() == "First Citizen:\n"


def test_every_cache_is_in_the_workspace(machine: Machine) -> None:
    show = 'env; echo "PROMPT=$PS1"; python -m pip cache dir'
    done = machine.run(f"PS1='> '; {machine.command()} >/dev/null; {show}")
    names = (
        "WS_DIR HF_HOME HF_HUB_CACHE HF_XET_CACHE PIP_CACHE_DIR TORCH_HOME XDG_CACHE_HOME "
        "TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR CUDA_CACHE_PATH MPLCONFIGDIR VIRTUAL_ENV"
    )
    for name in names.split(" "):
        assert re.search(rf"^{name}={machine.workspace}(/|$)", done.stdout, re.MULTILINE), name
    assert f"\nHF_HOME={machine.workspace}/.cache/huggingface\n" in done.stdout
    assert f"\n{machine.workspace}/.cache/pip\n" in done.stdout
    assert "\nPROMPT=> \n" in done.stdout


class WheelsHandler(SimpleHTTPRequestHandler):
    """Serves packages as PyPI does: pip may keep them."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_what_pip_downloads_is_kept_in_the_workspace(fresh: Machine) -> None:
    home = fresh.files_in_home()
    handler = functools.partial(WheelsHandler, directory=fresh.wheels)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = f"--no-index\n--find-links=http://127.0.0.1:{server.server_port}/"
        fresh.require("torch==2.13.0", "small==1.0", options=index)
        fresh.env["PIP_TRUSTED_HOST"] = "127.0.0.1"
        assert_ready(fresh, fresh.source())
        server.shutdown()
    assert any(path.is_file() for path in (fresh.workspace / ".cache/pip").rglob("*"))
    assert fresh.files_in_home() == home


def test_changed_requirements_are_installed(machine: Machine) -> None:
    machine.require("torch==2.13.0")
    assert_says(machine.run(f"{machine.command('activate.sh')} || exit 1"), "not complete")
    assert machine.source().returncode == 0
    # Without the package that is no longer asked for.
    assert not machine.is_complete()


# Where it is sourced


def test_under_set_eu(fresh: Machine) -> None:
    for shell in SHELLS:
        assert_ready(fresh, fresh.source(shell, before="set -eu"))


@both_shells
def test_from_any_folder(machine: Machine, shell: str) -> None:
    assert_ready(machine, machine.source(shell, cwd="/"))
    for folder, command in [
        (machine.setup, "source setup_env.sh"),
        (machine.setup, "source ./setup_env.sh"),
        (machine.lab, "source 00_setup/setup_env.sh"),
        (machine.lab / "04_tinygpt", "source ../00_setup/setup_env.sh"),
    ]:
        done = machine.run(f"PATH=$PATH:.; {command}; echo $WS_DIR", shell, cwd=folder)
        assert done.stdout.splitlines()[-1] == str(machine.workspace), (command, done)


def test_with_spaces_in_paths(tmp_path: Path) -> None:
    top = tmp_path / "a b"
    top.mkdir()
    machine = Machine(top, lab="hpc  lab")
    for shell in SHELLS:
        assert_ready(machine, machine.source(shell))


def test_with_an_empty_environment(fresh: Machine) -> None:
    fresh.env = {}
    # Not the 2.13.0+cpu that this machine's pip may know of.
    fresh.require("torch===2.13.0", "small==1.0")
    for shell in SHELLS:
        # A shell without a PATH has a default one, in which there are no workspace tools.
        assert_ready(fresh, fresh.source(shell, before=f"export PATH={fresh.bin}"))


def test_with_conda_active(fresh: Machine) -> None:
    conda = fresh.top / "conda" / "bin"
    conda.mkdir(parents=True)
    for name in ("python", "pip"):
        (conda / name).write_text("#!/bin/sh\necho conda\n")
        (conda / name).chmod(0o755)
    fresh.env |= {"CONDA_PREFIX": str(conda.parent), "CONDA_DEFAULT_ENV": "base"}
    fresh.env["PATH"] = f"{conda}:{fresh.bin}"
    assert_ready(fresh, fresh.source(before="conda() { echo conda; }"))
    done = fresh.run(f"{fresh.command()} >/dev/null; command -v python; command -v pip")
    assert done.stdout.splitlines() == [
        f"{fresh.workspace}/venv/bin/{name}" for name in ("python", "pip")
    ]


def test_with_variables_and_files_that_mislead_python_and_pip(fresh: Machine) -> None:
    junk = fresh.home / "junk"
    junk.mkdir()
    for module in ("torch.py", "small.py", "pip.py", "random.py", "site.py"):
        (junk / module).write_text("raise ImportError('not this one')\n")
    before = fresh.files_in_home()
    fresh.env |= {
        "PYTHONPATH": str(junk),
        "PYTHONHOME": "/nowhere",
        "PIP_USER": "1",
        "PIP_TARGET": "elsewhere",
        "PIP_PREFIX": "elsewhere",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_NO_DEPS": "1",
        "PIP_DRY_RUN": "1",
        "PIP_LOG": "/nowhere/log",
        "PIP_EXTRA_INDEX_URL": "http://127.0.0.1:9/simple",
        "HF_HOME": "/nowhere",
        "XDG_CACHE_HOME": "/nowhere",
    }
    for shell in SHELLS:
        done = fresh.source(shell, cwd=junk)
        assert (done.returncode, fresh.ws_dir) == (0, str(fresh.workspace)), done
    assert fresh.is_complete()
    assert fresh.files_in_home() == before
    assert not list(fresh.top.rglob("elsewhere"))


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
def test_modules_are_loaded_under_set_u(machine: Machine, shell: str) -> None:
    assert_ready(machine, machine.source(shell, before=f"{MODULE_FUNCTION}\nset -u"))


@both_shells
def test_module_that_is_not_there(machine: Machine, shell: str) -> None:
    machine.set_values(MODULES="Nothing/1")
    assert_says(machine.source(shell, before=MODULE_FUNCTION), "Nothing/1", "module spider Nothing")


# The workspace


def test_workspace_that_exists_already_is_used(fresh: Machine) -> None:
    fresh.run("ws_allocate -F horse llm-lab 100")
    (fresh.workspace / "mine").touch()
    assert_ready(fresh, fresh.source())
    assert (fresh.workspace / "mine").exists()


@both_shells
def test_workspace_that_expires_soon(machine: Machine, shell: str) -> None:
    machine.run("ws_extend -F horse llm-lab 9")
    done = machine.source(shell)
    assert_ready(machine, done)
    command = "ws_extend -F horse llm-lab 100"
    assert done.stderr.startswith("Your workspace expires in 8 days,")
    assert done.stderr.strip().endswith(f"type: {command}")
    machine.run(command)
    assert machine.source(shell).stderr == ""


@pytest.mark.parametrize("state", ["expired", "gone"])
def test_workspace_that_is_no_longer_there(machine: Machine, state: str) -> None:
    machine.run("ws_release llm-lab" if state == "expired" else f"rm -r '{machine.workspace}'")
    for shell in SHELLS:
        done = machine.source(shell)
        assert_says(done, state, "type: ws_")
    job = machine.run(f"{machine.command('activate.sh')} || exit 1")
    assert (job.returncode, job.stdout, job.stderr) == (1, "", done.stderr)
    assert machine.run(done.stderr.rpartition("type: ")[2]).returncode == 0
    assert_ready(machine, machine.source())


def test_workspace_on_a_filesystem_that_is_not_there(fresh: Machine) -> None:
    fresh.set_values(FILESYSTEM="pony")
    for shell in SHELLS:
        assert_says(fresh.source(shell), "not allowed to use", "type: ws_list -l")


def test_no_workspace_tools_takes_the_folder_that_it_names(tmp_path: Path, made: Machine) -> None:
    machine = Machine(tmp_path, made.wheels, workspace_tools=False)
    machine.workspace = machine.lab / "workspace"
    for shell in SHELLS:
        assert_ready(machine, machine.source(shell))


def test_no_workspace_tools_takes_the_folder_that_the_student_names(
    tmp_path: Path, made: Machine
) -> None:
    machine = Machine(tmp_path, made.wheels, workspace_tools=False)
    terminal = machine.terminal()
    terminal.child.sendline(machine.command())
    terminal.child.expect_exact(f"Which one? [{machine.lab}/workspace] ")
    assert "environment ready" in terminal.type("~/my big disk")
    terminal.close()
    machine.workspace = machine.home / "my big disk"
    assert_ready(machine, machine.source())
    machine.run(f"rm -r '{machine.workspace}'")
    done = machine.source()
    assert_says(done, "gone", "type: mkdir -p")
    assert machine.run(done.stderr.rpartition("type: ")[2]).returncode == 0
    assert machine.workspace.is_dir()


# The login node


def test_login_node_says_that_installing_belongs_into_a_job(fresh: Machine) -> None:
    fresh.make_login_node()
    for shell in SHELLS:
        done = fresh.source(shell)
        assert_says(done, "--here")
        assert (
            "srun --account=p_lv_llmsecrets --nodes=1 --ntasks=1 --cpus-per-task=4 "
            "--mem-per-cpu=2G --gres=gpu:1 --time=00:45:00 --pty bash -l\n"
        ) in done.stderr
        assert not fresh.workspace.exists()
    assert_ready(fresh, fresh.source(options="--here"))


@both_shells
def test_login_node_with_an_environment_activates_it(machine: Machine, shell: str) -> None:
    machine.make_login_node()
    assert_ready(machine, machine.source(shell))


@both_shells
def test_login_node_asks_at_a_terminal(fresh: Machine, shell: str) -> None:
    fresh.make_login_node()
    terminal = fresh.terminal(shell)
    before = terminal.state()
    answers = {"": False, "n": False} | ({"y": True} if shell == "bash" else {})
    for answer, ready in answers.items():
        terminal.child.sendline(fresh.command())
        terminal.child.expect_exact("Install here all the same? [y/N] ")
        assert ("environment ready" in terminal.type(answer)) == ready
    assert terminal.state() == before
    terminal.close()


# Run instead of sourced


def test_run_instead_of_sourced_does_its_work_and_says_what_to_type(fresh: Machine) -> None:
    for shell in SHELLS:
        done = fresh.run(f'{shell} 00_setup/setup_env.sh; echo "[$WS_DIR]"', shell, cwd=fresh.lab)
        *_, last, ws_dir = done.stdout.splitlines()
        assert last.endswith("In yours, type: source 00_setup/setup_env.sh")
        assert ws_dir == "[]"
        assert "environment ready" in done.stdout
        assert fresh.is_complete()


def test_run_on_a_login_node_with_an_environment_finishes(machine: Machine) -> None:
    machine.make_login_node()
    done = machine.run("bash 00_setup/setup_env.sh", cwd=machine.lab)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("In yours, type: source 00_setup/setup_env.sh\n")


# Job scripts


def test_job_activates_with_an_empty_environment_and_in_silence(machine: Machine) -> None:
    job = "source ../00_setup/activate.sh || exit 1\npython -c 'import small; print(small.answer)'"
    done = machine.run(
        f"PATH={machine.bin}; set -eu\n{job}", env={}, cwd=machine.lab / "04_tinygpt"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_job_activates_where_there_is_no_module_command(machine: Machine) -> None:
    machine.set_values(MODULES="release/25.06 Python/3.13.1")
    script = f"{machine.command('activate.sh')} || exit 1\npython -c 'import small'"
    done = machine.run(f"! type module 2>/dev/null || exit 2\n{script}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_job_without_environment_says_so_and_fails(fresh: Machine) -> None:
    done = fresh.run(f"{fresh.command('activate.sh')} || exit 1; echo never")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert_says(done, "environment", f"type: source '{fresh.setup}/setup_env.sh'")
    assert not fresh.workspace.exists()


# What goes wrong


def test_no_network(fresh: Machine) -> None:
    fresh.require("torch==2.13.0", "small==1.0", options="--index-url=http://127.0.0.1:9/simple")
    fresh.env["PIP_RETRIES"] = "0"
    assert_says(fresh.source(), "no network", "login node")
    fresh.require("torch==2.13.0", "small==1.0")
    assert_ready(fresh, fresh.source())


def test_pip_that_fails_in_the_middle(fresh: Machine) -> None:
    fresh.use_own_packages()
    wheel = next(fresh.wheels.glob("small*"))
    good = wheel.read_bytes()
    wheel.write_bytes(good[: len(good) // 2])
    assert_says(fresh.source(), "Installing failed", "small", "install.log")
    assert not fresh.is_complete()
    wheel.write_bytes(good)
    assert_ready(fresh, fresh.source())


def test_wrong_build_of_torch(fresh: Machine) -> None:
    fresh.use_own_packages()
    make_torch(fresh.wheels, "cpu")
    assert_says(fresh.source(), "the cuda build", "found the cpu build", "TORCH_INDEX")
    fresh.set_values(TORCH_BUILD="cpu")
    assert_ready(fresh, fresh.source())


def test_build_of_torch_comes_from_the_index_that_is_named(fresh: Machine) -> None:
    fresh.use_own_packages()
    index = fresh.top / "index" / "torch"
    wheel = make_torch(index, "cpu", "2.13.0+cpu")
    (index / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    fresh.set_values(TORCH_BUILD="cpu", TORCH_INDEX=index.parent.as_uri())
    assert_ready(fresh, fresh.source())


def test_python_that_no_longer_starts(machine: Machine) -> None:
    python = machine.workspace / "venv" / "bin" / "python3"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    for shell in SHELLS:
        done = machine.source(shell)
        assert_says(done, "now there is none that starts", "type: rm -rf")
    done = machine.run(done.stderr.rpartition("type: ")[2])
    assert "environment ready" in done.stdout
    assert_ready(machine, machine.source())


def test_python_of_another_version(machine: Machine) -> None:
    python = machine.workspace / "venv" / "bin" / "python3"
    python.unlink()
    python.write_text("#!/bin/sh\necho 3.9\n")
    python.chmod(0o755)
    assert_says(machine.source(), "now there is 3.9", "type: rm -rf")


@pytest.mark.parametrize("answer", ["echo 3.9", "exit 127"])
def test_python_too_old_or_missing(fresh: Machine, answer: str) -> None:
    fresh.run("ws_allocate -F horse llm-lab 100")
    (fresh.bin / "python3").unlink()
    (fresh.bin / "python3").write_text(f"#!/bin/sh\n{answer}\n")
    (fresh.bin / "python3").chmod(0o755)
    assert_says(fresh.source(), "3.10 or newer", "type: module spider Python")


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
def test_failure_under_set_eu_does_not_close_the_terminal(fresh: Machine, shell: str) -> None:
    fresh.set_values(FILESYSTEM="pony")
    terminal = fresh.terminal(shell)
    terminal.type(CUSTOM[shell])
    terminal.type("set -eu")
    before = terminal.state()
    assert "ws_list -l" in terminal.type(fresh.command())
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
def test_home_that_cannot_be_written(fresh: Machine, then: str) -> None:
    script = MOUNT_HOME.format(home=fresh.home, top=fresh.top) + then
    source = fresh.command()
    done = run_mounted(fresh, f"{script}\n{source} && {source} && python -c 'import small'")
    if done is None:
        pytest.skip("not run: this machine allows no mounts")
    assert done.returncode == 0, done
    assert done.stdout.count("environment ready") == 2
    assert "writable" not in done.stdout


def test_disk_that_is_full_and_then_is_not(fresh: Machine) -> None:
    fresh.run("ws_allocate -F horse llm-lab 100")
    source = fresh.command()
    done = run_mounted(
        fresh,
        f"""mount_at -t tmpfs -o size=4m tmpfs "{fresh.workspace}"
{source}; echo "result $?"
mount_at -o remount,size=200m "{fresh.workspace}"
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
def test_killed_at_a_random_moment(fresh: Machine, made: Machine, part: int) -> None:
    # One moment in each fifth of the time that an installation takes here.
    moment = random.uniform(part, part + 1) / 5 * made.seconds
    print(f"killed after {moment:.3f} s")
    kill_at(fresh, moment)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(100))
def test_killed_at_one_of_many_random_moments(fresh: Machine, made: Machine, turn: int) -> None:
    moment = random.uniform(0, 1.1) * made.seconds
    print(f"killed after {moment:.3f} s")
    kill_at(fresh, moment)


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


def test_installer_killed_while_its_pip_goes_on(fresh: Machine) -> None:
    process = start(fresh)
    wait_for(lambda: install_pid(fresh))
    os.kill(install_pid(fresh), signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode != 0
    assert errors.splitlines()[-1].startswith("The setup was killed. Type the same again")
    assert_ready(fresh, fresh.source())


@both_shells
def test_ctrl_c_while_installing(fresh: Machine, shell: str) -> None:
    terminal = fresh.terminal(shell)
    terminal.type(CUSTOM[shell])
    before = terminal.state()
    terminal.child.sendline(fresh.command())
    wait_for(lambda: install_pid(fresh))
    terminal.child.sendintr()
    assert "Interrupted. Type the same again" in terminal.wait()
    assert terminal.state() == before
    assert "environment ready" in terminal.type(fresh.command())
    assert terminal.state() == before
    terminal.close()


@pytest.mark.parametrize("with_flock", [True, False], ids=["flock", "no flock"])
def test_two_at_once(fresh: Machine, with_flock: bool) -> None:
    if not with_flock:
        fresh.remove_tool("flock")
    fresh.run("ws_allocate -F horse llm-lab 100")
    processes = [start(fresh), start(fresh)]
    results = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    # One installed, and the other one waited.
    assert sorted(output.count("Successfully installed") for output, _ in results) == [0, 1]
    assert fresh.is_complete()


def test_lock_folder_of_a_killed_shell_is_taken_over(fresh: Machine) -> None:
    fresh.remove_tool("flock")
    fresh.run("ws_allocate -F horse llm-lab 100")
    lock = fresh.workspace / ".install.lock.d"
    lock.mkdir()
    two_minutes_ago = time.time() - 120
    os.utime(lock, (two_minutes_ago, two_minutes_ago))
    assert_ready(fresh, fresh.source())
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
