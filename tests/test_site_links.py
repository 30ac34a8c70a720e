"""The links, ids and addresses of the built HTML."""

import posixpath
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


@dataclass
class Html(HTMLParser):
    """What a page links to and what can be linked in it."""

    text: str
    ids: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)  # ids of h2 and below: the anchors to link
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)  # what the browser fetches with the page

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if "id" in given:
            self.ids.append(given["id"])
            if tag in ("h2", "h3", "h4"):
                self.headings.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("prev", "next", "canonical"):
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Html]:
    """The pages by their address."""
    return {
        "/" + path.relative_to(site).as_posix().removesuffix("index.html"): Html(
            path.read_text(encoding="utf-8")
        )
        for path in site.rglob("*.html")
    }


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
    twice = {
        page: sorted({id_ for id_ in html.ids if html.ids.count(id_) > 1})
        for page, html in pages.items()
    }
    assert {page: ids for page, ids in twice.items() if ids} == {}


def test_no_link_is_dead(site, pages):
    dead = []
    for page, html in pages.items():
        for link in html.links + html.loaded:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            address = posixpath.join(page, unquote(target.path)) if target.path else page
            address = posixpath.normpath(address) + ("/" if address.endswith("/") else "")
            address = address.replace("//", "/")
            if address in pages:
                if target.fragment and unquote(target.fragment) not in pages[address].ids:
                    dead.append(f"{page}: {link}")
            elif not (site / address.lstrip("/")).is_file():
                dead.append(f"{page}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_another_host(pages):
    foreign = [
        f"{page}: {link}"
        for page, html in pages.items()
        for link in html.loaded
        if urlsplit(link).netloc
    ]
    assert foreign == []
