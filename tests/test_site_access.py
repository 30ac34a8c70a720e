"""What people meet who use a keyboard, a screen reader, large text, or colors of their own."""

import pytest
from playwright.sync_api import Browser, Page, expect

from course.audit.browser import run_axe
from course.scenes import Direction, Part, Take, Terminal, load_scenes

TERMINALS = [
    pytest.param(take, index, id=f"{scene.anchor(take)}, {index + 1}")
    for scene in load_scenes()
    for take in scene.takes
    for index in range(len(take.terminals))
]
LAPTOP = {"width": 1280, "height": 800}
PHONE = {"width": 320, "height": 640}


# --- The accessibility tree ---


@pytest.fixture(scope="module")
def terminals_heard(browser: Browser, site_url: str) -> dict[str, list[list[str]]]:
    """What a screen reader gets of the story's terminals, by the take's heading, piece by piece."""
    page = browser.new_page(base_url=site_url)
    page.goto("/story/")
    expect(page.locator(".copy").first).to_be_visible()
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    page.close()
    nodes = {node["nodeId"]: node for node in tree}
    heard: dict[str, list[list[str]]] = {}
    heading = ""
    for node in _in_order(nodes, tree[0]):
        role = _role(node)
        if role == "heading":
            heading = " ".join(_pieces(nodes, node))
        elif role.lower() == "figure":
            heard.setdefault(heading, []).append(list(_pieces(nodes, node)))
    return heard


def _role(node: dict) -> str:
    return "" if node["ignored"] else node["role"]["value"]


def _in_order(nodes: dict[str, dict], node: dict):
    yield node
    for child in node.get("childIds", []):
        yield from _in_order(nodes, nodes[child])


def _pieces(nodes: dict[str, dict], node: dict):
    """The texts below a node, and the names of its buttons and fields, in the order of the tree."""
    role = _role(node)
    if role == "StaticText":
        yield " ".join(node["name"]["value"].split())
    elif role == "textbox":
        yield "[field]"
    elif role == "button" and node["name"]["value"].startswith("Copy"):
        yield f"[{node['name']['value']}]"
    else:
        for child in node.get("childIds", []):
            yield from _pieces(nodes, nodes[child])


def to_hear(take: Take, terminal: Terminal) -> str:
    """What a terminal has to say, from its file: who, whether it works, where, line by line."""
    said = [f"{'works' if take.works else 'does not work'}, tried by {take.who},"]
    said += [_said(terminal.title_parts), "terminal"]
    before = ""
    for line in (line for line in terminal.lines if not line.hidden):
        kind = line.kind.replace("omission", "output")
        if kind == "command":
            said.append("command:")
        elif kind == "output" and before != "output":
            said.append("output:")
        said += [_said(line.parts), line.comment]
        before = kind
    said += [f"Your job number instead of {number.shown}" for number in terminal.new_jobs]
    return " ".join(said)


def _said(parts: tuple[Part, ...]) -> str:
    return "".join(
        f"stage direction: {part.text}" if isinstance(part, Direction) else part.text
        for part in parts
    )


def _plain(text: str) -> str:
    return "".join(text.split())


def heard_of(terminals_heard, take: Take, index: int) -> list[str]:
    outcome = "works" if take.works else "does not work"
    heading = _plain(f"{take.who}{outcome}:{take.title}")
    [found] = [
        found
        for name, found in terminals_heard.items()
        if _plain(name).removesuffix("¶") == heading
    ]
    return found[index]


@pytest.mark.parametrize(("take", "index"), TERMINALS)
def test_a_terminal_is_heard_in_order(terminals_heard, take, index):
    pieces = heard_of(terminals_heard, take, index)
    texts = [piece for piece in pieces if not piece.startswith("[Copy") and piece != "[field]"]
    assert _plain("".join(texts)) == _plain(to_hear(take, take.terminals[index]))


@pytest.mark.parametrize(("take", "index"), TERMINALS)
def test_a_copy_button_is_heard_right_after_its_command(terminals_heard, take, index):
    pieces = heard_of(terminals_heard, take, index)
    buttons = [number for number, piece in enumerate(pieces) if piece.startswith("[Copy")]
    commands = take.terminals[index].commands if take.works else []
    for number, command in zip(buttons, commands, strict=True):
        assert pieces[number].endswith(f", {take.title}: {command}]")
        before = "".join(pieces[:number]).rpartition("command:")[2]
        assert _plain(before).startswith(_plain(command))


# --- The keyboard ---

# Where the focus is: whether it can be seen, at all and below the head, and what shows it.
FOCUS = """() => {
    const element = document.activeElement;
    if (element === document.body) return null;
    const box = element.getBoundingClientRect();
    const head = document.querySelector(".md-header");
    const low = head && !head.contains(element) && !element.closest(".md-skip, .md-sidebar")
        ? head.getBoundingClientRect().bottom : 0;
    const style = getComputedStyle(element);
    return {
        name: element.outerHTML.slice(0, 120),
        seen: box.width > 0 && box.height > 0 && box.left >= 0 && box.right <= innerWidth + 1
            && box.bottom > low && box.top < innerHeight && style.visibility === "visible",
        outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    };
}"""


