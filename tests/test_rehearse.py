"""The takes, played on the practice cluster; and that each lie about them is caught."""

import shutil
import subprocess
from pathlib import Path

import pytest

from course.play import Failure, SceneRehearsal
from course.rehearse import chosen, rehearse
from course.report import digest, load_reports
from course.scenes import LAB, ROOT, SCENES, load_scenes
from course.sites import Here, Practice

ALL = [(scene, take) for scene in load_scenes() for take in scene.takes]


def test_every_take_is_played_as_told(cluster, tmp_path):
    entries, failures = rehearse(Practice(cluster), chosen(load_scenes(), []), recordings=tmp_path)
    assert not failures, "\n\n".join(failures)
    kept = load_reports()
    for scene, take in ALL:
        name = f"{scene.number}/{take.id}"
        assert name in entries
        outcome = [(entry.cluster, entry.gpu) for entry in kept.get(name, [])]
        assert (entries[name].cluster, entries[name].gpu) in outcome, f"{name}: not as reported"


@pytest.mark.parametrize(("scene", "take"), ALL, ids=lambda item: getattr(item, "id", None))
def test_the_kept_report_is_of_the_take_as_it_is_now(scene, take):
    entries = load_reports().get(f"{scene.number}/{take.id}", [])
    assert digest(scene, take) in [entry.digest for entry in entries], (
        "changed since it was played: scripts/rehearse --report"
    )


# A lie: which file is changed (of the lab or of the scenes), how, and which take is caught by it.
LIES = {
    "exec is taken out of the job script": (
        LAB / "02_cancel/sleepy.sbatch",
        ("exec python3 -u sleepy.py", "python3 -u sleepy.py"),
        "2/scancel",
    ),
    "a script's message is misspelled": (
        LAB / "03_gpu/check_gpu.py",
        ("No GPU found.", "No GPU fuond."),
        "3/line-deleted",
    ),
    "the fix leaves out mkdir": (
        SCENES / "01_hello.yaml",
        ("$ mkdir -p logs && sbatch hello.sbatch", "$ sbatch hello.sbatch"),
        "1/mkdir-first",
    ),
    "WS_DIR is not exported": (
        LAB / "00_setup/activate.sh",
        ("export WS_DIR=", "WS_DIR="),
        "0/source",
    ),
    "a job has another name": (
        LAB / "01_hello/hello.sbatch",
        ("--job-name=hello-hpc", "--job-name=hello"),
        "1/mkdir-first",
    ),
    "a stage direction claims something false": (
        SCENES / "02_cancel.yaml",
        (
            "the ST column says PD: {row: <<job1>>, shows: {ST: PD}}",
            "the ST column says PD: {row: <<job1>>, shows: {ST: R}}",
        ),
        "2/submit-again",
    ),
    "a proof claims something false": (
        SCENES / "01_hello.yaml",
        ('state: FAILED, exit: "0:53"', 'state: FAILED, exit: "1:0"'),
        "1/no-log-folder",
    ),
    "a take that works is told as one that does not": (
        SCENES / "02_cancel.yaml",
        (
            "works: true\n    title: scancel\n",
            "works: false\n    title: scancel\n    went_wrong: x\n    rule: y\n",
        ),
        "2/scancel",
    ),
    "a take that does not work is told as one that works": (
        SCENES / "03_gpu.yaml",
        (
            "works: false\n    title: one line deleted\n",
            "works: true\n    title: one line deleted\n",
        ),
        "3/line-deleted",
    ),
    "a command comes after python": (
        LAB / "04_tinygpt/train.sbatch",
        (
            'exec python -u train.py $TRAIN_OPTIONS "$@"',
            'python -u train.py $TRAIN_OPTIONS "$@"\n:',
        ),
        "4/six-heads",
    ),
    "the sweep has a task less": (
        LAB / "05_sweep/sweep.sbatch",
        ("#SBATCH --array=0-3", "#SBATCH --array=0-2"),
        "5/source-first",
    ),
}
# Trainings are played to find these, for minutes.
LONG_LIES = {
    "no early warning is asked for": (
        LAB / "04_tinygpt/train.sbatch",
        ("#SBATCH --signal=B:TERM@60\n", ""),
        "4/wider",
    ),
}


