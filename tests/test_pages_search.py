"""The site's search finds what beginners look for, and tells where it stands."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

WANTED = {
    "PD": {"/trouble/#pending", "/exercises/2-cancel/#submit"},
    "gres": {"/trouble/#no-gpu", "/trouble/#too-many-gpus", "/exercises/3-gpu/#script"},
    "cancel": {"/exercises/2-cancel/#cancel", "/trouble/#canceled"},
    "quota": {"/trouble/#home-full"},
    "no log": {"/trouble/#no-log-folder"},
}


def search(page, words):
    page.goto("/")
    page.get_by_placeholder("Search").press_sequentially(words)
    expect(page.locator(".md-search-result__link").first).to_be_visible()


@pytest.mark.parametrize("words", WANTED)
def test_the_right_section_is_among_the_first_three(context, words):
    page = context.new_page()
    search(page, words)
    links = page.locator(".md-search-result__link:visible")
    expect(links.nth(2)).to_be_visible()
    found = [urlsplit(link.get_attribute("href")) for link in links.all()[:3]]
    found = [f"{url.path}#{url.fragment}" for url in found]
    assert set(found) & WANTED[words], found


def test_story_exercises_and_troubles_can_be_told_apart(context):
    page = context.new_page()
    search(page, "cancel")
    titles = page.locator(".md-search-result__item > a h1").all_inner_texts()
    assert {"Trouble", "The story of Marie and Martin"} <= set(titles)
    assert any(title.startswith("Exercise 2") for title in titles)
