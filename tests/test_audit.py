"""scripts/audit passes, and sees what is wrong; what we need of the theme is still there."""

import hashlib
import io
import re
import subprocess
from pathlib import Path

import material
import pytest
import tomllib
from PIL import Image, ImageChops
from playwright.sync_api import Page

from course.audit.rows import audit
from course.scenes import ROOT
from course.styles import joined

THEME = Path(material.__file__).parent / "templates"
# The theme's templates that overrides/ replaces, as they were when it was written.
REPLACED = {
    "partials/palette.html": "fb935107ae7d3d74",
    "partials/javascripts/base.html": "d6113712bc4deb30",
    "partials/javascripts/content.html": "3722e156f0f6339d",
    "partials/javascripts/palette.html": "8790389765ea6036",
}


def test_the_audit_passes_on_every_page(site):
    result = subprocess.run([ROOT / "scripts/audit", site], capture_output=True, text=True)
    print(result.stdout)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def found(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the audit says of pages that are wrong, each in its own way."""
    folder = tmp_path_factory.mktemp("wrong")
    plain = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        "<title>A page</title><style>@page {{ margin: 25mm }}</style></head>"
        "<body><main><h1>A page</h1>{}</main></body></html>"
    )
    wide = '<pre class="terminal__output">' + "x" * 300 + "</pre>"
    high = '<div style="height:1500px;display:inline-block">' + "<p>A line</p>" * 60 + "</div>"
    noise = hashlib.shake_256(b"noise").hexdigest(40_000)
    pages = {
        "": "",
        "machines": "",
        "heavy": f"<p hidden>{noise}</p>",
        "foreign": '<img src="http://127.0.0.2:9/a.png" alt="A picture" width="9" height="9">',
        "unnamed": "<button></button>",
        "pale": '<p style="color:#bbb">A pale line</p>',
        "broken": "<p><b>A bold line</p>",
        "dead": '<p><a href="../nowhere/">A link</a></p>',
        "exercises/wide": f'<div class="terminal">{wide}</div>',
        "exercises/high": high,
    }
    for name, body in pages.items():
        page = folder / name / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(plain.format(body), encoding="utf-8")
    return {row.page: "\n".join(row.problems()) for row in audit(folder)}


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("/heavy/", r"it weighs \d\d\.\d kB as the next page, and may have 12"),
        ("/foreign/", "it asks another host: http://127.0.0.2:9/a.png"),
        ("/unnamed/", r"axe: button-name: button \(light, 320 px\)"),
        ("/pale/", r"axe: color-contrast: p \(dark, 1280 px\)"),
        ("/broken/", "HTML: .*“b”"),
        ("/dead/", "dead or doubled: ../nowhere/"),
        ("/exercises/wide/", "cut on paper, sheet 1: x"),
        ("/exercises/high/", "cut on paper, sheet 2: line"),
    ],
)
def test_the_audit_sees(found, page, says):
    assert re.search(says, found[page]), found[page]


def test_the_audit_has_nothing_to_say_of_a_page_without_fault(found):
    assert found["/machines/"] == ""


def picture(page: Page, address: str, search: bool) -> bytes:
    page.goto(address)
    page.evaluate("document.fonts.ready")
    if search:
        page.get_by_placeholder("Search").press_sequentially("cancel")
        page.locator(".md-search-result__link").first.wait_for()
        page.evaluate("document.activeElement.blur(); document.fonts.ready")
    return page.screenshot(full_page=not search, animations="disabled", caret="hide")


def differing_pixels(one: bytes, other: bytes) -> int:
    images = [Image.open(io.BytesIO(png)).convert("RGB") for png in (one, other)]
    assert images[0].size == images[1].size
    return sum(ImageChops.difference(*images).convert("L").histogram()[1:])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_styles_that_are_left_out_change_nothing(browser, site, site_url, width, scheme):
    context = browser.new_context(
        base_url=site_url,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    purged, whole = context.new_page(), context.new_page()
    styles = joined(site)
    whole.route("**/site.css", lambda route: route.fulfill(body=styles, content_type="text/css"))
    looks = [("/exercises/1-hello/", False), ("/trouble/", False), ("/teach/", False)]
    if width == 1280:
        looks.append(("/rules/", True))
    for look in looks:
        # The browser itself draws some edges now like this and now like that. A style that is
        # missing is missing each time.
        differences = (
            differing_pixels(picture(purged, *look), picture(whole, *look)) for _ in range(4)
        )
        assert any(pixels <= 4 for pixels in differences), look
    context.close()


@pytest.mark.parametrize("template", REPLACED)
def test_a_template_of_the_theme_that_we_replace_has_not_changed(template):
    digest = hashlib.sha256((THEME / template).read_bytes()).hexdigest()[:16]
    assert digest == REPLACED[template], (
        f"The theme has a new {template}. See what differs, and change the one in overrides/ too."
    )


def test_the_theme_still_has_what_its_script_is_loaded_by(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    assert (
        len(re.findall(r'<script data-src="assets/javascripts/bundle\.\w+\.min\.js">', home)) == 1
    )
    for part in ('id="__drawer"', 'id="__search"', 'for="__drawer"', 'for="__search"'):
        assert part in home


def test_what_is_locked_is_what_pyproject_names():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for extra in ("site", "cluster", "test"):
        lock = (ROOT / f"locks/{extra}.txt").read_text()
        for wanted in extras[extra]:
            name, version = wanted.split(";")[0].strip().split("==")
            pinned = rf"^{re.escape(name)}=={re.escape(version)}\b.*\\\n    --hash=sha256:"
            assert re.search(pinned, lock, re.MULTILINE | re.IGNORECASE), f"scripts/lock: {wanted}"
