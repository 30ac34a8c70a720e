"""What a reader sees and does on the pages inside the model, in a real browser."""

import gzip
import json
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlencode, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.inside import DATA

expect.set_options(timeout=30_000)  # the first time, a vocabulary or a model is loaded

PAGES = ["tokens", "attention", "temperature"]
SENTENCE = "The Elbe flows through"


@pytest.fixture
def page(context) -> Page:
    """A page that fails the test when a script of it does."""
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


@pytest.fixture(scope="module")
def recorded() -> dict:
    return json.loads((DATA / "recorded.json").read_text(encoding="utf-8"))


# ---- One sentence travels -----------------------------------------------------------------------


def test_the_readers_text_and_temperature_go_along_from_page_to_page(page):
    page.goto("/model/tokens/")
    page.get_by_label("Your text").fill("Die Elbe & der Rhein")
    page.get_by_role("article").get_by_role("link", name="attention", exact=True).click()
    expect(page).to_have_url(re.compile(r"/model/attention/\?text=Die\+Elbe\+%26\+der\+Rhein"))
    expect(page.get_by_label("Your text")).to_have_value("Die Elbe & der Rhein")
    page.get_by_role("article").get_by_role("link", name="temperature", exact=True).click()
    expect(page.get_by_label("It continues this text")).to_have_value("Die Elbe & der Rhein")


STATES = {
    "tokens": {"text": "Elbe 🦉\n<b>", "vocabulary": "smollm2"},
    "attention": {"text": "Shall I compare thee", "row": 7, "layer": 2, "head": 3},
    "temperature": {
        "text": "JULIET:",
        "prompt": 2,
        "t": 0.8,
        "top_k": 40,
        "seed": 11,
        "draws": 250,
        "path": "0-1",
        "written": 60,
    },
}


def shown(page: Page) -> str:
    """All that is on the page, once it stands still."""
    page.wait_for_load_state("networkidle")
    for status in page.get_by_role("status").all():
        expect(status).not_to_have_text(re.compile(r"Loading|writes"))
    fields = page.locator("article :is(input, textarea, select)")
    values = fields.evaluate_all("all => all.map(one => `${one.checked ?? ''} ${one.value}`)")
    text = page.inner_text("article")
    return re.sub(r"\d+ in a second", "", text) + "\n".join(values)


@pytest.mark.parametrize("name", PAGES)
def test_a_link_shows_exactly_the_same_in_another_browser(browser, site_url, name):
    seen = []
    address = f"{site_url}/model/{name}/?{urlencode(STATES[name])}"
    for _ in range(2):
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        seen.append(shown(page))
        context.close()
    assert seen[0] == seen[1]
    for value in STATES[name].values():
        assert str(value) in seen[0] or str(value) in address


def test_what_the_reader_does_is_in_the_address(page, browser, site_url):
    page.goto("/model/temperature/")
    page.get_by_role("radio", name="The river Elbe").check()
    page.get_by_role("slider", name="Temperature").first.fill("0.7")
    page.get_by_label("Seed of the dice").fill("5")
    page.get_by_role("button", name="Draw 100").click()
    page.get_by_role("button", name="Draw the next token").click()
    page.get_by_role("button", name=re.compile("^Write")).click()
    expect(page.locator("#write-status")).to_contain_text("500 letters with seed 5")
    expect(page).to_have_url(re.compile("written=500"))
    context = browser.new_context()
    other = context.new_page()
    other.goto(page.url)
    assert shown(other).replace("Write again", "Write (0.8 MB)") == shown(page).replace(
        "Write again", "Write (0.8 MB)"
    )
    context.close()


