"""The takes, played on the practice cluster; and that each lie about them is caught."""

import shutil
from pathlib import Path

import pytest

from course.cluster import Cluster
from course.play import Failure, SceneRehearsal
from course.rehearse import chosen, is_written, rehearse
from course.report import digest, load_reports
from course.scenes import LAB, SCENES, load_scenes
from course.sites import Practice

ALL = [(scene, take) for scene in load_scenes() if is_written(scene) for take in scene.takes]


@pytest.fixture(scope="module")
def cluster(root):
    """A fresh practice cluster; it is stopped at the end."""
    practice = Cluster()
    practice.stop()
    practice.start()
    yield practice
    practice.stop()


def test_every_take_is_played_as_told(cluster, tmp_path):
    entries, failures = rehearse(Practice(), chosen(load_scenes(), []), recordings=tmp_path)
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
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_caught_in_its_take(name, cluster, tmp_path: Path):
    file, (old, new), caught = LIES[name]
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
    with SceneRehearsal(Practice(lab), scene, tmp_path) as rehearsal:
        for take in takes[:-1]:
            rehearsal.play(take)
        with pytest.raises(Failure, match=caught):
            rehearsal.play(takes[-1])
