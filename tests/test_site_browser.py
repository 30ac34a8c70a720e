"""What a reader sees and does, in a real browser."""

import json
import re

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

SCENES = range(7)


@pytest.fixture(scope="module")
def takes(site) -> list[dict]:
    return json.loads((site / "scenes.json").read_text(encoding="utf-8"))["takes"]


def block(page: Page, take: dict) -> Locator:
    """The section of a take on the story page."""
    return page.locator("section.take", has=page.locator(f"[id='{take['address'].split('#')[1]}']"))


def clipboard(page: Page) -> str:
    return page.evaluate("navigator.clipboard.readText()")


def copied_by(buttons: Locator) -> list[str]:
    """What each of these buttons puts on the clipboard."""
    texts = []
    for button in buttons.all():
        button.click()
        expect(button).to_have_text("Copied")
        texts.append(clipboard(button.page))
    return texts


@pytest.mark.parametrize("scene", SCENES)
def test_each_button_copies_exactly_its_command(story, takes, scene):
    working = [take for take in takes if take["scene"] == scene and take["works"]]
    assert working
    for take in working:
        assert copied_by(block(story, take).locator(".terminal .copy")) == take["commands"]


def test_the_start_of_a_take_is_copied_as_it_stands(story, takes):
    starts = [take for take in takes if take["works"] and take["start"]]
    assert starts
    for take in starts:
        assert copied_by(block(story, take).locator(".take__start .copy")) == [take["start"]]


def test_a_failing_take_has_no_button(story, takes):
    failing = [take for take in takes if not take["works"]]
    assert failing
    for take in failing:
        assert block(story, take).locator(".terminal").count() > 0
        assert block(story, take).locator("button").count() == 0


def test_every_button_has_its_own_accessible_name(story):
    names = re.findall(r"button (.*?):?$", story.locator("body").aria_snapshot(), re.MULTILINE)
    # Each placeholder is a button, too. Those of one name do the same.
    placeholders = {f'"{name}"' for name in story.locator(".value").all_inner_texts()}
    names = [name for name in names if name not in placeholders]
    assert len(names) > 30
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_a_copy_by_keyboard_is_said_and_keeps_the_focus(story):
    button = story.get_by_role("button", name="squeue --me --start")
    button.press("Enter")
    expect(button).to_have_text("Copied")
    expect(story.get_by_role("status")).to_have_text("Copied: squeue --me --start")
    expect(button).to_be_focused()
    assert clipboard(story) == "squeue --me --start"
    expect(button).to_have_text("Copy")
    expect(story.get_by_role("status")).to_be_empty()


@pytest.fixture
def insecure_story(context: BrowserContext, site_url: str) -> Page:
    """The story over plain http from another machine: browsers offer no clipboard there."""
    page = context.new_page()
    page.goto(site_url.replace("127.0.0.1", "course.test") + "/story/")
    assert page.evaluate("navigator.clipboard === undefined")
    return page


def test_copying_works_without_a_clipboard_of_the_browser(insecure_story, story, takes):
    take = next(take for take in takes if take["id"] == "srun-and-source")
    buttons = block(insecure_story, take).locator(".terminal .copy")
    for button, command in zip(buttons.all(), take["commands"], strict=True):
        insecure_story.bring_to_front()
        button.press("Enter")
        expect(button).to_have_text("Copied")
        expect(button).to_be_focused()
        story.bring_to_front()
        assert clipboard(story) == command


def test_a_copy_that_fails_is_said_and_the_command_is_selected(insecure_story):
    insecure_story.evaluate("document.execCommand = () => false")
    button = insecure_story.get_by_role("button", name="squeue --me --start")
    button.click()
    status = insecure_story.get_by_role("status")
    expect(status).to_contain_text("Select it and copy by hand")
    expect(status).to_be_in_viewport()
    assert insecure_story.evaluate("getSelection().toString()") == "squeue --me --start"


def test_on_the_next_page_and_back_again_the_buttons_still_copy(context, site_url, page_addresses):
    # A theme may exchange pages without loading them anew, and then no script runs on the next one.
    # This one would do so with what is listed here, once its script is there: after a search.
    listed = "".join(f"<url><loc>{site_url}{address}</loc></url>" for address in page_addresses)
    context.route("**/sitemap.xml", lambda route: route.fulfill(body=f"<urlset>{listed}</urlset>"))
    page = context.new_page()
    page.goto("/story/")
    page.get_by_placeholder("Search").press_sequentially("sbatch")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Exercise 2").first.click()
    page.wait_for_url("**/exercises/2-cancel/")
    button = page.get_by_role("button", name="squeue --me --start").first
    button.click()
    expect(button).to_have_text("Copied")
    page.go_back()
    page.wait_for_url("**/story/")
    button.click()
    expect(button).to_have_text("Copied")


def test_without_javascript_all_text_is_there_and_no_button(browser, site_url, takes):
    context = browser.new_context(base_url=site_url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/story/")
    for take in takes:
        typed = block(page, take).locator(".terminal code")
        assert [code.inner_text() for code in typed.all()] == take["commands"]
        for line in block(page, take).locator(".terminal__screen > *").all():
            expect(line).to_be_visible()
    expect(page.locator("article button:visible")).to_have_count(0)
    context.close()


def test_no_page_asks_another_host(context, site_url, page_addresses):
    asked = set()
    context.on("request", lambda request: asked.add(request.url))
    page = context.new_page()
    for address in page_addresses:
        page.goto(address, wait_until="networkidle")
    page.get_by_placeholder("Search").press_sequentially("sbatch")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    assert len(asked) > len(page_addresses)
    assert [url for url in asked if not url.startswith((site_url + "/", "data:"))] == []


# What sticks out to the right: a scroll bar of the page, or text cut off at its edge.
STICKING_OUT = """width => [document.documentElement, ...document.querySelectorAll("article *")]
    // A listing of a file scrolls by itself: its lines keep their breaks.
    .filter(element => !element.closest(".reader-only, .headerlink, .highlight code"))
    .filter(element => element.getBoundingClientRect().right > width + 0.5
        || (element === document.documentElement && element.scrollWidth > width))
    .map(element => element.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("width", [320, 360, 1280])
def test_no_page_scrolls_sideways(browser, site_url, page_addresses, width):
    context = browser.new_context(
        base_url=site_url, viewport={"width": width, "height": 800}, is_mobile=width < 1000
    )
    page = context.new_page()
    for address in page_addresses:
        page.goto(address)
        assert page.evaluate(STICKING_OUT, width) == [], address
    context.close()


def test_our_fonts_are_loaded(story):
    loaded = story.evaluate(
        """document.fonts.ready.then(fonts => [...fonts]
            .filter(font => font.family.includes("Open Sans") && font.status === "loaded")
            .map(font => font.weight))"""
    )
    assert {"400", "600"} <= set(loaded)