def walk(page: Page, key: str, steps: int) -> list[dict]:
    """Press Tab (or Shift+Tab) that often, and look where the focus is."""
    stops = []
    for _ in range(steps):
        page.keyboard.press(key)
        stops.append(page.evaluate(FOCUS))
    return [stop for stop in stops if stop]


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("address", ["/", "/exercises/1-hello/", "/trouble/", "/rules/"])
def test_the_focus_is_always_seen(browser: Browser, site_url, address, size):
    page = browser.new_page(base_url=site_url, viewport=size, reduced_motion="reduce")
    page.goto(address)
    stops = walk(page, "Tab", 60) + walk(page, "Shift+Tab", 40)
    page.close()
    assert len(stops) > 50
    assert [stop["name"] for stop in stops if not stop["seen"]] == []
    assert [stop["name"] for stop in stops if not stop["outlined"]] == []


def test_the_first_key_offers_to_skip_to_the_content(context, page_addresses):
    page = context.new_page()
    for address in (address for address in page_addresses if not address.startswith("/embed/")):
        page.goto(address)
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('article, footer') !== null"), address


def test_the_menu_of_a_phone_opens_and_closes_by_keyboard(browser: Browser, site_url):
    page = browser.new_page(base_url=site_url, viewport=PHONE, reduced_motion="reduce")
    page.goto("/rules/")
    menu = page.get_by_role("button", name="Menu")
    link = page.get_by_role("navigation").get_by_role("link", name="Exercise 4 · A tiny GPT")
    expect(link).to_be_hidden()
    menu.press("Enter")
    expect(menu).to_have_attribute("aria-expanded", "true")
    expect(link).to_be_visible()
    assert page.evaluate("document.activeElement.closest('.md-sidebar--primary') !== null")
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    expect(menu).to_have_attribute("aria-expanded", "false")
    expect(link).to_be_hidden()
    menu.press("Space")
    link.press("Enter")
    page.wait_for_url("**/exercises/4-tinygpt/")
    page.close()


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_search_is_used_by_keyboard(browser: Browser, site_url, size):
    page = browser.new_page(base_url=site_url, viewport=size)
    page.goto("/rules/")
    if size is PHONE:
        page.get_by_role("button", name="Search").press("Enter")
    else:
        page.get_by_role("textbox", name="Search").focus()
    expect(page.get_by_role("textbox", name="Search")).to_be_focused()
    page.keyboard.type("gres")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: not url.endswith("/rules/"))
    page.close()


def test_a_single_letter_does_nothing_after_a_search(context):
    page = context.new_page()
    page.goto("/rules/")
    page.get_by_role("textbox", name="Search").press_sequentially("gres")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Dark mode").focus()
    for letter in "npfs,./":
        page.keyboard.press(letter)
    expect(page.get_by_role("button", name="Dark mode")).to_be_focused()
    assert page.url.endswith("/rules/")


# --- Colors and sizes ---


def test_light_or_dark_follows_the_system_until_the_reader_chooses(browser: Browser, site_url):
    context = browser.new_context(base_url=site_url, color_scheme="dark")
    page = context.new_page()
    page.goto("/")
    body, button = page.locator("body"), page.get_by_role("button", name="Dark mode")
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    page.emulate_media(color_scheme="light")
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    button.press("Enter")
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    expect(button).to_have_attribute("aria-pressed", "true")
    page.goto("/rules/")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    context.close()


@pytest.mark.parametrize("address", ["/", "/story/", "/exercises/4-tinygpt/", "/trouble/"])
def test_with_the_systems_own_colors_nothing_is_lost(browser: Browser, site_url, address):
    context = browser.new_context(base_url=site_url, forced_colors="active", color_scheme="dark")
    page = context.new_page()
    page.goto(address)
    # The browser sets the colors. axe looks at a property that it leaves alone.
    assert [found for found in run_axe(page) if not found.startswith("color-contrast")] == []
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUS)["outlined"]
    bordered = page.evaluate(
        """[...document.querySelectorAll(".take__label, .terminal, .copy, .remember")]
            .filter(element => getComputedStyle(element).borderTopStyle === "none")
            .map(element => element.className)"""
    )
    assert bordered == []
    context.close()


# Text that its box cuts off, or that sticks out of the window.
CUT = """() => [...document.querySelectorAll("body *")].filter(element => {
    if (!element.checkVisibility({visibilityProperty: true})) return false;
    const others = ".reader-only, .headerlink, .highlight, .md-search, .md-ellipsis";
    if (element.closest(others)) return false;
    const text = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const clipped = getComputedStyle(element).overflowX !== "visible"
        && element.scrollWidth > element.clientWidth + 1;
    return text && (clipped || element.getBoundingClientRect().right > innerWidth + 1);
}).map(element => element.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("width", [640, 1280])  # 320 px is what is left of 1280 at 400%
def test_text_of_twice_the_size_is_not_cut(browser: Browser, site_url, page_addresses, width):
    page = browser.new_page(base_url=site_url, viewport={"width": width, "height": 800})
    for address in page_addresses:
        page.goto(address)
        page.evaluate("document.documentElement.style.fontSize = '250%'")  # the theme's is 125%
        assert page.evaluate(CUT) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    page.close()
