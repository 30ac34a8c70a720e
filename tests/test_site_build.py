"""scripts/build: what it writes, and that it stops where a page would not be true."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from course.scenes import load_scenes

QUOTES = [
    pytest.param(quote, id=f"{quote.file}: {quote.text}")
    for scene in load_scenes()
    for quote in scene.quotes
]


def build(checkout: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [checkout / "scripts/build"],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def test_build_writes_the_story_and_the_scene_index(checkout):
    result = build(checkout)
    assert result.returncode == 0, result.stderr
    story = (checkout / "site/story/index.html").read_text()
    assert story.count('<section class="take ') == 18
    assert story.count('<figure class="terminal"') == 20
    labels = re.findall(r'<span class="take__label">([a-z ]+)</span>', story)
    works = [take.works for scene in load_scenes() for take in scene.takes]
    legend = ["does not work", "works"]
    assert labels == legend + ["works" if work else "does not work" for work in works]
    index = json.loads((checkout / "site/scenes.json").read_text())
    assert len(index["takes"]) == 18


def test_each_address_of_the_scene_index_is_on_the_story_page(checkout):
    assert build(checkout).returncode == 0
    story = (checkout / "site/story/index.html").read_text()
    for take in json.loads((checkout / "site/scenes.json").read_text())["takes"]:
        page, anchor = take["address"].split("#")
        assert page == "/story/"
        assert f'id="{anchor}"' in story


@pytest.mark.parametrize("quote", QUOTES)
def test_a_changed_line_that_a_scene_quotes_stops_the_build(quote, checkout):
    file = checkout / "lab_code/hpc_lab" / quote.file
    lines = file.read_text().splitlines(keepends=True)
    hits = [number for number, line in enumerate(lines) if quote.text in line]
    assert hits
    for number in hits:
        lines[number] = lines[number].replace(quote.text, quote.text[:-1] + "~")
    file.write_text("".join(lines))
    result = build(checkout)
    assert result.returncode != 0
    assert quote.file in result.stderr
    assert quote.text in result.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("{{ scene(9) }}", "There is no scene 9"),
        ('{{ take(1, "lunch") }}', "Scene 1 has no take 'lunch'"),
    ],
)
def test_a_page_that_asks_for_an_unknown_scene_or_take_stops_the_build(call, message, checkout):
    page = checkout / "docs/rules.md"
    page.write_text(page.read_text() + f"\n{call}\n")
    result = build(checkout)
    assert result.returncode != 0
    line = len(page.read_text().splitlines())
    assert f"docs/rules.md:{line}: {message}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_scene_stops_the_build_with_its_file_and_line(checkout):
    scene = checkout / "lab_code/scenes/01_hello.yaml"
    scene.write_text(scene.read_text().replace("<<job1 = 1234567>>", "1234567"))
    result = build(checkout)
    assert result.returncode != 0
    assert re.search(r"lab_code/scenes/01_hello.yaml:\d+: <<job1>> was never", result.stderr)
    assert "Traceback" not in result.stderr


def test_a_wrong_course_value_stops_the_build_with_its_line(checkout):
    values = checkout / "lab_code/hpc_lab/00_setup/course.env"
    values.write_text(values.read_text().replace("ACCOUNT=", "ACCOUNT = "))
    result = build(checkout)
    assert result.returncode != 0
    assert "course.env, line " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_dead_anchor_stops_the_build(checkout):
    page = checkout / "docs/rules.md"
    page.write_text(page.read_text() + "\n[Nowhere](story.md#scene-99)\n")
    result = build(checkout)
    assert result.returncode != 0
    assert "scene-99" in result.stderr
