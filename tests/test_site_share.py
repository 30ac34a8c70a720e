"""Links to share, short addresses, embeds, and the index of scenes, as instructors use them."""

import functools
import html
import json
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from course.embeds import load_heights
from course.scenes import load_scenes

SCENES = load_scenes()
TAKES = [(scene, take) for scene in SCENES for take in scene.takes]
ANCHORS = [scene.anchor() for scene in SCENES] + [scene.anchor(take) for scene, take in TAKES]
EMBEDS = [f"/embed/{anchor}/" for anchor in ANCHORS]
SHORT = [f"/s/{scene.number}/" for scene in SCENES]


def clipboard(page: Page) -> str:
    return page.evaluate("navigator.clipboard.readText()")


# --- Links ---


def test_each_scene_and_take_has_a_visible_link_that_copies_its_full_address(story, site_url):
    links = story.get_by_role("link", name="Link to this")
    copied = []
    for link in links.all():
        expect(link).to_be_visible()
        link.click()
        expect(story.get_by_role("status")).to_have_text(re.compile("Copied: http"))
        copied.append(clipboard(story))
    assert sorted(copied) == sorted(f"{site_url}/story/#{anchor}" for anchor in ANCHORS)


@pytest.mark.parametrize("size", [(1280, 800), (360, 640)], ids=["laptop", "phone"])
def test_a_link_opens_with_the_take_in_view_and_marked(browser, site_url, size):
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, is_mobile=width < 1000)
    for scene, take in TAKES:
        page.goto("about:blank")
        page.goto(f"{site_url}/story/#{scene.anchor(take)}")
        heading = page.locator(f"[id='{scene.anchor(take)}']")
        expect(heading).to_be_in_viewport(ratio=1)
        header = page.locator(".md-header").bounding_box()
        assert heading.bounding_box()["y"] >= header["y"] + header["height"]
        marked = page.locator(".take").evaluate_all(
            "takes => takes.filter(take => getComputedStyle(take).boxShadow !== 'none').length"
        )
        assert marked == 1
        expect(page.locator(".take", has=heading)).not_to_have_css("box-shadow", "none")
    page.close()


@pytest.mark.parametrize("address", SHORT)
def test_a_short_address_leads_to_its_scene_without_javascript(browser, site_url, address):
    context = browser.new_context(base_url=site_url, java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    page.wait_for_url(f"{site_url}/story/#scene-{address.split('/')[2]}")
    context.close()


def test_a_page_says_what_a_chat_shows_of_its_link(site: Path, page_addresses):
    titles = {}
    for address in [*page_addresses, *SHORT]:
        page = (site / address.lstrip("/") / "index.html").read_text(encoding="utf-8")
        meta = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)">', page))
        assert meta["og:description"] == meta["description"]
        assert len(meta["description"]) > 40
        assert meta["og:site_name"] == "Behind the Secrets of LLMs"
        titles.setdefault(meta["og:title"], []).append(address)
    # Only a scene's embed and its short address may be called the same.
    for title, addresses in titles.items():
        assert len([address for address in addresses if not address.startswith("/s/")]) == 1, title


def test_an_address_of_the_site_is_in_no_page_until_it_is_known(site: Path):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "og:url" not in text
        assert "canonical" not in text


# --- Embeds ---


def test_embeds_and_short_addresses_are_not_searched(site: Path):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    places = [entry["location"] for entry in index["docs"]]
    assert "story/#scene-3" in places
    assert [place for place in places if place.startswith(("embed/", "s/"))] == []


