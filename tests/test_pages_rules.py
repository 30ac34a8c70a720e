"""The sheet of rules: from the scenes, on one page of paper."""

import re

from course.scenes import load_scenes


def test_it_fits_on_one_page_of_a4(context):
    page = context.new_page()
    page.goto("/rules/")
    pdf = page.pdf(
        format="A4", margin={side: "12mm" for side in ("top", "right", "bottom", "left")}
    )
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_it_has_every_remember_and_twelve_commands_of_the_story(context):
    page = context.new_page()
    page.goto("/rules/")
    typed = [
        command for scene in load_scenes() for take in scene.takes for command in take.commands
    ]
    commands = page.locator(".sheet td:first-child code").all_inner_texts()
    assert len(commands) == 12
    assert set(commands) <= set(typed)
    text = page.locator(".sheet").inner_text()
    for scene in load_scenes():
        first_words = re.split(r"[`*]", scene.remember)[0].strip()
        assert scene.title in text
        assert first_words in text
