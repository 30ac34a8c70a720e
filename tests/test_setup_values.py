"""The course values: read, changed by one command, and the same in every job script."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from course.values import (
    COURSE_ENV,
    LAB,
    SBATCH_OPTIONS,
    ValuesError,
    carry_values,
    change_values,
    load_values,
)

SCRIPTS = sorted(LAB.rglob("*.sbatch"))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab folder with the real course.env and one job script."""
    (tmp_path / COURSE_ENV).parent.mkdir()
    shutil.copy(LAB / COURSE_ENV, tmp_path / COURSE_ENV)
    (tmp_path / "01_hello").mkdir()
    (tmp_path / "01_hello" / "hello.sbatch").write_text(
        "#!/bin/bash\n#SBATCH --account=p_old   # who pays\n#SBATCH --time=00:05:00\n"
        "echo '#SBATCH --account=p_old'\n"
    )
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shell_reads_the_same_values_as_python(shell: str) -> None:
    values = load_values(LAB / COURSE_ENV)
    script = f". {LAB / COURSE_ENV}; " + "; ".join(f'printf "%s\\0" "${key}"' for key in values)
    printed = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
    assert printed.stdout.split("\0")[:-1] == list(values.values())


def test_every_value_is_explained() -> None:
    before = ""
    for line in (LAB / COURSE_ENV).read_text().splitlines():
        if re.match(r"[A-Z_]+=", line):
            assert before.startswith("#") or before.startswith("MODEL="), f"no comment: {line}"
        before = line


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_job_script_agrees_with_course_env(script: Path) -> None:
    values = load_values(LAB / COURSE_ENV)
    for option, key in SBATCH_OPTIONS.items():
        found = re.findall(rf"^#SBATCH --{option}=(\S+)", script.read_text(), re.MULTILINE)
        assert found == [values[key]], "run scripts/set-values"


def test_changed_value_reaches_the_job_scripts(lab: Path) -> None:
    change_values(lab, {"ACCOUNT": "p_lv_other"})
    assert [path.name for path in carry_values(lab)] == ["hello.sbatch"]
    script = (lab / "01_hello" / "hello.sbatch").read_text()
    assert script == (
        "#!/bin/bash\n#SBATCH --account=p_lv_other   # who pays\n#SBATCH --time=00:05:00\n"
        "echo '#SBATCH --account=p_old'\n"
    )
    assert carry_values(lab) == []


def test_changing_a_value_keeps_the_rest_of_the_file(lab: Path) -> None:
    old = (LAB / COURSE_ENV).read_text()
    change_values(lab, {"TRAIN_OPTIONS": "--max-steps 500", "MODULES": ""})
    assert load_values(lab / COURSE_ENV)["TRAIN_OPTIONS"] == "--max-steps 500"
    change_values(lab, load_values(LAB / COURSE_ENV))
    assert (lab / COURSE_ENV).read_text() == old


@pytest.mark.parametrize(
    "line", ["ACCOUNT = p_x", "ACCOUNT=two words", "ACCOUNT='p_x", "ACCOUNT=p_x\r", "ACCOUNT=$HOME"]
)
def test_wrong_line_is_named_with_file_and_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "course.env"
    file.write_text(f"# a comment\n{line}\n", newline="")
    with pytest.raises(ValuesError, match=r"course\.env, line 2: .*ACCOUNT"):
        load_values(file)


def test_key_twice_is_named(tmp_path: Path) -> None:
    file = tmp_path / "course.env"
    file.write_text("ACCOUNT=a\nACCOUNT=b\n")
    with pytest.raises(ValuesError, match="line 2: ACCOUNT is here twice"):
        load_values(file)


@pytest.mark.parametrize(("key", "value"), [("ACOUNT", "p_x"), ("ACCOUNT", "it's"), ("", "x")])
def test_wrong_change_leaves_the_file_alone(lab: Path, key: str, value: str) -> None:
    with pytest.raises(ValuesError):
        change_values(lab, {key: value})
    assert (lab / COURSE_ENV).read_text() == (LAB / COURSE_ENV).read_text()
