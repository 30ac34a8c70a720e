"""The cluster's own corner of the machine's cgroups, in both versions of cgroup.

In version 1 each controller has a tree of its own; those that Slurm uses are in CONTROLLERS.
In version 2 there is one tree. The corner is a folder at the top of each tree. Every process of
the cluster is in it, so it also tells which processes these are.
"""

import time
from collections.abc import Iterator
from pathlib import Path

TOP = Path("/sys/fs/cgroup")
CONTROLLERS = ["freezer", "memory", "devices"]


class CgroupError(Exception):
    """The machine's cgroups cannot be used. The message says why."""


def version() -> int:
    """1 or 2, as mounted on this machine. A mixture of both counts as 1."""
    return 2 if (TOP / "cgroup.controllers").exists() else 1


def corners(name: str) -> list[Path]:
    if version() == 2:
        return [TOP / name]
    return [TOP / controller / name for controller in CONTROLLERS]


def enter(name: str, pid: int) -> None:
    """Make the corner and put the process `pid` into it."""
    if version() == 2:
        _write(TOP / "cgroup.subtree_control", "+cpuset +cpu +memory +pids")
    for corner in corners(name):
        if not corner.parent.is_dir():
            raise CgroupError(f"The cgroup controller {corner.parent} is not there.")
        corner.mkdir(exist_ok=True)
        _write(corner / "cgroup.procs", str(pid))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise CgroupError(f"This machine's cgroups cannot be used: {error}.") from error


def processes(name: str) -> set[int]:
    """The cluster's processes, by their numbers on the machine."""
    found = set()
    for corner in corners(name):
        for folder in _deepest_first(corner):
            try:
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
            except FileNotFoundError:  # A job's folder that went away meanwhile.
                continue
    return found


def thaw(name: str) -> None:
    """Let frozen processes run again: a frozen one does not even die."""
    for corner in corners(name):
        for folder in _deepest_first(corner):
            for file, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                if (folder / file).exists():
                    (folder / file).write_text(text)


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
                        raise CgroupError(f"{folder} cannot be removed: {error}.") from error
                    time.sleep(0.02)


def _deepest_first(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for child in list(folder.iterdir()):
        if child.is_dir():
            yield from _deepest_first(child)
    yield folder
