"""The kept log of lab 06 and what the story shows of it."""

from course.answers import load_answers
from course.scenes import LAB

PROMPTS = (LAB / "06_hf_generate/prompts.txt").read_text().splitlines()
TRAIN = next(prompt for prompt in PROMPTS if prompt.startswith("A train"))


def test_the_log_has_an_answer_to_each_prompt_of_the_lab():
    assert list(load_answers().answers) == [prompt for prompt in PROMPTS if prompt]
    assert all(load_answers().answers.values())


def test_the_story_shows_the_answer_about_the_train_with_model_day_and_right_answer(site):
    story = (site / "story/index.html").read_text()
    log = load_answers()
    assert f"<p>{log.answers[TRAIN].splitlines()[0]}</p>" in story
    assert log.settings["model"] in story
    assert log.settings["chance"] in story
    assert "1 hour and 50 minutes" in story
