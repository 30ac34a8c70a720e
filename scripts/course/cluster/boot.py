"""The first process of the practice cluster, number 1 in its namespace.

Started by control.py in fresh namespaces, in the folder build/cluster. It puts the cluster's root
file system together, moves into it, starts the daemons one after the other, and then only waits:
for children that end, its own and those that lost their parent. When it ends, the kernel ends
all others and drops the mounts.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from course.cluster import cgroups

ROOT = "run/root"
# A hundredth of what ZIH gives. Room for the lab; too small for an installation of torch.
HOME_SIZE = "500m"
DEVICES = {  # name: major, minor number
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
    "ptmx": (5, 2),
    # Numbers that Linux keeps for local use: there is no such device anywhere.
    **{f"nvidia{gpu}": (60, gpu) for gpu in range(8)},
}
daemons: dict[str, subprocess.Popen] = {}


def main() -> None:
    answer = int(sys.argv[1])
    settings = json.loads(Path("run/settings.json").read_text())
    try:
        mount_root(settings["cgroup"])
        bind(settings["hub"], f"{ROOT}/srv")
        enter_root(settings["values"]["LOGIN_HOST"])
        make_folders(settings["values"]["FILESYSTEM"])
        for user in settings["users"]:
            make_home(user)
        start_daemons(settings["values"], settings["nodes"], settings["users"])
        said = "ready"
    except (OSError, subprocess.SubprocessError, TimeoutError) as error:
        said = str(error)
    os.write(answer, said.encode() + b"\n")
    os.close(answer)
    if said != "ready":
        sys.exit(1)
    while True:
        try:
            os.wait()
        except ChildProcessError:  # Every daemon was killed: wait to be ended by control.py.
            time.sleep(3600)


def run(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def mount(kind: str, target: str, *options: str) -> None:
    run("mount", "-t", kind, *(f"-o{option}" for option in options), kind, target)


def bind(source: str, target: str) -> None:
    run("mount", "--bind", source, target)


def mount_root(cgroup: str) -> None:
    """Put the root file system together, in memory but for what may become big.

    /usr and /etc are the machine's, below the packages and the configuration; changes are kept
    apart, in memory. Paths are relative: a comma or colon in one would be one of the options'.
    """
    mount("tmpfs", ROOT, "mode=755,size=1g")
    for link in Path("/").iterdir():
        if link.is_symlink() and str(link.readlink()).startswith("usr/"):
            Path(ROOT, link.name).symlink_to(link.readlink())
    os.mkdir(f"{ROOT}/changes", mode=0o700)
    for top in ("usr", "etc"):
        upper, work = f"{ROOT}/changes/{top}", f"{ROOT}/changes/work-{top}"
        for folder in (upper, work, f"{ROOT}/{top}"):
            os.makedirs(folder)
        lower = f"run/layer/{top}:packages/root/{top}:/{top}"
        mount("overlay", f"{ROOT}/{top}", f"lowerdir={lower},upperdir={upper},workdir={work}")
    for folder in ("proc", "sys", "run", "home", "dev", "tmp", "data", "srv", "var/log", "var/tmp"):
        os.makedirs(f"{ROOT}/{folder}")
    mount("proc", f"{ROOT}/proc")
    mount("sysfs", f"{ROOT}/sys", "ro")
    mount_cgroups(cgroup, f"{ROOT}/sys/fs/cgroup")
    make_devices(f"{ROOT}/dev")
    os.symlink("/run", f"{ROOT}/var/run")
    for source, target in (("run/tmp", "tmp"), ("run/data", "data"), ("run/log", "var/log")):
        bind(source, f"{ROOT}/{target}")
    if os.path.isdir("/opt"):  # Some machines keep pip's packages there.
        os.mkdir(f"{ROOT}/opt")
        bind("/opt", f"{ROOT}/opt")
        run("mount", "-o", "remount,bind,ro", f"{ROOT}/opt")


def mount_cgroups(name: str, target: str) -> None:
    """Mount the cluster's corner of the cgroups, as if it were the whole."""
    cgroups.take_for_whole(name)
    if cgroups.version() == 2:
        bind(f"/sys/fs/cgroup/{name}", target)
        return
    mount("tmpfs", target, "mode=755")
    for controller in cgroups.CONTROLLERS:
        os.mkdir(f"{target}/{controller}")
        bind(f"/sys/fs/cgroup/{controller}/{name}", f"{target}/{controller}")


def make_devices(target: str) -> None:
    mount("tmpfs", target, "mode=755")
    os.umask(0)
    for name, (major, minor) in DEVICES.items():
        os.mknod(f"{target}/{name}", 0o20666, os.makedev(major, minor))
    os.umask(0o022)
    for name, link in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{link}", f"{target}/{name}")
    os.mkdir(f"{target}/shm")
    mount("tmpfs", f"{target}/shm", "mode=1777")
    # The machine's pseudo terminals: the one from which somebody logs in is among them.
    os.mkdir(f"{target}/pts")
    bind("/dev/pts", f"{target}/pts")


