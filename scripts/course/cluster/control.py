"""Starts, stops and asks the practice cluster, from the machine's side."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from course.cluster import cgroups, layer, packages
from course.cluster.errors import ClusterError
from course.hub import HUB, load_listing, make_model
from course.values import COURSE_ENV, load_values

CHECKOUT = Path(__file__).parents[3]
PYTHON = "/usr/bin/python3"
USERS = ("marie", "martin")
NODES = ("i8001", "i8002")
# Programs that must be there, and the Debian package of each.
NEEDED = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
    "apt-get": "apt",
}


class Cluster:
    """The practice cluster of one checkout. Each checkout can have its own at the same time."""

    def __init__(self, checkout: Path = CHECKOUT) -> None:
        self.checkout = checkout
        self.folder = checkout / "build/cluster"
        self.run_folder = self.folder / "run"
        digest = hashlib.sha256(str(checkout.resolve()).encode()).hexdigest()[:8]
        self.cgroup = f"practice-cluster-{digest}"

    def start(self, say: Callable[[str], None] = lambda text: None) -> None:
        """Start the cluster, fresh: no jobs, new homes, no workspaces.

        Do nothing when it runs already. What a crash left behind is cleaned up first.
        """
        _check_machine()
        _check_network()
        with self._lock():
            dead = self.dead_daemons()
            if dead == []:
                return
            if dead:
                say(f"No longer running: {', '.join(dead)}. Starting anew.")
            try:
                self._clean_up()
                tree = packages.unpack(self.folder / "packages", say)
                make_model()
                self._prepare(packages.pip_settings(tree))
                self._boot(say)
            except BaseException:
                self._clean_up()
                raise

    def stop(self) -> None:
        """End every process of the cluster, remove its cgroups, homes and workspaces.

        The logs stay in the checkout until the next start.
        """
        _check_machine()
        with self._lock():
            self._clean_up()

    def dead_daemons(self) -> list[str] | None:
        """The daemons that should run and do not. None when the cluster is not running."""
        first = self._first_process()
        if first is None:
            return None
        inside = Path(f"/proc/{first}/root")
        daemons = inside / "run/daemons.json"
        if not daemons.exists():  # Killed while it started.
            return ["all of it (its start was interrupted)"]
        return [
            name
            for name, pid in json.loads(daemons.read_text()).items()
            if not (inside / f"proc/{pid}").exists()
        ]

    def shell_command(self, user: str) -> list[str]:
        """The command that opens a login shell of `user` on the login node."""
        if user not in USERS:
            raise ClusterError(f"The practice cluster has no user {user}, only marie and martin.")
        first = self._first_process()
        if first is None:
            raise ClusterError(
                "The practice cluster is not running. Start it: scripts/cluster start"
            )
        namespaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup"]
        enter = ["nsenter", f"--target={first}", *namespaces, "--root", f"--wdns=/home/{user}"]
        become = [f"--reuid={user}", "--regid=10000", "--init-groups", "--reset-env"]
        # When nsenter is killed, the shell inside must not live on.
        return [*enter, "setpriv", *become, "--pdeathsig=KILL", "bash", "--login"]

    def run(self, user: str, command: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run one command line in a login shell. Raise TimeoutExpired after `timeout` seconds."""
        return subprocess.run(
            [*self.shell_command(user), "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _first_process(self) -> int | None:
        """The machine's number of the process that is number 1 inside."""
        for pid in cgroups.processes(self.cgroup):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                numbers = status.partition("NSpid:")[2].partition("\n")[0].split()
                if len(numbers) > 1 and numbers[-1] == "1":
                    return pid
        return None

    def _prepare(self, pip: dict[str, dict[str, str]]) -> None:
        """Lay out the folder that belongs to this run."""
        shutil.rmtree(self.run_folder, ignore_errors=True)
        self.run_folder.mkdir(mode=0o700)
        for name in ("layer", "root", "log", "tmp", "data"):
            (self.run_folder / name).mkdir()
        lab = self.checkout / "lab_code/hpc_lab"
        practice = _practice_values(pip)
        values = load_values(lab / COURSE_ENV) | practice
        values |= _slurm_values(values["LOGIN_HOST"])
        layer.write(self.run_folder / "layer", values, pip)
        layer.copy_lab(lab, self.run_folder / "layer/etc/skel", practice)
        settings = {
            "cgroup": self.cgroup,
            "nodes": NODES,
            "users": USERS,
            "values": values,
            "hub": str(HUB),
        }
        (self.run_folder / "settings.json").write_text(json.dumps(settings))

    def _boot(self, say: Callable[[str], None]) -> None:
        """Start the first process in its namespaces and wait until it says that all is up."""
        say(f"Starting munge, MariaDB, slurmdbd, slurmctld and the nodes {' and '.join(NODES)}")
        cgroups.make(self.cgroup)
        answer, answer_inside = os.pipe()
        namespaces = ["--mount", "--pid", "--fork", "--uts", "--ipc"]
        boot = [PYTHON, "-B", "-m", "course.cluster.boot", str(answer_inside)]
        with (self.run_folder / "log/boot.log").open("w") as log:
            subprocess.Popen(
                ["unshare", *namespaces, *boot],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.checkout / "scripts")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[answer_inside],
                start_new_session=True,
                preexec_fn=lambda: cgroups.enter(self.cgroup, os.getpid()),
            )
        os.close(answer_inside)
        with open(answer) as lines:
            said = lines.readline().strip()
        if said != "ready":
            raise ClusterError(
                f"The practice cluster did not start: {said or 'it ended at once'}.\n"
                f"The logs are in {self.run_folder / 'log'}"
            )

    def _clean_up(self) -> None:
        """End all processes, then remove what they leave: cgroups and files, but for the logs."""
        deadline = time.monotonic() + 10
        while running := cgroups.processes(self.cgroup):
            if time.monotonic() > deadline:
                raise ClusterError(f"Some processes do not end: {sorted(running)}")
            cgroups.thaw(self.cgroup)
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        cgroups.remove(self.cgroup)
        if self.run_folder.exists():
            for part in self.run_folder.iterdir():
                if part.name != "log":
                    shutil.rmtree(part) if part.is_dir() else part.unlink()


def _check_machine() -> None:
    if os.geteuid() != 0:
        raise ClusterError("The practice cluster needs root. Start it with sudo.")
    missing = sorted({NEEDED[name] for name in NEEDED if shutil.which(name) is None})
    if missing:
        raise ClusterError(
            "This machine lacks some programs. On Debian and Ubuntu you get them by: "
            f"apt-get install {' '.join(missing)}"
        )


def _check_network() -> None:
    try:  # As Slurm looks up its own names.
        socket.getaddrinfo("127.0.0.1", None, socket.AF_INET, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror as error:
        raise ClusterError(
            "This machine has no network address but the loopback one, and Slurm does not start "
            "like that. Connect it to a network, any one will do, and start again."
        ) from error


def _practice_values(pip: dict[str, dict[str, str]]) -> dict[str, str]:
    """The course values that differ on the practice cluster."""
    # A machine with package sources of its own has torch there, too.
    sources = {"index-url", "extra-index-url", "find-links"} & pip["global"].keys()
    index = "" if sources else "https://download.pytorch.org/whl/cpu"
    model = load_listing()
    return {
        "TORCH_BUILD": "cpu",
        "TORCH_INDEX": index,
        "MODEL": model["model"],
        "MODEL_REVISION": model["revision"],
        # As small as it gets, and longer than the two minutes after which scene 4 wants it to end.
        "TRAIN_OPTIONS": "--n-layer=1 --n-embd=64 --batch-size=4 --block-size=32 --steps=100000",
    }


def _slurm_values(login_host: str) -> dict[str, str]:
    """The values that the templates need besides the course values. Ports are new each time."""
    ports = _free_ports(3 + len(NODES))
    nodes = [f"NodeName={node} NodeAddr=127.0.0.1 Port={ports.pop()}" for node in NODES]
    return {
        "LOGIN_NODE": login_host.partition(".")[0],
        "NODE_NAMES": " ".join(NODES),
        "NODES": "\n".join(nodes),
        "SLURMCTLD_PORT": ports.pop(),
        "SLURMDBD_PORT": ports.pop(),
        "HUB_PORT": ports.pop(),
        "CGROUP_PLUGIN": f"cgroup/v{cgroups.version()}",
    }


def _free_ports(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]
