"""The cluster's own corner of the machine's cgroups, in both versions of cgroup.

In version 1 each controller has a tree of its own; those that Slurm uses are in CONTROLLERS.
In version 2 there is one tree. The corner is a folder at the top of each tree. Every process of
the cluster is in it, so it also tells which processes these are.
"""

import ctypes
import errno
import time
from collections.abc import Iterator
from pathlib import Path

from course.cluster.errors import ClusterError

TOP = Path("/sys/fs/cgroup")
CONTROLLERS = ["freezer", "memory", "devices"]
V2_CONTROLLERS = "+cpuset +cpu +memory +pids"
CLONE_NEWCGROUP = 0x02000000  # os.unshare knows it, but only since Python 3.12.


def version() -> int:
    """1 or 2, as mounted on this machine. A mixture of both counts as 1."""
    return 2 if (TOP / "cgroup.controllers").exists() else 1


def corners(name: str) -> list[Path]:
    if version() == 2:
        return [TOP / name]
    return [TOP / controller / name for controller in CONTROLLERS]


def make(name: str) -> None:
    """Make the corner. Raise ClusterError where this machine does not allow it."""
    try:
        if version() == 2:
            (TOP / "cgroup.subtree_control").write_text(V2_CONTROLLERS)
            (TOP / name / "daemons").mkdir(parents=True, exist_ok=True)
        else:
            for corner in corners(name):
                corner.mkdir(exist_ok=True)
    except OSError as error:
        raise ClusterError(
            f"This machine's cgroups cannot be used ({error}). Slurm needs them to track jobs."
        ) from error


def enter(name: str, pid: int) -> None:
    """Put the process `pid` into the corner; its children will be there, too."""
    for corner in corners(name):
        # In version 2 only a group without processes of its own can have groups inside.
        group = corner / "daemons" if version() == 2 else corner
        (group / "cgroup.procs").write_text(str(pid))


def take_for_whole(name: str) -> None:
    """Let this process, which is in the corner, take the corner for the whole tree.

    That is a cgroup namespace: its top is the group in which the process is at this moment.
    """
    top = TOP / name
    if version() == 2:
        (top / "cgroup.procs").write_text("0")  # this process
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWCGROUP) != 0:
        raise OSError(ctypes.get_errno(), "a cgroup namespace is not allowed")
    if version() == 2:
        (top / "daemons/cgroup.procs").write_text("0")
        # Where Slurm makes the groups of the jobs.
        (top / "system.slice").mkdir()
        for group in (top, top / "system.slice"):
            (group / "cgroup.subtree_control").write_text(V2_CONTROLLERS)


def processes(name: str) -> set[int]:
    """The cluster's processes, by their numbers on the machine."""
    found = set()
    for corner in corners(name):
        for folder in _deepest_first(corner):
            try:
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
            except OSError:  # A job's folder that went away meanwhile.
                continue
    return found


def thaw(name: str) -> None:
    """Let frozen processes run again: a frozen one does not even die."""
    for corner in corners(name):
        for folder in _deepest_first(corner):
            for file, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                try:
                    with (folder / file).open("r+") as state:
                        state.write(text)
                except OSError as error:
                    # Not of this version; or its folder went away, before or after the opening.
                    if error.errno not in (errno.ENOENT, errno.ENODEV):
                        raise


def remove(name: str) -> None:
    """Remove the corner and all below it. No process may be left inside."""
    deadline = time.monotonic() + 10
    for corner in corners(name):
        for folder in _deepest_first(corner):
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError as error:  # The kernel is still busy with the last process.
                    if time.monotonic() > deadline:
                        raise ClusterError(f"{folder} cannot be removed: {error}.") from error
                    time.sleep(0.02)


def _deepest_first(folder: Path) -> Iterator[Path]:
    try:
        children = [child for child in folder.iterdir() if child.is_dir()]
    except FileNotFoundError:  # A job's folder that went away meanwhile.
        return
    for child in children:
        yield from _deepest_first(child)
    yield folder
