"""The terminal blocks of the pages around the story: waits, job numbers, signs of trouble."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from course.scenes import LAB, SCENES, SceneError, Troubles, load_pages

PAGES = {page.name: page for page in load_pages()}
TROUBLES = [page for page in PAGES.values() if isinstance(page, Troubles)]


@pytest.fixture
def opened(context):
    context.set_default_timeout(5000)

    def open_page(path: str) -> Page:
        page = context.new_page()
        page.goto(path)
        return page

    return open_page


def typed(page: Page, command: str):
    """The command, typed exactly like this, where it first stands outside the story."""
    exactly = page.locator("code", has_text=re.compile(f"^{re.escape(command)}$"))
    return page.locator(".session .terminal__command").filter(has=exactly).first


def copied(page: Page, command: str) -> str:
    typed(page, command).locator(".copy").click()
    return page.evaluate("navigator.clipboard.readText()")


# --- Waiting ---


@pytest.mark.parametrize(
    ("path", "before", "told"),
    [
        ("/exercises/2-cancel/", "squeue --me", "(wait until squeue --me shows R for 1234570)"),
        (
            "/exercises/3-gpu/",
            "cat logs/gpu-1234574.out",
            "(wait until squeue --me no longer shows 1234574)",
        ),
    ],
)
def test_a_reader_is_told_to_wait_before_a_command_that_needs_it(opened, path, before, told):
    line = typed(opened(path), before).locator("xpath=preceding-sibling::*[1]")
    expect(line).to_have_text(f"stage direction: {told}")


def test_no_wait_is_told_where_nothing_comes_after_it(opened):
    for path in ("/exercises/6-generate/", "/trouble/"):
        last = opened(path).locator(".session .terminal__screen > :last-child")
        assert not [text for text in last.all_text_contents() if "(wait until" in text]


def test_a_job_that_a_reader_never_sees_is_not_waited_for(opened):
    """The practice cluster is filled by somebody else before a job of one's own waits."""
    page = opened("/trouble/")
    seen = page.locator(".trouble:has(#pending)").text_content()
    assert "sbatch sleepy.sbatch" in seen
    assert "wait until" not in seen


def test_the_story_tells_no_waiting(opened):
    assert "(wait until" not in opened("/story/").locator("article").text_content()


# --- Job numbers ---


def test_a_job_number_entered_where_it_is_submitted_fills_the_exercise(opened):
    page = opened("/exercises/1-hello/")
    page.get_by_label("Your job number instead of 1234568").first.fill("Submitted batch job 77")
    command = "cat logs/hello-hpc-77.out"
    assert copied(page, command) == command


def test_a_number_of_an_example_is_named_when_it_is_copied(opened):
    page = opened("/exercises/1-hello/")
    command = "cat logs/hello-hpc-1234568.out"
    assert copied(page, command) == command
    expect(page.get_by_role("status").first).to_contain_text("1234568 is the example's number")


def test_each_job_number_that_a_cure_uses_can_be_entered_beside_it(opened):
    page = opened("/trouble/")
    missing = []
    for file in TROUBLES:
        for trouble in file.troubles:
            for cure in file.cures(trouble):
                for number in {n.name: n for t in cure.terminals for n in t.typed_jobs}.values():
                    entry = page.locator(f".trouble:has(#{trouble.id})")
                    field = entry.get_by_label(f"Your job number instead of {number.shown}")
                    if not field.is_visible():
                        missing.append(f"{cure.id}: {number.shown}")
    assert missing == []


def test_a_job_number_is_the_same_in_all_fields_of_a_page(opened):
    page = opened("/trouble/")
    entry = page.locator(".trouble:has(#never-satisfied)")
    entry.get_by_label("Your job number instead of 1234572").fill("55")
    command = "sbatch --dependency=afterany:55 hello.sbatch"
    assert copied(page, command) == command


# --- What one sees of a trouble ---


def test_what_no_program_prints_is_told_in_words_and_found(opened):
    page = opened("/trouble/")
    for trouble in (one for file in TROUBLES for one in file.troubles if one.symptom):
        section = page.locator(f".trouble:has(#{trouble.id})")
        expect(section.locator(".trouble__message")).to_have_count(0)
        symptom = section.locator(".trouble__symptom").text_content()
        page.get_by_label("What does your terminal say?").fill(symptom)
        expect(page.locator(".finder__found h3").first).to_have_id(trouble.id)
        page.get_by_label("What does your terminal say?").fill("")


def test_what_other_programs_print_is_found_too(opened):
    page = opened("/trouble/")
    page.get_by_label("What does your terminal say?").fill(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    expect(page.locator(".finder__found h3").first).to_have_id("out-of-memory-on-the-gpu")


def test_a_stage_direction_is_no_message(tmp_path: Path):
    (tmp_path / "trouble").mkdir()
    text = (SCENES / "trouble/waiting.yaml").read_text()
    sign = "    symptom: The job runs, and its log is empty.\n"
    assert sign in text
    changed = text.replace(sign, "    message: |\n      the log is empty\n")
    (tmp_path / "trouble/waiting.yaml").write_text(changed)
    with pytest.raises(SceneError, match="No output shows the message: the log is empty"):
        load_pages(tmp_path)
    (tmp_path / "trouble/waiting.yaml").write_text(text.replace(sign, ""))
    with pytest.raises(SceneError, match="a trouble has a message, or a symptom"):
        load_pages(tmp_path)


# --- Names that a transcript cannot prove where the training is made smaller ---


def test_the_picture_is_fetched_from_the_folder_of_the_short_training():
    [command] = PAGES["4-tinygpt"].take("picture").commands
    asked = "from settings import *; print(results_folder(read_options()))"
    folder = subprocess.run(
        [sys.executable, "-c", asked, "--steps", "500"],
        cwd=LAB / "04_tinygpt",
        env={"WS_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert f"/tinygpt/{Path(folder).name}/loss.png" in command