HOSTILE = {
    "html": "text=" + quote("<img src=x onerror=document.title='bad'><script>alert(1)</script>"),
    "very long": "text=" + "a" * 60_000,
    "half a sign": "text=%ED%A0%80%ff&vocabulary=qwen2.5",
    "no number": "t=NaN&top_k=Infinity&seed=1e9&draws=-5&row=0x10",
    "out of range": "t=-1&top_k=0&seed=99999999999&draws=999999999&layer=77&head=99&row=1000",
    "unknown names": "vocabulary=__proto__&prompt=9&path=9-9-9&__proto__[x]=1&constructor=1",
    "twice": "t=1&t=2&text=a&text=b",
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_address_does_nothing_bad(page, name, attack):
    page.on("dialog", lambda dialog: pytest.fail(f"The page ran {dialog.message}"))
    page.goto(f"/model/{name}/?{HOSTILE[attack]}")
    text = shown(page)
    assert page.locator("article img, article script").count() == 0
    assert "bad" not in page.title()
    assert "NaN" not in text and "undefined" not in text
    if attack == "very long":
        assert page.locator("textarea").first.input_value() == SENTENCE
    if name == "temperature" and attack in ("no number", "out of range"):
        expect(page.locator("#t-shown")).to_have_text("1")


def test_half_a_sign_typed_by_the_reader_is_bearable(page):
    page.goto("/model/tokens/")
    page.locator("#text").evaluate(
        "field => { field.value = 'a\\ud83e b'; field.dispatchEvent(new InputEvent('input')); }"
    )
    expect(page.locator(".lab__status")).to_contain_text("tokens")
    page.wait_for_url("**/tokens/?*")
    page.reload()
    expect(page.locator(".lab__status")).to_contain_text("tokens")


@pytest.mark.parametrize("name", PAGES)
def test_leaving_and_coming_back_keeps_what_was_there(page, name):
    page.goto(f"/model/{name}/?{urlencode(STATES[name])}")
    before = shown(page)
    page.goto("/rules/")
    page.go_back()
    assert shown(page) == before


# ---- Light, and on its own ----------------------------------------------------------------------


def asked_for(page: Page) -> set[str]:
    """The addresses of all that this page asks for from now on."""
    asked = set()
    page.on("request", lambda request: asked.add(request.url))
    return asked


def kilobytes(site: Path, asked: set[str]) -> float:
    """How much they are, each compressed as a server would."""
    paths = {unquote(urlsplit(url).path).lstrip("/") for url in asked if url.startswith("http")}
    files = [site / path / "index.html" if path.endswith("/") else site / path for path in paths]
    contents = [file.read_bytes() for file in files]
    return sum(min(len(content), len(gzip.compress(content, 6))) for content in contents) / 1000


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light_before_the_reader_touches_it(page, site, name):
    asked = asked_for(page)
    page.goto(f"/model/{name}/", wait_until="networkidle")
    assert len(asked) > 3
    assert kilobytes(site, asked) < 180


@pytest.mark.parametrize("name", PAGES)
def test_with_all_that_it_can_load_a_page_stays_light(page, site, name):
    asked = asked_for(page)
    page.goto(f"/model/{name}/?{urlencode(STATES[name])}")
    shown(page)
    if name == "tokens":
        for vocabulary in ("Qwen2.5", "the tiny GPT"):
            page.get_by_label(vocabulary).check()
            shown(page)
    page.get_by_placeholder("Search").fill("token")
    page.wait_for_load_state("networkidle")
    heavy = [url for url in asked if url.endswith((".vocabulary", "tinygpt.bin"))]
    assert len(heavy) == (2 if name == "tokens" else 1)
    assert kilobytes(site, asked) < 1800


@pytest.mark.parametrize("name", PAGES)
def test_no_other_host_is_asked(page, site_url, name):
    asked = asked_for(page)
    page.goto(f"/model/{name}/?{urlencode(STATES[name])}")
    shown(page)
    assert [url for url in asked if not url.startswith((site_url + "/", "data:"))] == []


def test_once_loaded_it_works_without_a_network(page, context: BrowserContext):
    page.goto("/model/tokens/")
    page.get_by_label("Your text").fill("a")
    expect(page.locator(".lab__status")).to_contain_text("1 token")
    context.set_offline(True)
    page.get_by_label("Your text").fill("The Elbe")
    expect(page.locator(".lab__status")).to_contain_text("3 tokens")


def test_a_vocabulary_that_does_not_come_is_said(page):
    page.route("**/*.vocabulary", lambda route: route.fulfill(status=404))
    page.goto("/model/tokens/")
    page.get_by_label("Your text").fill("a")
    expect(page.locator(".lab__status")).to_contain_text("could not be loaded")


def test_a_policy_without_inline_scripts_and_styles_is_kept(browser, site_url):
    """The strict policy of the site, sent by a server here."""
    context = browser.new_context()
    page = context.new_page()
    broken = []
    page.on("console", lambda message: broken.append(message.text))
    policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    policy += "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'"

    def strict(route):
        answer = route.fetch()
        route.fulfill(
            response=answer, headers={**answer.headers, "Content-Security-Policy": policy}
        )

    page.route("**/model/**", strict)
    for name in PAGES:
        page.goto(f"{site_url}/model/{name}/?{urlencode(STATES[name])}")
        shown(page)
    ours = [text for text in broken if "/assets/model/" in text or "article" in text]
    assert ours == []
    assert page.locator("article [style], article [onclick], article script").count() == 0
    context.close()


# ---- Without JavaScript, on paper, by keyboard --------------------------------------------------


@pytest.fixture
def plain(browser, site_url):
    context = browser.new_context(base_url=site_url, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_without_javascript_the_sentences_tokens_are_there(plain):
    plain.goto("/model/tokens/")
    cut = plain.locator("ol.pieces").first.locator("li").all_inner_texts()
    assert [re.sub(r"\s+", " ", piece) for piece in cut] == [
        "The 785",
        "·El 3984",
        "be 1371",
        "·flows 27455",
        "·through 1526",
    ]
    expect(plain.get_by_role("row", name="Frauenkirche")).to_be_visible()


def test_without_javascript_mask_and_weights_are_there(plain, recorded):
    plain.goto("/model/attention/")
    tokens = recorded["attention"]["tokens"]
    mask = plain.locator("table.mask tbody tr")
    for i, row in enumerate(mask.all()):
        cells = row.locator("td").all_inner_texts()
        assert cells == ["yes"] * (i + 1) + ["no"] * (len(tokens) - i - 1)
    assert plain.locator("table.weights").count() == 3
    last = plain.locator("table.weights").first.locator("tbody tr").last.locator("td")
    shares = [float(text.rstrip("%")) for text in last.all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=len(tokens) / 2)
    river = sum(shares[place] for place in recorded["attention"]["river"])
    assert river == pytest.approx(100 * recorded["attention"]["finder"]["share"], abs=1)


def test_without_javascript_probabilities_cities_and_endings_are_there(plain, recorded):
    plain.goto("/model/temperature/")
    for city in recorded["cities"]:
        row = plain.get_by_role("row", name=city["city"], exact=False).first
        expect(row).to_contain_text("right" if city["right"] else "wrong")
    assert plain.locator("ul.endings li").count() > 4
    expect(plain.locator("table.temperatures thead")).to_contain_text("T = 0.2")
    assert plain.locator(".lab:visible").count() == 0


@pytest.mark.parametrize("name", ["attention", "temperature"])
def test_a_figure_says_model_revision_and_date(plain, recorded, name):
    plain.goto(f"/model/{name}/")
    article = plain.inner_text("article")
    assert recorded["model"] in article
    assert recorded["revision"][:7] in article
    assert re.search(r"recorded on \w+ \d+, \d{4}", article)


def test_on_paper_the_tables_stay_and_the_fields_go(page):
    page.emulate_media(media="print")
    page.goto("/model/temperature/")
    expect(page.locator("table.cities")).to_be_visible()
    expect(page.locator(".lab:visible")).to_have_count(0)


def test_the_mask_is_walked_with_arrow_keys_and_each_row_is_said(page):
    page.goto("/model/attention/")
    status = page.locator("#mask-status")
    page.locator("table.mask").get_by_role("radio").first.check()
    expect(status).to_contain_text("may look only at itself")
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(status).to_contain_text("through may look at The, ·El, be, ·flows and at itself")
    expect(page.locator("table.mask tr.looks")).to_have_count(1)


@pytest.mark.parametrize("name", PAGES)
def test_every_field_and_button_has_a_name(page, name):
    page.goto(f"/model/{name}/?{urlencode(STATES[name])}")
    shown(page)
    tree = page.get_by_role("article").aria_snapshot()
    controls = re.findall(
        r"^\s*- (textbox|slider|spinbutton|combobox|radio|button)(.*)", tree, re.M
    )
    assert len(controls) >= 4
    assert [role for role, rest in controls if not rest.strip().startswith('"')] == []


# ---- Attention and temperature ------------------------------------------------------------------


def test_the_tiny_gpt_shows_where_a_letter_looks(page):
    page.goto("/model/attention/")
    page.get_by_role("button", name="Let the tiny GPT read it").click()
    status = page.locator("#live-status")
    expect(status).to_contain_text(f"Letter {len(SENTENCE)}, h, looks most at")
    page.get_by_role("slider").press("ArrowLeft")
    expect(status).to_contain_text(f"Letter {len(SENTENCE) - 1}, g, looks most at")
    page.get_by_role("slider").press("Home")
    expect(status).to_contain_text("Letter 1, T, looks most at T (letter 1, itself): 100%")


def test_letters_that_the_tiny_gpt_does_not_know_are_named(page):
    page.goto("/model/attention/")
    page.get_by_role("button", name="Let the tiny GPT read it").click()
    page.get_by_label("Your text").fill("Grüße")
    expect(page.locator("#unknown")).to_have_text(
        "The tiny GPT has never met ü ß. They are left out."
    )


def test_at_temperature_0_all_draws_are_the_likeliest(page):
    page.goto("/model/temperature/")
    slider = page.get_by_role("slider", name="Temperature").first
    slider.press("Home")
    expect(page.locator("#t-shown")).to_have_text("0")
    page.get_by_role("button", name="Draw 100").click()
    rows = page.locator("#draw-table tbody tr")
    expect(rows.first).to_contain_text("100%")
    assert [row.split()[-1] for row in rows.all_inner_texts()] == ["100"] + ["0"] * 12


def test_draws_come_near_the_probabilities(page, recorded):
    page.goto("/model/temperature/")
    page.get_by_role("button", name="Draw 100").click()
    page.get_by_role("button", name="Draw one").click()
    expect(page.locator("#draw-status")).to_contain_text("101 drawn with seed 1")
    page.goto("/model/temperature/?draws=10000")
    first = page.locator("#draw-table tbody tr").first
    expect(first).to_contain_text(re.compile(r"\d,\d{3}$"))
    drawn = int(first.inner_text().split()[-1].replace(",", ""))
    entries = recorded["prompts"][0]
    likeliest = 2.718281828 ** entries["shown"][0][1]
    assert drawn / 10_000 == pytest.approx(likeliest, abs=0.02)


def test_top_k_leaves_only_the_likeliest(page):
    page.goto("/model/temperature/?top_k=2")
    rows = page.locator("#draw-table tbody tr")
    expect(rows.nth(2)).to_contain_text("0%")
    shares = [float(row.split("\t")[-2].rstrip("%")) for row in rows.all_inner_texts()[:2]]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_the_story_goes_on_to_an_end_and_says_what_happened(page, recorded):
    page.goto("/model/temperature/")
    page.locator("#tree-lab").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Take the likeliest")).to_be_enabled()
    for _ in range(40):
        if page.get_by_role("button", name="Take the likeliest").is_disabled():
            break
        page.get_by_role("button", name="Take the likeliest").click()
    expect(page.locator("#tree-status")).to_contain_text(
        re.compile("The sentence is over|Here the recording ends")
    )
    expect(page.locator("#so-far")).to_contain_text(recorded["tree"]["prompt"])
    page.get_by_role("button", name="One back").click()
    expect(page.get_by_role("button", name="Draw the next token")).to_be_enabled()


def test_after_a_wrong_city_the_page_says_that_the_model_did_not_notice(page, recorded):
    wrong = [c["city"] for c in recorded["cities"] if not c["right"]]
    found = None

    def walk(nodes, text, way):
        nonlocal found
        for place, node in enumerate(nodes):
            if "next" not in node:
                continue
            told, here = text + node["text"], [*way, place]
            if node["next"]:
                walk(node["next"], told, here)
            elif not found and any(told.startswith(f" {city}") for city in wrong):
                found = here

    walk(recorded["tree"]["next"], "", [])
    assert found
    page.goto(f"/model/temperature/?path={'-'.join(map(str, found))}")
    expect(page.locator("#tree-status")).to_contain_text("The model did not notice.")


def test_the_tiny_gpt_writes_on_and_can_be_stopped(page):
    page.goto("/model/temperature/")
    page.get_by_label("It continues this text").fill("ROMEO:")
    page.get_by_role("button", name=re.compile("^Write")).click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#write-status")).to_contain_text("letters with seed 1")
    assert page.locator("#written").inner_text().startswith("ROMEO:")
    page.get_by_role("button", name="Write again").click()
    expect(page.locator("#write-status")).to_contain_text("500 letters with seed 1")
    assert len(page.locator("#written").text_content()) == len("ROMEO:") + 500


def test_the_same_seed_writes_the_same(page):
    texts = []
    for seed in (3, 3, 4):
        page.goto(f"/model/temperature/?text=ROMEO:&written=80&seed={seed}")
        expect(page.locator("#write-status")).to_contain_text("80 letters")
        texts.append(page.locator("#written").text_content())
    assert texts[0] == texts[1] != texts[2]


def test_with_reduced_motion_the_text_comes_at_once(context, page):
    page.emulate_media(reduced_motion="reduce")
    page.goto("/model/temperature/")
    page.evaluate(
        """() => {
            window.changes = 0;
            new MutationObserver((all) => { changes += all.length; })
                .observe(document.getElementById("written"), { childList: true });
        }"""
    )
    page.get_by_role("button", name=re.compile("^Write")).click()
    expect(page.locator("#write-status")).to_contain_text("500 letters")
    assert page.evaluate("changes") <= 4  # the beginning, and all of it