@pytest.mark.parametrize(
    "name", [*LIES, *(pytest.param(name, marks=pytest.mark.soak) for name in LONG_LIES)]
)
def test_a_lie_is_caught_in_its_take(name, cluster, tmp_path: Path):
    file, (old, new), caught = (LIES | LONG_LIES)[name]
    lab, scenes = tmp_path / "hpc_lab", tmp_path / "scenes"
    shutil.copytree(LAB, lab, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(SCENES, scenes)
    copy = (lab if file.is_relative_to(LAB) else scenes) / file.relative_to(
        LAB if file.is_relative_to(LAB) else SCENES
    )
    text = copy.read_text()
    assert old in text
    text = text.replace(old, new)
    if "one line deleted" in new:  # the rule of a take that does not work has to go with the label
        text = text.replace("    went_wrong: Deleting the `--gres` line\n", "")
        text = text.replace('    rule: "`#SBATCH` lines are orders."\n', "")
    copy.write_text(text)
    [(scene, takes)] = chosen(load_scenes(scenes), [caught])
    with SceneRehearsal(Practice(cluster, lab), scene, tmp_path) as rehearsal:
        for take in takes[:-1]:
            rehearsal.play(take)
        with pytest.raises(Failure, match=caught):
            rehearsal.play(takes[-1])


def test_update_writes_what_the_cluster_printed_into_the_scene(cluster, tmp_path: Path):
    scenes = tmp_path / "scenes"
    shutil.copytree(SCENES, scenes)
    file = scenes / "01_hello.yaml"
    told = file.read_text()
    file.write_text(told.replace("CPUs I may use    : 4   <-", "CPUs I may use    : 5   <-"))
    takes = chosen(load_scenes(scenes), ["1"])
    _, failures = rehearse(Practice(cluster), takes, update=True, recordings=tmp_path)
    assert len(failures) == 1
    assert "+CPUs I may use    : 4   <- what Slurm allocated to me" in failures[0]
    assert "CPUs I may use    : 4   <- what Slurm allocated to me\n" in file.read_text()
    assert "<<job2 = 1234568>>" in file.read_text()
    _, failures = rehearse(
        Practice(cluster), chosen(load_scenes(scenes), ["1"]), recordings=tmp_path
    )
    assert not failures


def test_update_says_so_where_it_leaves_a_line_as_it_is(cluster, tmp_path: Path):
    scenes = tmp_path / "scenes"
    shutil.copytree(SCENES, scenes)
    file = scenes / "01_hello.yaml"
    changed = file.read_text().replace("Hello from        : ((", "Hallo from        : ((")
    file.write_text(changed)
    said: list[str] = []
    takes = chosen(load_scenes(scenes), ["1"])
    rehearse(Practice(cluster), takes, said.append, update=True, recordings=tmp_path)
    assert "+Hello from" in said[-2]
    assert said[-1].startswith(f"Nothing was written into {file}: a line with a stage direction")
    assert file.read_text() == changed


def test_a_name_that_no_take_has_is_refused():
    result = subprocess.run(
        [ROOT / "scripts/rehearse", "--on", "here", "1/lunch"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert result.stderr == "There is no take '1/lunch'. lab_code/scenes/ has their names.\n"


def test_nothing_is_submitted_on_this_machines_own_slurm_without_yes():
    result = subprocess.run(
        [ROOT / "scripts/rehearse", "--on", "here", "1"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert result.stderr == "This submits the jobs of 2 takes on this machine's Slurm. Add --yes.\n"


def test_on_a_cluster_of_others_a_folder_in_the_home_serves_as_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    site = Here()
    home = tmp_path / "behind-llms-rehearsal"
    shell = subprocess.run(
        [*site.shell_command(site.user), "-c", "pwd; echo ~"], capture_output=True
    )
    assert shell.stdout.decode().split() == [str(home), str(home)]
    (home / "link").symlink_to(tmp_path / "mine")
    site.clean_home()
    assert list(home.iterdir()) == []
    assert (tmp_path / "mine").is_dir()
