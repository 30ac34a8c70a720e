"""How fast the pages inside the model are, in Chromium.

    scripts/bench model

Measured is how soon the page on tokens answers a key when its text has 100,000 characters, and how
many characters per second the tiny GPT writes when the CPU is slowed four times, with the longest
time for which the page did not answer meanwhile. It builds the site and serves it itself.
"""

import statistics
import subprocess
import sys

from playwright.sync_api import Browser, Page, expect, sync_playwright

from course.audit.browser import launch
from course.audit.server import serving
from course.inside import ROOT

KEYS = 20
TEXTS = {
    "100,000 characters of prose": "The Elbe flows through Dresden, and on. " * 2500,
    "100,000 times the same letter": "a" * 100_000,
}
SLOWED = 4
# From a key to the moment when the browser has drawn what it did.
ANSWER = """() => new Promise((done) => {
    const field = document.getElementById("text");
    field.addEventListener("keydown", ({ timeStamp }) => {
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - timeStamp)));
    }, { once: true });
})"""
# The longest time between two tasks of the page while it writes.
WATCH = """() => {
    window.longest = 0;
    let last = performance.now();
    const look = () => {
        const now = performance.now();
        window.longest = Math.max(window.longest, now - last);
        last = now;
        requestAnimationFrame(look);
    };
    look();
}"""


def answer_times(page: Page, text: str) -> list[float]:
    """Milliseconds from a key to the page's answer, for several keys."""
    page.fill("#text", text)
    expect(page.locator(".lab__status")).to_contain_text("token", timeout=30_000)
    page.evaluate("document.getElementById('text').setSelectionRange(50_000, 50_000)")
    times = []
    for _ in range(KEYS):
        page.evaluate(f"() => {{ window.answered = ({ANSWER})(); }}")
        page.keyboard.press("x")
        times.append(page.evaluate("window.answered"))
    return times


def writing(browser: Browser, url: str) -> tuple[str, float]:
    """What the page says after writing, and its longest pause in ms, on a slowed CPU."""
    page = browser.new_page()
    page.goto(f"{url}/model/temperature/")
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
    page.evaluate(WATCH)
    page.click("#write")
    expect(page.locator("#write-status")).to_contain_text("in a second", timeout=120_000)
    return page.inner_text("#write-status"), page.evaluate("longest")


def main(argv: list[str]) -> int:
    """Measure once; give the exit code."""
    if argv:
        print("Usage: scripts/bench model", file=sys.stderr)
        return 2
    subprocess.run([ROOT / "scripts/build"], check=True, stdout=subprocess.DEVNULL)
    with serving(ROOT / "site") as server, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.goto(f"{server.address}/model/tokens/")
        for name, text in TEXTS.items():
            times = answer_times(page, text)
            print(
                f"{name}: a key is answered in {statistics.median(times):.0f} ms "
                f"(median of {KEYS}, longest {max(times):.0f} ms)"
            )
        said, longest = writing(browser, server.address)
        print(f"CPU slowed {SLOWED} times: {said} The page's longest pause: {longest:.0f} ms")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
