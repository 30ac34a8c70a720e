"""A machine for the tests of lab 00: a home, a copy of the lab, workspace tools, small packages.

The workspace tools are stand-ins that answer as the real ones do (their options, output and exit
codes are those of the ZIH Compendium and of hpc-workspace). Everything else is real: the shells,
Python, pip, and the lab's own files. The packages are small ones, made here.
"""

import base64
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pexpect

from course.values import change_values

LAB = Path(__file__).parents[1] / "lab_code" / "hpc_lab"
SHELLS = ["bash", "zsh"]
TOOLS = (
    "awk bash basename cat cp cut date dirname du env find flock grep head ls mkdir mv ps rm rmdir "
    "sed sha256sum sleep sort tail touch tr uname zsh"
)

# What must be the same before and after, as each shell prints it.
STATE = {
    "bash": "pwd; set +o; shopt -p; trap -p; alias -p; declare -f",
    "zsh": "pwd; setopt; trap; alias; functions",
}
# A student's own shell: options, a trap, an alias and functions that must survive.
CUSTOM = {
    "bash": (
        "set -o noclobber; shopt -s nullglob; trap 'echo bye' USR1; alias ll='ls -l'; "
        "deactivate() { echo mine; }; say() { echo mine; }; CDPATH=/usr"
    ),
    "zsh": (
        "setopt noclobber nullglob; trap 'echo bye' USR1; alias ll='ls -l'; "
        "deactivate() { echo mine; }; say() { echo mine; }; CDPATH=/usr"
    ),
}

WORKSPACE_TOOL = r"""#!PYTHON
import os, shutil, sys, time
root = "ROOT"
name = os.path.basename(sys.argv[0])
arguments = sys.argv[1:]
filesystem = "horse"
if arguments[:1] == ["-F"]:
    filesystem = arguments[1]
    arguments = arguments[2:]
if filesystem != "horse":
    sys.exit("Error: no such filesystem." if name != "ws_allocate" else
             "Error: You are not allowed to use the specified workspace!")
database = os.path.join(root, "database")
os.makedirs(database, exist_ok=True)
def entry(ws): return os.path.join(database, ws)
def folder(ws): return os.path.join(root, "data", filesystem, "ws", "marie-" + ws)
if name == "ws_find":
    if not os.path.exists(entry(arguments[0])):
        print("Error: no such workspace", file=sys.stderr)
        sys.exit(255)
    print(folder(arguments[0]))
elif name == "ws_release":
    os.remove(entry(arguments[0]))
    shutil.rmtree(folder(arguments[0]), ignore_errors=True)
elif name in ("ws_allocate", "ws_extend"):
    ws, days = arguments[0], int(arguments[1])
    exists = os.path.exists(entry(ws))
    print("Info: reusing workspace." if exists else "Info: creating workspace.", file=sys.stderr)
    if not exists or name == "ws_extend":
        os.makedirs(folder(ws), exist_ok=True)
        with open(entry(ws), "w") as file:
            file.write(str(time.time() + days * 86400 - 60))
    print(folder(ws))
    print("remaining extensions  : 10", file=sys.stderr)
    print("remaining time in days:", days, file=sys.stderr)
elif name == "ws_list":
    for ws in os.listdir(database):
        seconds = float(open(entry(ws)).read()) - time.time()
        print("id:", ws)
        print("     workspace directory  :", folder(ws))
        if seconds < 0:
            print("     remaining time       : expired")
        else:
            left = seconds // 86400, seconds % 86400 // 3600
            print("     remaining time       : %d days %d hours" % left)
        print("     filesystem name      :", filesystem)
        print("     available extensions : 10")
"""

# Does what Lmod's function does as far as a caller can see: PATH, LOADEDMODULES, exit code.
MODULE_FUNCTION = r"""
module() {
    [ "$1" = load ] || return 1
    if [ "$2" = Nothing/1 ]; then
        echo "Lmod has detected the following error: The following module(s) are unknown: $2" >&2
        return 1
    fi
    echo "Module $2 and 4 dependencies loaded." >&2
    export LOADEDMODULES="${LOADEDMODULES:+$LOADEDMODULES:}$2"
    export PATH="/software/$2/bin:$PATH"
}
"""