def enter_root(host_name: str) -> None:
    os.chdir(ROOT)
    os.mkdir("old-root")
    run("pivot_root", ".", "old-root")
    os.chroot(".")
    os.chdir("/")
    run("umount", "--lazy", "/old-root")
    os.rmdir("/old-root")
    run("hostname", host_name)


def make_folders(filesystem: str) -> None:
    for folder, owner in (
        ("/run/munge", "munge"),
        ("/var/lib/munge", "munge"),
        ("/var/log/munge", "munge"),
        ("/run/mysqld", "mysql"),
        ("/run/slurm", "slurm"),
        ("/var/lib/practice-mysql", "mysql"),
        ("/var/spool/slurm", "slurm"),
    ):
        os.makedirs(folder, exist_ok=True)
        shutil.chown(folder, owner, owner)
    for log in ("slurmctld", "slurmdbd"):
        Path(f"/var/log/{log}.log").touch()
        shutil.chown(f"/var/log/{log}.log", "slurm")
    workspaces = f"/data/{filesystem}/ws"
    os.makedirs(f"{workspaces}/.records")
    for folder in ("/tmp", "/var/tmp", workspaces, f"{workspaces}/.records"):
        os.chmod(folder, 0o1777)
    for managed in Path("/usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        managed.unlink()  # ZIH's Python lets you pip install --user. Debian's does not.


def make_home(user: str) -> None:
    home = f"/home/{user}"
    os.mkdir(home)
    mount("tmpfs", home, f"mode=700,size={HOME_SIZE}")
    run("cp", "--recursive", "--no-preserve=ownership", "/etc/skel/.", home)
    run("chown", "--recursive", f"{user}:", home)


def start_daemons(values: dict[str, str], nodes: list[str], users: list[str]) -> None:
    start("munged", "munged", "--foreground", user="munge")
    wait_for("munge", lambda: os.path.exists("/run/munge/munge.socket.2"))
    database = ["--no-defaults", "--datadir=/var/lib/practice-mysql", "--user=mysql"]
    run("mariadb-install-db", *database, "--skip-test-db", "--skip-name-resolve")
    start(
        "mariadbd", "mariadbd", *database, "--skip-networking",
        "--socket=/run/mysqld/mysqld.sock", "--log-error=/var/log/mariadbd.log",
    )  # fmt: skip
    wait_for("MariaDB", lambda: os.path.exists("/run/mysqld/mysqld.sock"))
    rights = "GRANT ALL ON slurm_acct_db.* TO slurm@localhost IDENTIFIED VIA unix_socket"
    run("mariadb", "--no-defaults", "--socket=/run/mysqld/mysqld.sock", "--execute", rights)
    start("slurmdbd", "slurmdbd", "-D", user="slurm")
    wait_for("slurmdbd", lambda: is_open(values["SLURMDBD_PORT"]))
    account, cluster = values["ACCOUNT"], values["CLUSTER"]
    for add in (
        f"cluster {cluster}",
        f"account {account}",
        f"user {','.join(users)} account={account}",
    ):
        run("sacctmgr", "--immediate", "add", *add.split())
    hub = ["/usr/bin/python3", "-B", "/usr/local/lib/hub.py", "/srv", values["HUB_PORT"]]
    start("hub", *hub, user="daemon")
    wait_for("the hub", lambda: is_open(values["HUB_PORT"]))
    start("slurmctld", "slurmctld", "-D", user="slurm")
    for node in nodes:
        start(node, "unshare", "--uts", "sh", "-c", f"hostname {node} && exec slurmd -D -N {node}")
    wait_for("the nodes", lambda: nodes_idle(len(nodes)))


def start(name: str, *command: str, user: str | None = None) -> None:
    with open(f"/var/log/{name}.out", "w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=user, group=user,
            extra_groups=[] if user else None, start_new_session=True,
        )  # fmt: skip
    daemons[name] = process
    pids = {name: process.pid for name, process in daemons.items()}
    Path("/run/daemons.json").write_text(json.dumps(pids))


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        for name, process in daemons.items():
            if process.poll() is not None:
                raise OSError(f"{name} ended with exit code {process.returncode}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come up within {seconds:.0f} seconds")
        time.sleep(0.05)


def is_open(port: str) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(port))) == 0


def nodes_idle(count: int) -> bool:
    done = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--states=idle"], capture_output=True, text=True
    )
    return len(done.stdout.splitlines()) == count


if __name__ == "__main__":
    main()
