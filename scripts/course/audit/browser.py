"""What a browser loads and shows of a page: weight, requests, shifts, accessibility, print."""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import axe_playwright_python
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from course.audit.server import Server, serving

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDTHS = (320, 1280)
SCHEMES = ("light", "dark")
BEFORE = ("/", "/machines/")  # what a reader has read before, the first that is not the page itself
# A telephone's connection: what moves while a page loads does so where the parts come one by one.
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 90_000}

# The theme leaves 25 mm at each edge of the paper; what is nearer, by more than 1 mm, is cut.
MARGIN = 24 * 72 / 25.4

SHIFTS = """() => new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => {
        for (const shift of list.getEntries()) sum += shift.value;
    }).observe({type: "layout-shift", buffered: true});
    setTimeout(() => done(sum), 50);
})"""


# The texts of the terminals as one sees them.
SHOWN = """() => [...document.querySelectorAll(".terminal code, .terminal__output")].map(part => {
    const copy = part.cloneNode(true);
    for (const heard of copy.querySelectorAll(".reader-only")) heard.remove();
    return copy.textContent;
})"""


@dataclass
class Seen:
    """What a browser saw of one page."""

    first: int = 0  # bytes, with an empty cache
    following: int = 0  # bytes, after another page of the site
    requests: int = 0
    shift: float = 0.0  # cumulative layout shift
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # what the browser's console says
    axe: list[str] = field(default_factory=list)
    sheets: int = 0  # of paper
    cut: list[str] = field(default_factory=list)  # lines cut on paper


def launch(playwright: Playwright) -> Browser:
    """Debian's Chromium, without a window."""
    flags = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    return playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)


def look_at_all(site: Path, pages: dict[str, bool]) -> dict[str, Seen]:
    """Look at these pages of a built site. The values say which are meant to be printed."""
    with serving(site) as server, sync_playwright() as playwright:
        browser = launch(playwright)
        seen = {}
        for page, prints in pages.items():
            other = next(address for address in BEFORE if address != page)
            if page in BEFORE or not seen:
                reader = _reader(browser)
                reader.goto(server.address + other)
                reader.evaluate("document.fonts.ready")
            seen[page] = look(browser, server, reader, page, prints)
        browser.close()
    return seen


def look(browser: Browser, server: Server, reader: Page, address: str, prints: bool) -> Seen:
    """Look at a page, such as "/story/": as a newcomer with a phone, and as `reader`.

    `prints`: whether the page is meant to be printed.
    """
    seen = Seen()
    _meet(browser, server, address, seen)
    server.sent.clear()
    reader.goto(server.address + address)
    reader.evaluate("document.fonts.ready")
    seen.following = sum(size for _, size in server.sent)
    for width in WIDTHS:
        reader.set_viewport_size({"width": width, "height": 800})
        for scheme in SCHEMES:
            reader.emulate_media(color_scheme=scheme)
            seen.axe += [f"{finding} ({scheme}, {width} px)" for finding in run_axe(reader)]
    if prints:
        seen.sheets, seen.cut = print_page(reader)
    return seen


def _reader(browser: Browser) -> Page:
    """Somebody who reads on. Without motion: axe has to see colors that do not change."""
    return browser.new_context(reduced_motion="reduce").new_page()


def _meet(browser: Browser, server: Server, address: str, seen: Seen) -> None:
    """Load a page over a slow line, with nothing kept from before."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True)
    page = context.new_page()
    page.on("console", lambda line: line.type == "error" and seen.errors.append(line.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)
    server.sent.clear()
    page.goto(server.address + address)
    page.evaluate("document.fonts.ready")
    seen.shift = page.evaluate(SHIFTS)
    seen.first, seen.requests = sum(size for _, size in server.sent), len(server.sent)
    seen.foreign = [url for url in asked if not url.startswith((f"{server.address}/", "data:"))]
    context.close()


def run_axe(page: Page) -> list[str]:
    """What axe-core finds on a page as it is shown now."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate(
        "rules => axe.run({runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})",
        RULES,
    )
    return [
        f"{rule['id']}: {node['target'][0]}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


# --- Paper -------------------------------------------------------------------------------------


def print_page(page: Page) -> tuple[int, list[str]]:
    """Print it on A4. Gives the number of sheets, and what is cut: at an edge, or left out."""
    lines = page.evaluate(SHOWN)
    with tempfile.TemporaryDirectory() as folder:
        pdf = Path(folder) / "page.pdf"
        page.pdf(path=pdf, format="A4", prefer_css_page_size=True)
        boxes, text = (_pdftotext(pdf, how) for how in ("-bbox", "-raw"))
    sheets = ElementTree.fromstring(boxes).findall(".//{http://www.w3.org/1999/xhtml}page")
    cut = []
    for number, sheet in enumerate(sheets, start=1):
        width, height = float(sheet.get("width")), float(sheet.get("height"))
        for word in sheet:
            left, top, right, bottom = (
                float(word.get(edge)) for edge in ("xMin", "yMin", "xMax", "yMax")
            )
            if left < MARGIN or top < MARGIN or right > width - MARGIN or bottom > height - MARGIN:
                cut.append(f"sheet {number}: {word.text}")
    printed = "".join(text.split())
    rows = [row for line in lines for row in line.splitlines()]
    cut += [f"not printed: {row}" for row in rows if "".join(row.split()) not in printed]
    return len(sheets), cut


def _pdftotext(pdf: Path, how: str) -> str:
    command = ["pdftotext", how, str(pdf), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text)  # XML has none of these
