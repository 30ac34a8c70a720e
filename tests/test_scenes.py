"""The scenes' files: what they hold, and that a wrong one is refused with its line."""

import json
import re
import shutil
from pathlib import Path

import pytest

from course.macros import scene_index
from course.scenes import LAB, ROOT, SCENES, SceneError, load_scenes
from course.values import load_values

# Who tries what, scene by scene, and whether it works, as the story tells it.
TAKES = [
    (0, "Martin", False),
    (0, "Marie", True),
    (0, "Marie", False),
    (0, "Marie", True),
    (1, "Martin", False),
    (1, "Marie", True),
    (2, "Marie", False),
    (2, "Marie", True),
    (2, "Martin", False),
    (2, "Martin", True),
    (3, "Martin", False),
    (3, "Marie", True),
    (4, "Martin", False),
    (4, "Marie", True),
    (5, "Marie", False),
    (5, "Marie", True),
    (6, "Martin", False),
    (6, "Marie", True),
]


def test_the_takes_are_those_of_the_story_in_its_order():
    takes = [
        (scene.number, take.who, take.works) for scene in load_scenes() for take in scene.takes
    ]
    assert takes == TAKES


def test_the_scenes_show_20_terminals():
    terminals = [t for scene in load_scenes() for take in scene.takes for t in take.terminals]
    assert len(terminals) == 20


def test_the_scene_index_has_the_42_commands_of_the_story():
    index = scene_index(load_scenes())
    commands = [command for take in index["takes"] for command in take["commands"]]
    assert commands == (ROOT / "tests/story_commands.txt").read_text().splitlines()


def test_the_closing_table_has_10_rows():
    rows = [
        row
        for scene in load_scenes()
        for row in [*(t for t in scene.takes if not t.works), *scene.also_learned]
    ]
    assert len(rows) == 10


def test_each_scene_has_the_name_of_its_lab_and_is_numbered_by_it():
    assert [(scene.number, scene.lab) for scene in load_scenes()] == [
        (0, "00_setup"),
        (1, "01_hello"),
        (2, "02_cancel"),
        (3, "03_gpu"),
        (4, "04_tinygpt"),
        (5, "05_sweep"),
        (6, "06_hf_generate"),
    ]


def test_changed_course_values_change_the_commands():
    values = load_values(LAB / "00_setup/course.env") | {"ACCOUNT": "p_other"}
    index = json.dumps(scene_index(load_scenes(values=values)))
    assert "--account=p_other" in index
    assert "p_lv_llmsecrets" not in index


# Each wrong file: what is replaced in which scene, by what; and what the refusal says, at the
# line of the replacement (0: on another line).
WRONG = {
    "not YAML": ("01_hello", "title: The first job", "title: a: b", "not YAML"),
    "unknown key": ("01_hello", "remember: >", "forget: >", "remember: Field required"),
    "key twice": ("01_hello", "title: The first job", "title: A\ntitle: B", "stands twice"),
    "two takes of one name": ("01_hello", "id: mkdir-first", "id: no-log-folder", "two takes"),
    "after an unknown take": (
        "01_hello",
        "after: no-log-folder",
        "after: lunch",
        "no earlier take",
    ),
    "no prompt": (
        "01_hello",
        "$ cd ~/behind-llms-lab/hpc_lab/01_hello\n",
        "cd ~/behind-llms-lab/hpc_lab/01_hello\n",
        "Output before any command",
    ),
    "prompt without a blank": ("01_hello", "$ squeue --me", "$squeue --me", "A prompt is '$'"),
    "placeholder never captured": (
        "01_hello",
        "Submitted batch job <<job1 = 1234567>>",
        "Submitted batch job 1234567",
        "<<job1>> was never captured",
    ),
    "placeholder captured twice": (
        "01_hello",
        "Submitted batch job <<job2 = 1234568>>",
        "Submitted batch job <<job1 = 1234568>>",
        "<<job1>> is captured twice",
    ),
    "unknown course value": (
        "00_setup",
        "--account=<<ACCOUNT>>",
        "--account=<<ACOUNT>>",
        "<<ACOUNT>> is no course value. There are: LOGIN, ACCOUNT",
    ),
    "unknown course value in prose": (
        "01_hello",
        "Exercise 1 is a single command.",
        "Exercise 1 is on <<CLUSTR>>.",
        "<<CLUSTR>> is no course value",
    ),
    "captured number in prose": (
        "01_hello",
        "had exactly the 4 cores",
        "had in <<job2>> exactly the 4 cores",
        "<<job2>> is known in transcripts only",
    ),
    "stage direction without a proof": (
        "01_hello",
        "((no job. It is already gone.))",
        "((no job. It has vanished.))",
        "The stage direction 'no job. It has vanished.' has no proof",
    ),
    "proof without a stage direction": (
        "01_hello",
        "          ((no job. It is already gone.))\n",
        "",
        "No stage direction '((no job. It is already gone.))'",
    ),
    "proof of no kind": (
        "01_hello",
        "{command: test ! -e logs}",
        "{command: test ! -e logs, exit: 1}",
        "a proof is one of",
    ),
    "take that goes on from one whose files are gone": (
        "00_setup",
        "after: bash-not-source",
        "after: pip-in-home",
        "'source' goes on from 'pip-in-home', but 'bash-not-source' between them starts anew",
    ),
    "name in the file given twice": (
        "01_hello",
        "goal: *log-there",
        "goal: &log-there test -e logs",
        "'&log-there' stands twice. Write '*log-there' to repeat",
    ),
    "failing take without a rule": (
        "01_hello",
        'rule: "`mkdir -p logs` before `sbatch`."',
        'rule: ""',
        "went_wrong and rule belong",
    ),
    "quote that is not shown": (
        "03_gpu",
        '- {file: 03_gpu/gpu.sbatch, text: "#SBATCH --gres=gpu:1"}',
        '- {file: 03_gpu/gpu.sbatch, text: "#SBATCH --nodes=1"}',
        "does not show what it quotes",
    ),
    "quote of a file that is not there": (
        "03_gpu",
        "- {file: 03_gpu/gpu.sbatch,",
        "- {file: 03_gpu/cpu.sbatch,",
        "there is no such file",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_its_name_and_line(name, tmp_path: Path):
    lab, old, new, message = WRONG[name]
    folder = tmp_path / "scenes"
    shutil.copytree(SCENES, folder)
    path = folder / f"{lab}.yaml"
    text = path.read_text()
    assert text.count(old) == 1, "the replacement of this test must hit one place"
    path.write_text(text.replace(old, new))
    with pytest.raises(SceneError) as refused:
        load_scenes(folder)
    assert re.match(rf"{re.escape(str(path))}:[1-9]\d*: ", str(refused.value))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "name", ["no prompt", "unknown course value", "stage direction without a proof"]
)
def test_the_refusal_names_the_very_line_of_a_transcript(name, tmp_path: Path):
    lab, old, new, _ = WRONG[name]
    folder = tmp_path / "scenes"
    shutil.copytree(SCENES, folder)
    path = folder / f"{lab}.yaml"
    text = path.read_text()
    line = text[: text.index(old)].count("\n") + 1
    path.write_text(text.replace(old, new))
    with pytest.raises(SceneError, match=rf":{line}: "):
        load_scenes(folder)
