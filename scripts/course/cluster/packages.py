"""Slurm's Debian packages, unpacked into the checkout. Nothing is installed on the machine."""

import ast
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from course.cluster.errors import ClusterError

PACKAGES = [
    "slurm-wlm",  # slurmctld, slurmd and the client commands
    "slurmdbd",  # accounts, and what sacct shows
    "mariadb-server",  # the database of slurmdbd
    "munge",  # tells Slurm's daemons who is asking
    "python3-venv",  # for the users' environments
    "python3-pip",
]


def unpack(folder: Path, say: Callable[[str], None]) -> Path:
    """Fetch what this machine lacks of PACKAGES and unpack it. Return the tree's top.

    The tree is made anew when other packages are installed on this machine than last time,
    because it holds exactly what they lack.
    """
    tree, stamp = folder / "root", folder / "stamp"
    wanted = hashlib.sha256(" ".join(PACKAGES).encode() + _installed()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return tree
    say(f"Fetching Slurm's packages into {folder} (once)")
    _fetch(folder)
    stamp.unlink(missing_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("usr", "etc"):
        (tree / name).mkdir(parents=True)
    # The links that merge /bin, /lib and so on into /usr must be there first, or the packages'
    # folders of these names would stay beside it.
    for link in Path("/").iterdir():
        if link.is_symlink() and str(link.readlink()).startswith("usr/"):
            (tree / link.readlink()).mkdir(exist_ok=True)
            (tree / link.name).symlink_to(link.readlink())
    for archive in sorted((folder / "archives").glob("*.deb")):
        _unpack_one(archive, tree)
    _link_daemons(tree)
    stamp.write_text(wanted)
    return tree


def _installed() -> bytes:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Abbrev} ${Package}\n"]
    return subprocess.run(query, capture_output=True, check=True).stdout


def _fetch(folder: Path) -> None:
    """Download the packages, with lists and archives of our own: apt's stay as they are."""
    shutil.rmtree(folder / "archives", ignore_errors=True)
    for name in ("lists", "archives"):
        (folder / name / "partial").mkdir(parents=True, exist_ok=True)
    apt = [
        *("apt-get", "--quiet=2", "--option", f"Dir::State::lists={folder}/lists"),
        *("--option", f"Dir::Cache::archives={folder}/archives"),
        *("--option", "Dir::Cache::pkgcache=", "--option", "Dir::Cache::srcpkgcache="),
        *("--option", "Debug::NoLocking=1", "--option", "APT::Sandbox::User=root"),
    ]
    install = ["--yes", "--download-only", "--no-install-recommends", "install", *PACKAGES]
    for command in ([*apt, "update"], [*apt, *install]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ClusterError(
                f"Slurm's packages could not be fetched: {done.stderr.strip() or done.stdout}\n"
                "Is this machine online? Instead you can install them, with their services off: "
                f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
            )


def _unpack_one(archive: Path, tree: Path) -> None:
    extract = ["tar", "--extract", "--keep-directory-symlink", "--directory", tree]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as deb:
        tar = subprocess.run(extract, stdin=deb.stdout, capture_output=True, text=True)
    if deb.returncode != 0 or tar.returncode != 0:
        raise ClusterError(f"{archive} could not be unpacked: {tar.stderr.strip()}")


def _link_daemons(tree: Path) -> None:
    """Give the daemons their names. Debian's packages do so when they are installed."""
    for program in (tree / "usr/sbin").glob("*-wlm"):
        name = program.with_name(program.name.removesuffix("-wlm"))
        if not os.path.lexists(name):
            name.symlink_to(program.name)


def pip_settings(tree: Path) -> dict[str, dict[str, str]]:
    """The settings of pip that hold for whoever starts the cluster, by section and key.

    `pip config list` prints lines such as global.timeout='60' and :env:.find-links='/wheels'.
    The machine may have no pip but the unpacked one.
    """
    environment = os.environ | {"PYTHONPATH": str(tree / "usr/lib/python3/dist-packages")}
    command = ["/usr/bin/python3", "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
    settings: dict[str, dict[str, str]] = {"global": {}}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        section = "global" if section == ":env:" else section
        settings.setdefault(section, {})[key] = ast.literal_eval(value)
    return settings
