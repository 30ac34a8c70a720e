"""What all tools say of each page, and whether that is within the page's budget."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from course.audit.browser import Seen, look_at_all
from course.audit.links import dead_links, doubled_ids, foreign_loads, read_pages
from course.audit.markup import check_markup

WORKERS = 2
SHIFT = 0.01  # what may move, as the part of the window times how far


@dataclass(frozen=True)
class Budget:
    """What a page may weigh, compressed, in kB (1000 bytes)."""

    first: float  # with an empty cache
    following: float  # when another page of the site was read before


def budget(page: str) -> Budget:
    if page == "/story/":
        return Budget(75, 15)  # all scenes on one page
    if page == "/exercises/4-tinygpt/":
        return Budget(60, 15)  # with the whole text of the two programs that one reads there
    if page == "/trouble/":
        return Budget(60, 23)  # all messages on one page, to be searched without a server
    if page == "/teach/":
        return Budget(60, 14)  # with a list of all addresses, to copy
    if page.startswith("/model/"):
        return Budget(180, 140)  # each has its own program and data, before it is touched
    return Budget(60, 12)


def is_printed(page: str) -> bool:
    return page in ("/story/", "/rules/", "/setup/") or page.startswith("/exercises/")


@dataclass
class Row:
    """One page of the table."""

    page: str
    seen: Seen
    markup: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def problems(self) -> Iterator[str]:
        """What is not as it has to be, in sentences."""
        allowed = budget(self.page)
        for bytes_, limit, when in (
            (self.seen.first, allowed.first, "first"),
            (self.seen.following, allowed.following, "as the next page"),
        ):
            if bytes_ > limit * 1000:
                yield f"it weighs {bytes_ / 1000:.1f} kB {when}, and may have {limit:g}"
        if self.seen.shift > SHIFT:
            yield f"it moves while it loads: {self.seen.shift:.3f}"
        yield from (f"it asks another host: {url}" for url in self.seen.foreign)
        yield from (f"the browser says: {text}" for text in self.seen.errors)
        yield from (f"axe: {text}" for text in self.seen.axe)
        yield from (f"HTML: {text}" for text in self.markup)
        yield from (f"dead or doubled: {text}" for text in self.links)
        yield from (f"cut on paper, {text}" for text in self.seen.cut)

    def cells(self) -> list[str]:
        allowed = budget(self.page)
        return [
            self.page,
            f"{self.seen.first / 1000:.1f} of {allowed.first:g}",
            f"{self.seen.following / 1000:.1f} of {allowed.following:g}",
            str(self.seen.requests),
            f"{self.seen.shift:.3f}",
            str(len(self.seen.axe)),
            str(len(self.markup)),
            str(len(self.links)),
            f"{len(self.seen.cut)} on {self.seen.sheets}" if is_printed(self.page) else "",
        ]


def audit(site: Path) -> list[Row]:
    """Look at all pages of a built site."""
    pages = read_pages(site)
    shown = [page for page in pages if not page.startswith("/s/")]  # these lead away at once
    # Spawned: a fork would copy the locks of the thread that waits for the HTML checker.
    workers = ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn"))
    with ThreadPoolExecutor() as threads, workers as processes:
        checking = threads.submit(check_markup, site)
        looking: list[Future[dict[str, Seen]]] = [
            processes.submit(look_at_all, site, {page: is_printed(page) for page in part})
            for part in (shown[start::WORKERS] for start in range(WORKERS))
        ]
        seen = {page: found for future in looking for page, found in future.result().items()}
        errors = checking.result()
    rows = []
    for page in shown:
        html = pages[page]
        seen[page].foreign += foreign_loads(html)
        links = dead_links(page, pages, site) + doubled_ids(html)
        rows.append(Row(page, seen[page], errors.pop(page, []), links))
    for page, messages in errors.items():
        rows.append(Row(page, Seen(), messages))
    return rows
