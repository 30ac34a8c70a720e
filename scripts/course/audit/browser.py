"""What a browser loads and shows of a page: weight, requests, shifts, accessibility, print."""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import axe_playwright_python
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from course.audit.server import Server

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDTHS = (320, 1280)
SCHEMES = ("light", "dark")
# A telephone's connection: what moves while a page loads does so where the parts come one by one.
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 90_000}

SHIFTS = """() => new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => {
        for (const shift of list.getEntries()) sum += shift.value;
    }).observe({type: "layout-shift", buffered: true});
    setTimeout(() => done(sum), 50);
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


def look(browser: Browser, server: Server, address: str, prints: bool) -> Seen:
    """Look at a page, such as "/story/". `prints`: whether it is meant to be printed."""
    seen = Seen()
    _weigh(browser, server, address, seen)
    for scheme in SCHEMES:
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(server.address + address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            seen.axe += [f"{finding} ({scheme}, {width} px)" for finding in run_axe(page)]
        context.close()
    if prints:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address + address)
        seen.sheets, seen.cut = print_page(page)
        context.close()
    return seen


def _weigh(browser: Browser, server: Server, address: str, seen: Seen) -> None:
    other = "/machines/" if address == "/" else "/"
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True)
    page = _watched(context, server, seen)
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)
    server.sent.clear()
    page.goto(server.address + address)
    page.evaluate("document.fonts.ready")
    seen.shift = page.evaluate(SHIFTS)
    seen.first, seen.requests = sum(size for _, size in server.sent), len(server.sent)
    context.close()
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address + other)
    page.evaluate("document.fonts.ready")
    server.sent.clear()
    page.goto(server.address + address)
    page.evaluate("document.fonts.ready")
    seen.following = sum(size for _, size in server.sent)
    context.close()


def _watched(context: BrowserContext, server: Server, seen: Seen) -> Page:
    page = context.new_page()
    page.on("console", lambda line: line.type == "error" and seen.errors.append(line.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))

    def note(url: str) -> None:
        if not url.startswith((f"{server.address}/", "data:")):
            seen.foreign.append(url)

    page.on("request", lambda request: note(request.url))
    return page


def run_axe(page: Page) -> list[str]:
    """What axe-core finds on a page as it is shown now."""
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
    lines = page.locator(".terminal code, .terminal__output").all_inner_texts()
    with tempfile.TemporaryDirectory() as folder:
        pdf = Path(folder) / "page.pdf"
        page.pdf(path=pdf, format="A4", prefer_css_page_size=True)
        command = ["pdftotext", "-bbox", str(pdf), "-"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sheets = list(
        ElementTree.fromstring(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text)).iter(
            "{http://www.w3.org/1999/xhtml}page"
        )
    )
    cut = []
    printed = []
    for number, sheet in enumerate(sheets, start=1):
        width, height = float(sheet.get("width")), float(sheet.get("height"))
        for word in sheet:
            box = [float(word.get(edge)) for edge in ("xMin", "yMin", "xMax", "yMax")]
            printed.append(word.text or "")
            if box[0] < 0 or box[1] < 0 or box[2] > width or box[3] > height:
                cut.append(f"page {number}: {word.text}")
    whole = "".join("".join(printed).split())
    for line in lines:
        for row in line.splitlines():
            if "".join(row.split()) not in whole:
                cut.append(f"not printed: {row}")
    return len(sheets), cut
