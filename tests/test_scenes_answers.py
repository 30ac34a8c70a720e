"""The kept log of lab 06 and what the story shows of it."""

from course.answers import load_answers
from course.scenes import LAB

TRAIN = (
    "A train leaves Dresden at 9:15 and arrives in Berlin at 11:05. How long does the journey take?"
)


def test_the_log_has_an_answer_to_each_prompt_of_the_lab():
    prompts = (LAB / "06_hf_generate/prompts.txt").read_text().splitlines()
    assert list(load_answers().answers) == [prompt for prompt in prompts if prompt]
    assert all(load_answers().answers.values())


def test_the_story_shows_the_answer_about_the_train_with_model_day_and_right_answer(site):
    story = (site / "story/index.html").read_text()
    log = load_answers()
    assert f"<p>{log.answers[TRAIN].splitlines()[0]}</p>" in story
    assert log.settings["model"] in story
    assert log.settings["chance"] in story
    assert "1 hour and 50 minutes" in story
