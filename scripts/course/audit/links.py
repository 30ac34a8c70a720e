"""The links, ids and addresses of the built HTML."""

import posixpath
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


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
        elif "src" in given or "data-src" in given:  # a script that waits until it is needed
            self.loaded.append(given.get("src") or given["data-src"])


def read_pages(site: Path) -> dict[str, Html]:
    """The pages of a built site, by their address."""
    return {
        "/" + path.relative_to(site).as_posix().removesuffix("index.html"): Html(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(site.rglob("*.html"))
    }


def doubled_ids(html: Html) -> list[str]:
    """Ids that stand more than once on a page."""
    return sorted({id_ for id_ in html.ids if html.ids.count(id_) > 1})


def dead_links(page: str, pages: dict[str, Html], site: Path) -> list[str]:
    """What a page links to or loads, and is not there. Other sites are not asked."""
    dead = []
    for link in pages[page].links + pages[page].loaded:
        target = urlsplit(link)
        if target.scheme or target.netloc:
            continue
        address = posixpath.join(page, unquote(target.path)) if target.path else page
        address = posixpath.normpath(address) + ("/" if address.endswith("/") else "")
        address = address.replace("//", "/")
        if address in pages:
            if target.fragment and unquote(target.fragment) not in pages[address].ids:
                dead.append(link)
        elif not (site / address.lstrip("/")).is_file():
            dead.append(link)
    return dead


def foreign_loads(html: Html) -> list[str]:
    """What a page would load from another host."""
    return [link for link in html.loaded if urlsplit(link).netloc]