def test_an_embed_is_the_scene_alone(context: BrowserContext):
    page = context.new_page()
    page.goto("/embed/scene-3/")
    expect(page.get_by_role("heading", level=1, name="Scene 3 : Where is my GPU?")).to_be_visible()
    assert page.locator(".take").count() == 2
    expect(page.locator("header, nav, footer, .md-search")).to_have_count(0)
    link = page.get_by_role("link", name="the story of Marie and Martin")
    with context.expect_page() as opened:
        link.click()
    assert opened.value.url.endswith("/story/#scene-3")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_embed_is_light_or_dark_as_the_site_is(browser: Browser, site_url, scheme):
    context = browser.new_context(base_url=site_url, color_scheme=scheme)
    colors = []
    for address in ("/story/", "/embed/scene-3/"):
        page = context.new_page()
        page.goto(address)
        colors.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    context.close()
    assert colors[0] == colors[1]
    assert (colors[0] == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.fixture(scope="module")
def platform(browser: Browser, site_url: str, tmp_path_factory) -> Iterator[tuple[Path, str]]:
    """A learning platform: another origin on this machine, with a folder for its pages."""
    folder = tmp_path_factory.mktemp("platform")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def iframes(browser: Browser, site_url: str) -> dict[str, str]:
    """What /teach/ gives to paste, as its buttons copy it, by the embed's name."""
    context = browser.new_context(
        base_url=site_url, permissions=["clipboard-read", "clipboard-write"]
    )
    page = context.new_page()
    page.goto("/teach/")
    found = {}
    for box in page.locator(".addresses details").all():
        box.locator("summary").click()
        button = box.get_by_role("button", name=re.compile("Copy the iframe of"))
        button.click()
        expect(button).to_have_text("Copied")
        text = clipboard(page)
        found[re.search(r"/embed/([a-z0-9-]+)/", text)[1]] = text
        box.locator("summary").click()
    context.close()
    return found


def test_teach_has_an_iframe_for_each_scene_and_take(iframes):
    assert sorted(iframes) == sorted(ANCHORS)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_an_embed_fits_into_its_iframe_on_another_origin(browser, platform, iframes, anchor):
    folder, address = platform
    (folder / f"{anchor}.html").write_text(
        f"<!doctype html><title>A learning platform</title>{iframes[anchor]}", encoding="utf-8"
    )
    page = browser.new_page()
    page.goto(f"{address}/{anchor}.html")
    page.add_style_tag(content="body { margin: 0 }")
    frame = page.frames[1]
    frame.wait_for_load_state()
    frame.evaluate("document.fonts.ready")
    for width in range(320, 1201, 40):
        page.set_viewport_size({"width": width, "height": 800})
        needs, has, across = frame.evaluate(
            """() => {
                const all = document.documentElement;
                return [all.scrollHeight, innerHeight, all.scrollWidth - all.clientWidth];
            }"""
        )
        assert frame.evaluate("innerWidth") == width
        assert needs <= has, f"at {width} px it needs {needs} px: scripts/measure-embeds"
        assert across == 0
        content = frame.evaluate(
            "Math.round(document.querySelector('.embed__source').getBoundingClientRect().bottom)"
        )
        empty = has - content
        assert empty < 0.2 * has + 100, f"at {width} px it is too high: scripts/measure-embeds"
    page.close()


def test_an_iframe_without_its_style_is_high_enough_for_a_phone(iframes):
    for anchor, heights in load_heights().items():
        assert f'height="{max(heights)}"' in iframes[anchor]


def test_in_a_frame_of_another_origin_commands_and_links_are_copied(
    context, platform, iframes, site_url
):
    folder, address = platform
    (folder / "copy.html").write_text(f"<!doctype html>{iframes['scene-1']}", encoding="utf-8")
    page = context.new_page()
    page.goto(f"{address}/copy.html")
    frame = page.frame_locator("iframe")
    button = frame.get_by_role("button", name="mkdir -p logs && sbatch hello.sbatch")
    button.click()
    expect(button).to_have_text("Copied")
    reader = context.new_page()
    reader.goto("/story/")
    assert clipboard(reader) == "mkdir -p logs && sbatch hello.sbatch"
    page.bring_to_front()
    frame.get_by_role("link", name="Link to this take: mkdir first").click()
    expect(frame.get_by_role("status")).to_have_text(re.compile("Copied: http"))
    reader.bring_to_front()
    assert clipboard(reader) == f"{site_url}/story/#scene-1-mkdir-first"


def test_in_a_high_frame_the_dialog_and_messages_appear_where_the_reader_is(
    context, platform, iframes
):
    folder, address = platform
    (folder / "high.html").write_text(f"<!doctype html>{iframes['scene-0']}", encoding="utf-8")
    page = context.new_page()
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{address}/high.html")
    frame = page.frame_locator("iframe")
    for placeholder in frame.get_by_role("button", name="<zih-login>").all():
        placeholder.click()
        dialog = frame.get_by_role("dialog")
        expect(dialog).to_be_in_viewport(ratio=1)
        expect(frame.get_by_label("Your login on the cluster")).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
    frame.get_by_role("link", name="Link to this take: a job").click()
    expect(frame.get_by_role("status")).to_be_in_viewport()


# --- What instructors copy, and programs read ---


def test_teach_copies_every_address(context, site_url, page_addresses):
    page = context.new_page()
    page.goto("/teach/")
    copied = []
    for button in page.get_by_role("button", name=re.compile("Copy the address of")).all():
        button.click()
        expect(button).to_have_text("Copied")
        copied.append(clipboard(page).removeprefix(site_url))
    pages = [address for address in page_addresses if not address.startswith("/embed/")]
    assert sorted(copied) == sorted([f"/story/#{anchor}" for anchor in ANCHORS] + SHORT + pages)


def test_all_embeds_and_short_addresses_are_published(published):
    data = ["/scenes.json", "/scenes.schema.json"]
    assert sorted(set(EMBEDS + SHORT + data) - set(published)) == []


@pytest.fixture(scope="module")
def index(site: Path) -> dict:
    return json.loads((site / "scenes.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def schema(site: Path) -> dict:
    return json.loads((site / "scenes.schema.json").read_text(encoding="utf-8"))


def test_the_scene_index_is_as_its_schema_says(index, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(index)
    assert len(index["takes"]) == len(TAKES)


def test_each_field_of_the_scene_index_is_described_and_required(index, schema, site):
    take = schema["$defs"]["take"]
    assert set(index["takes"][0]) == set(take["required"]) == set(take["properties"])
    teach = html.unescape((site / "teach/index.html").read_text(encoding="utf-8"))
    for name, field in take["properties"].items():
        assert f"<td><code>{name}</code></td>\n<td>{field['description']}</td>" in teach


# What programs read by now. A field that goes or changes needs a new version of the index.
VERSION_1 = {
    "address": str,
    "short_address": str,
    "embed_address": str,
    "scene": int,
    "scene_title": str,
    "lab": str,
    "id": str,
    "title": str,
    "who": str,
    "works": bool,
    "start": str,
    "commands": list,
}


def test_no_field_of_version_1_is_gone(index):
    assert index["version"] == 1
    for take in index["takes"]:
        assert {name: type(take[name]) for name in VERSION_1} == VERSION_1


@pytest.mark.parametrize(
    "change",
    [
        {"address": "/story/#scene-1-7"},
        {"embed_address": "/embed/scene-1/x/"},
        {"scene": "1"},
        {"who": "Bob"},
        {"works": "yes"},
        {"commands": [""]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_schema_refuses_what_is_wrong(index, schema, change):
    wrong = {**index, "takes": [{**index["takes"][0], **change}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(wrong)


def test_the_addresses_of_the_scene_index_are_published(index, published):
    fields = ("address", "short_address", "embed_address")
    listed = {take[field] for take in index["takes"] for field in fields}
    assert sorted(listed - set(published)) == []
