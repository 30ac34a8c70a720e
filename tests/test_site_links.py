"""The links, ids and addresses of the built HTML."""

from pathlib import Path

import pytest

from course.audit.links import Html, dead_links, doubled_ids, foreign_loads, read_pages


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Html]:
    """The pages by their address."""
    return read_pages(site)


def test_no_published_address_is_gone(site, pages, published):
    there = set(pages) | {f"{page}#{id_}" for page, html in pages.items() for id_ in html.ids}
    there |= {f"/{path.name}" for path in site.glob("*.json")}
    assert sorted(set(published) - there) == []


def test_every_page_and_heading_is_listed_as_published(pages, published):
    headings = {
        f"{page}#{id_}"
        for page, html in pages.items()
        if not page.startswith("/embed/")  # what is embedded is linked in the story
        for id_ in html.headings
    }
    assert sorted((headings | set(pages)) - set(published) - {"/404.html"}) == [], (
        "add these to tests/addresses.txt"
    )


def test_no_id_stands_twice_on_a_page(pages):
    twice = {page: doubled_ids(html) for page, html in pages.items()}
    assert {page: ids for page, ids in twice.items() if ids} == {}


def test_no_link_is_dead(site, pages):
    dead = {page: dead_links(page, pages, site) for page in pages}
    assert {page: links for page, links in dead.items() if links} == {}


def test_nothing_is_loaded_from_another_host(pages):
    foreign = {page: foreign_loads(html) for page, html in pages.items()}
    assert {page: links for page, links in foreign.items() if links} == {}
