"""How high a frame has to be that shows an embedded scene or take without a scroll bar of its own.

The height depends on the frame's width, which nobody knows when the iframe is pasted. So the iframe
computes it, in CSS and without a script: between a few widths the height is a straight line.

    python -m course.embeds        measures the built site's embeds, for scripts/measure-embeds
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from course.scenes import ROOT

HEIGHTS = Path(__file__).with_name("embed_heights.json")
WIDTHS = (320, 480, 800, 1200)  # of the frame, in CSS pixels; the heights are kept for these
STEP = 20  # pixels between the widths at which the page is looked at
# Other systems have other monospaced fonts, so a line may break where it does not here.
RESERVE = 1.03


def load_heights() -> dict[str, list[int]]:
    """The heights in CSS pixels at the WIDTHS, by the embed's name, such as "scene-3"."""
    return json.loads(HEIGHTS.read_text(encoding="utf-8"))


def css_height(heights: Sequence[int]) -> str:
    """The CSS of the height: cqw is a hundredth of the width of the box around the iframe."""
    lines = []
    for (left, high), (right, low) in pairwise(zip(WIDTHS, heights, strict=True)):
        slope = (high - low) / (right - left)
        lines.append(f"{high + slope * left:.0f}px - {slope * 100:.0f}cqw")
    return f"max({','.join(lines)},{heights[-1]}px)"


def fit(measured: Mapping[int, int]) -> list[int]:
    """Heights for the WIDTHS such that all that was measured fits below the lines between them."""
    heights = [measured[width] * RESERVE for width in WIDTHS]
    missing = 0.0
    for (left, high), (right, low) in pairwise(zip(WIDTHS, heights, strict=True)):
        for width in range(left, right, STEP):
            line = high - (high - low) * (width - left) / (right - left)
            missing = max(missing, measured[width] * RESERVE - line)
    return [-(-int(height + missing) // 10) * 10 + 10 for height in heights]


def measure(site: Path) -> dict[str, list[int]]:
    """Look at each embed of a built site in a browser, and return the heights that fit."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        page = browser.new_page()
        heights = {}
        for folder in sorted((site / "embed").iterdir()):
            page.goto((folder / "index.html").as_uri())
            page.evaluate("document.fonts.ready")
            measured = {}
            for width in range(WIDTHS[0], WIDTHS[-1] + 1, STEP):
                page.set_viewport_size({"width": width, "height": 100})
                measured[width] = page.evaluate("document.documentElement.scrollHeight")
            heights[folder.name] = fit(measured)
        browser.close()
    return heights


if __name__ == "__main__":
    HEIGHTS.write_text(json.dumps(measure(ROOT / "site"), indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {HEIGHTS.relative_to(ROOT)}. Build again, and look at the difference.")
