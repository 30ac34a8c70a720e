"""The cluster's configuration as a tree of files, which is laid over the machine's root.

The templates are in files/. A word between @ signs is replaced by its value.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# uid and gid of the daemons' users, as in files/etc/passwd.
SLURM, MUNGE = 901, 902


def write(layer: Path, values: dict[str, str], lab: Path) -> None:
    """Write the tree into the empty folder `layer`. `lab` is copied into the users' homes."""
    for template in (HERE / "files").rglob("*"):
        if template.is_file():
            target = layer / template.relative_to(HERE / "files")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_fill(template.read_text(), values))
    commands = layer / "usr/local/bin"
    commands.mkdir(parents=True)
    for command in (HERE / "stand_ins").iterdir():
        target = commands / command.name
        target.write_text(_fill(command.read_text(), values))
        target.chmod(0o755)
    (layer / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    (layer / "etc/pip.conf").write_text(_pip_configuration())
    if lab.is_dir():
        shutil.copytree(
            lab,
            layer / "etc/skel/behind-llms-lab/hpc_lab",
            ignore=shutil.ignore_patterns("__pycache__", "logs"),
        )
    _own(layer / "etc/slurm/slurmdbd.conf", SLURM, 0o600)
    key = layer / "etc/munge/munge.key"
    key.parent.mkdir()
    key.write_bytes(os.urandom(128))
    _own(key, MUNGE, 0o400)
    _own(key.parent, MUNGE, 0o700)


def _fill(text: str, values: dict[str, str]) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda word: values[word[1]], text)


def _own(path: Path, uid: int, mode: int) -> None:
    os.chown(path, uid, uid)
    path.chmod(mode)


def _pip_configuration() -> str:
    """The settings of pip that hold for whoever starts the cluster, as a configuration file.

    `pip config list` prints lines such as global.timeout='60' and :env:.find-links='/wheels'.
    """
    pip = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(pip, capture_output=True, text=True).stdout
    sections: dict[str, list[str]] = {"global": []}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        section = "global" if section == ":env:" else section
        words = ast.literal_eval(value).split()
        sections.setdefault(section, []).append(f"{key} = " + "\n    ".join(words))
    return "".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items())