def make_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """Writes a small wheel, as PyPI would have it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    contents = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = ""
    for path, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{path},sha256={digest.decode()},{len(text.encode())}\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in (contents | {f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}).items():
            archive.writestr(path, text)
    return wheel


def make_torch(folder: Path, build: str, version: str = "2.13.0") -> Path:
    """A package with torch's name and the one attribute that tells its builds apart."""
    cuda = '"13.0"' if build == "cuda" else "None"
    files = {
        "torch/__init__.py": "from torch import version\n",
        "torch/version.py": f"cuda = {cuda}\n",
    }
    return make_wheel(folder, "torch", version, files)


def make_packages(folder: Path) -> Path:
    """What a machine's requirements.txt asks for."""
    make_torch(folder, "cuda")
    make_wheel(folder, "small", "1.0", {"small.py": "answer = 42\n"})
    return folder


class Machine:
    """One student's machine in a folder of its own.

    `env` is the environment of every shell; it is that of a job, as in the story's scene 0.
    `seconds` is how long the first sourcing took, where a test needs to know.
    """

    def __init__(
        self,
        top: Path,
        wheels: Path | None = None,
        workspace_tools: bool = True,
        lab: str = "hpc_lab",
    ) -> None:
        self.top = top
        self.seconds = 0.0
        self.home = top / "home"
        self.lab = self.home / "behind-llms-lab" / lab
        self.setup = self.lab / "00_setup"
        self.bin = top / "bin"
        self.wheels = wheels or make_packages(top / "wheels")
        self.workspace = top / "data" / "horse" / "ws" / "marie-llm-lab"
        shutil.copytree(LAB / "00_setup", self.setup, ignore=shutil.ignore_patterns(".workspace"))
        (self.lab / "04_tinygpt").mkdir()
        (self.lab / "04_tinygpt" / "shakespeare.txt").write_text("First Citizen:\n")
        (self.home / ".profile").write_text("# here before\n")
        self.bin.mkdir()
        for tool in TOOLS.split(" "):
            (self.bin / tool).symlink_to(shutil.which(tool))
        (self.bin / "python3").symlink_to(sys._base_executable)
        if workspace_tools:
            self.add_workspace_tools()
        self.require("torch==2.13.0", "small==1.0")
        self.env = {
            "HOME": str(self.home),
            "PATH": str(self.bin),
            "SLURM_JOB_ID": "1234567",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            # The packages of a test are its own, wherever this machine's pip has others.
            "PIP_CONFIG_FILE": "/dev/null",
        }

    def add_workspace_tools(self) -> None:
        program = WORKSPACE_TOOL.replace("PYTHON", sys._base_executable)
        for tool in ("ws_find", "ws_allocate", "ws_list", "ws_extend", "ws_release"):
            path = self.bin / tool
            path.write_text(program.replace("ROOT", str(self.top)))
            path.chmod(0o755)

    def add_environment(self, made: Path) -> None:
        """The workspace of another machine, in which setup_env.sh has installed everything."""
        self.run("ws_allocate -F horse llm-lab 100")
        shutil.copytree(made, self.workspace, symlinks=True, dirs_exist_ok=True)
        (self.setup / ".workspace").write_text(f"{self.workspace}\n")

    def remove_tool(self, name: str) -> None:
        (self.bin / name).unlink()

    def make_login_node(self) -> None:
        """Slurm's commands, and no job."""
        srun = self.bin / "srun"
        srun.write_text("#!/bin/sh\nexit 1\n")
        srun.chmod(0o755)
        del self.env["SLURM_JOB_ID"]

    def use_own_packages(self) -> None:
        """Packages that a test may break without harm to the others."""
        self.wheels = make_packages(self.top / "wheels")
        self.require("torch==2.13.0", "small==1.0")

    def require(self, *requirements: str, options: str = "") -> None:
        """Writes a requirements.txt that pip can fulfil without a network."""
        options = options or f"--no-index\n--find-links={self.wheels.as_uri()}"
        (self.setup / "requirements.txt").write_text("\n".join([options, *requirements]) + "\n")

    def set_values(self, **changes: str) -> None:
        change_values(self.lab, changes)

    def command(self, file: str = "setup_env.sh", options: str = "") -> str:
        return f"source {shlex.quote(str(self.setup / file))} {options}".rstrip()

    def run(self, script: str, shell: str = "bash", **more) -> subprocess.CompletedProcess[str]:
        """A script in a shell of its own, without the tester's start files."""
        no_rc = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}[shell]
        return subprocess.run(
            [self.bin / shell, *no_rc, "-c", script],
            **{"env": self.env, "cwd": self.home, "timeout": 120} | more,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )

    def source(self, shell: str = "bash", options: str = "", before: str = "", **more):
        """Sources setup_env.sh as a student would; the shell must be as before.

        Gives what happened, with the file's own result as `returncode` and its stdout alone.
        """
        state = STATE[shell]
        done = self.run(
            f"{CUSTOM[shell]}\n{before}\nstate_before=$({state})\necho BEGIN\n"
            f"{self.command(options=options)} && result=0 || result=$?\necho END $result\n"
            f'[ "$state_before" = "$({state})" ] && echo SAME && echo "WS_DIR=${{WS_DIR:-}}"\n',
            shell,
            **more,
        )
        assert "END" in done.stdout, f"the shell is gone: {done}"
        output, _, rest = done.stdout.partition("BEGIN\n")[2].partition("END ")
        result, _, rest = rest.partition("\n")
        assert rest.startswith("SAME\n"), f"the shell has changed: {done}"
        self.ws_dir = rest.removeprefix("SAME\nWS_DIR=").strip()
        return subprocess.CompletedProcess(done.args, int(result), output, done.stderr)

    def terminal(self, shell: str = "bash", **env: str) -> "Terminal":
        return Terminal(self, shell, self.env | env)

    def is_complete(self) -> bool:
        """Whether the environment that the lab switches on has all its packages."""
        done = self.run(f"{self.command('activate.sh')} && python -c 'import torch, small'")
        return done.returncode == 0

    def files_in_home(self) -> set[str]:
        """What is in the home, without the lab's own folder."""
        paths = (path.relative_to(self.home) for path in self.home.rglob("*"))
        return {str(path) for path in paths if path.parts[0] != "behind-llms-lab"}


