"""The cluster's configuration as a tree of files, which is laid over the machine's root.

The templates are in files/. A word between @ signs is replaced by its value.
"""

import os
import re
import shutil
from pathlib import Path

from course import bundle, hub
from course.values import change_values

HERE = Path(__file__).parent
# uid and gid of the daemons' users, as in files/etc/passwd.
SLURM, MUNGE = 901, 902


def write(layer: Path, values: dict[str, str], pip: dict[str, dict[str, str]]) -> None:
    """Write the tree into the empty folder `layer`.

    pip: pip's settings, by section and key.
    """
    for template in (HERE / "files").rglob("*"):
        if template.is_file():
            target = layer / template.relative_to(HERE / "files")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_fill(template.read_text(), values))
    commands = layer / "usr/local/bin"
    commands.mkdir(parents=True)
    (layer / "usr/local/lib").mkdir()
    for command in (HERE / "stand_ins").iterdir():
        target = commands / command.name
        target.write_text(_fill(command.read_text(), values))
        target.chmod(0o644 if target.suffix else 0o755)
    shutil.copy(hub.__file__, layer / "usr/local/lib")
    (layer / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    (layer / "etc/pip.conf").write_text(_ini(pip))
    _own(layer / "etc/slurm/slurmdbd.conf", SLURM, 0o600)
    key = layer / "etc/munge/munge.key"
    key.parent.mkdir()
    key.write_bytes(os.urandom(128))
    _own(key, MUNGE, 0o400)
    _own(key.parent, MUNGE, 0o700)


def copy_lab(lab: Path, home: Path, values: dict[str, str]) -> None:
    """Put a copy of the folder `lab` where students have it, with these course values."""
    copy = home / bundle.FOLDER
    bundle.copy_files(lab, copy)
    change_values(copy, values)


def _fill(text: str, values: dict[str, str]) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda word: values[word[1]], text)


def _ini(sections: dict[str, dict[str, str]]) -> str:
    """A configuration file. Values of several words go on several lines, as pip wants them."""
    text = ""
    for section, settings in sections.items():
        text += f"[{section}]\n"
        for key, value in settings.items():
            text += f"{key} = " + "\n    ".join(value.split()) + "\n"
    return text


def _own(path: Path, uid: int, mode: int) -> None:
    os.chown(path, uid, uid)
    path.chmod(mode)
