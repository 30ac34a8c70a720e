"""The bundle, behind-llms-lab.tar.gz: what students download, the lab's files and nothing else.

It is the same bytes wherever and whenever it is made from the same files: no dates, no owners, and
the files in the order of their names.
"""

import gzip
import io
import re
import shutil
import tarfile
from pathlib import Path

from course.values import LAB

NAME = "behind-llms-lab.tar.gz"
FOLDER = "behind-llms-lab/hpc_lab"  # what it unpacks to
# What belongs to the lab. Logs, checkpoints and caches, which playing leaves, have other endings.
ENDINGS = (".env", ".md", ".py", ".sbatch", ".sh", ".txt")
# What the exercises let students write: mine.sbatch, my-text.txt, my-prompts.txt.
OF_STUDENTS = re.compile(r"mine\.|my-")


def lab_folders(lab: Path = LAB) -> list[Path]:
    """The labs, 00_setup and so on. A workspace may be beside them, with all its packages."""
    return sorted(lab.glob("[0-9][0-9]_*"))


def lab_files(lab: Path = LAB) -> list[Path]:
    """The files that students get, in the order of their names."""
    return sorted(
        file
        for folder in lab_folders(lab)
        for file in folder.rglob("*")
        if file.is_file()
        and file.suffix in ENDINGS
        and not OF_STUDENTS.match(file.name)
        and not {"logs", "runs"} & set(file.relative_to(lab).parts)
    )


def copy_files(lab: Path, target: Path) -> None:
    """Copy the files that students get into a folder."""
    for file in lab_files(lab):
        copy = target / file.relative_to(lab)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


def make_bundle(lab: Path = LAB) -> bytes:
    """The bundle's content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in lab_files(lab):
            entry = tarfile.TarInfo(f"{FOLDER}/{file.relative_to(lab).as_posix()}")
            content = file.read_bytes()
            entry.size = len(content)
            entry.mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), compresslevel=9, mtime=0)
