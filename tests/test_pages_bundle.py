"""behind-llms-lab.tar.gz, the file that students download."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from course.bundle import make_bundle
from course.scenes import LAB, ROOT


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The folder in which a student has unpacked the bundle."""
    (tmp_path / "behind-llms-lab.tar.gz").write_bytes(make_bundle())
    subprocess.run(["tar", "--extract", "--file=behind-llms-lab.tar.gz"], cwd=tmp_path, check=True)
    (tmp_path / "behind-llms-lab.tar.gz").unlink()
    return tmp_path


def test_it_is_the_same_bytes_in_another_folder_at_another_time(tmp_path):
    copy = tmp_path / "lab"
    shutil.copytree(LAB, copy)
    for file in copy.rglob("*"):
        os.utime(file, (1, 1))
    assert make_bundle(copy) == make_bundle()


def test_it_unpacks_to_the_files_of_the_lab_and_nothing_else(unpacked):
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout by Git knows which files belong to the lab")
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=LAB,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {f"behind-llms-lab/hpc_lab/{name}" for name in tracked.stdout.split()}
    assert {
        file.relative_to(unpacked).as_posix() for file in unpacked.rglob("*") if file.is_file()
    } == wanted


def test_what_playing_leaves_in_the_lab_is_not_in_it(tmp_path):
    copy = tmp_path / "lab"
    shutil.copytree(LAB, copy)
    for name in (
        "logs/x.out",
        "01_hello/logs/x.txt",
        "01_hello/__pycache__/hello.pyc",
        "workspace/venv/x.py",
    ):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).touch()
    leftovers = ("02_cancel/checkpoint-1.json", "00_setup/.workspace", "04_tinygpt/x.part")
    by_students = (
        "01_hello/mine.sbatch",
        "04_tinygpt/my-text.txt",
        "06_hf_generate/my-prompts.txt",
    )
    for name in (*leftovers, *by_students):
        (copy / name).touch()
    assert make_bundle(copy) == make_bundle()


def test_its_scripts_can_be_started_and_belong_to_nobody(tmp_path):
    file = tmp_path / "bundle.tar.gz"
    file.write_bytes(make_bundle())
    with tarfile.open(file) as bundle:
        for entry in bundle:
            source = LAB / Path(entry.name).relative_to("behind-llms-lab/hpc_lab")
            assert bool(entry.mode & 0o111) == os.access(source, os.X_OK), entry.name
            assert (entry.uid, entry.gid, entry.uname, entry.gname) == (0, 0, "", "")


def test_the_site_offers_it_with_its_checksum(site):
    bundle = (site / "behind-llms-lab.tar.gz").read_bytes()
    assert bundle == make_bundle()
    setup = (site / "setup/index.html").read_text()
    assert re.search('href="../behind-llms-lab.tar.gz"', setup)
    assert hashlib.sha256(bundle).hexdigest() in setup