class Terminal:
    """An interactive shell at a real terminal."""

    PROMPT = "\x02>"

    def __init__(self, machine: Machine, shell: str, env: dict[str, str]) -> None:
        arguments = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
        self.shell = shell
        self.child = pexpect.spawn(
            str(machine.bin / shell),
            arguments,
            env=env,
            cwd=str(machine.home),
            encoding="utf-8",
            timeout=60,
            echo=False,
            dimensions=(50, 300),
        )
        self.child.delaybeforesend = None
        quoted = {
            "bash": "PS1=$'\\x02>'; PS2=",
            "zsh": "unsetopt zle prompt_sp; PS1=$'\\x02>'; PS2=",
        }
        self.child.sendline(quoted[shell])
        self.child.expect_exact(self.PROMPT)
        if shell == "zsh":
            self.child.expect_exact([self.PROMPT, pexpect.TIMEOUT], timeout=0.2)

    def type(self, line: str) -> str:
        """Types a line and waits for the next prompt; gives what was printed."""
        self.child.sendline(line)
        return self.wait()

    def wait(self) -> str:
        self.child.expect_exact(self.PROMPT)
        return self.child.before.replace("\r\n", "\n")

    def state(self) -> str:
        return self.type(STATE[self.shell])

    def close(self) -> None:
        self.child.close(force=True)


def run_mounted(machine: Machine, script: str) -> subprocess.CompletedProcess[str] | None:
    """A bash script that may mount filesystems: only it and what it starts see them.

    Gives None where this machine does not allow that.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = [shutil.which("unshare") or "unshare", *user, "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        return None
    mounts = 'mount_at() { PATH=/usr/bin:/bin:/usr/sbin:/sbin command mount "$@"; }\n'
    return subprocess.run(
        [*unshare, machine.bin / "bash", "--norc", "-c", mounts + script],
        env=machine.env,
        cwd="/",
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
