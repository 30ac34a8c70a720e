"""The reader's own login, project and job numbers: entered once, filled in, removed."""

import random
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect

PLACEHOLDER = "<zih-login>"
DIALOG = "Your login and project"
# What a command may have: nothing that starts another one, redirects, or ends the line.
HARMLESS = re.compile(r"[\w ./:=@%$~&-]*")


def enter(page: Page, login: str, project: str = "") -> None:
    page.get_by_role("button", name="Your login and project").click()
    page.get_by_label("Your login on the cluster").fill(login)
    page.get_by_label("Your project").fill(project)
    page.get_by_role("button", name="Save").click()


def job_field(page: Page, shown: str):
    return page.get_by_label(f"Your job number instead of {shown}")


def clipboard(page: Page) -> str:
    return page.evaluate("navigator.clipboard.readText()")


def kept(page: Page) -> list[str | None]:
    return page.evaluate(
        "[localStorage.getItem('course-values'), sessionStorage.getItem('course-values')]"
    )


def shown(page: Page, name: str) -> set[str]:
    return set(page.locator(f"[data-value={name}]").all_inner_texts())


def copied(page: Page, name: str) -> str:
    button = page.get_by_role("button", name=name)
    button.click()
    expect(button).to_have_text("Copied")
    return clipboard(page)


def test_a_click_on_a_placeholder_asks_and_fills_in_all_places(story):
    story.locator("[data-value=LOGIN]").first.click()
    dialog = story.get_by_role("dialog", name=DIALOG)
    expect(dialog).to_be_visible()
    story.keyboard.type("marie")
    story.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    assert shown(story, "LOGIN") == {"marie"}
    assert PLACEHOLDER not in story.locator("article").inner_text()


def test_a_placeholder_is_used_by_keyboard_and_gets_the_focus_back(story):
    placeholder = story.get_by_role("button", name=PLACEHOLDER).nth(1)
    placeholder.press("Enter")
    expect(story.get_by_label("Your login on the cluster")).to_be_focused()
    story.keyboard.press("Escape")
    expect(story.get_by_role("dialog", name=DIALOG)).to_be_hidden()
    expect(placeholder).to_be_focused()


def test_values_are_there_on_other_pages_and_after_a_reload(context, story):
    enter(story, "marie", "p_other")
    story.reload()
    assert shown(story, "LOGIN") == {"marie"}
    command = copied(story, "srun --account")
    assert command.startswith("srun --account=p_other --nodes=1 ")
    for address in ("/embed/scene-0/", "/teach/"):
        other = context.new_page()
        other.goto(address)
        assert (shown(other, "LOGIN"), shown(other, "ACCOUNT")) == ({"marie"}, {"p_other"})


def test_values_entered_in_another_tab_appear_here(context, story):
    other = context.new_page()
    other.goto("/rules/")
    enter(other, "marie")
    expect(story.locator("[data-value=LOGIN]").first).to_have_text("marie")


def test_removing_the_values_leaves_no_trace(story):
    before = story.locator("article").inner_html(), story.evaluate("Object.keys(localStorage)")
    enter(story, "marie", "p_other")
    job_field(story, "1234570").fill("77")
    assert kept(story) == ['{"LOGIN":"marie","ACCOUNT":"p_other"}', '{"2/job1":"77"}']
    story.get_by_role("button", name="Your login and project").click()
    story.get_by_role("button", name="Forget all").click()
    assert kept(story) == [None, None]
    story.reload()
    after = story.locator("article").inner_html(), story.evaluate("Object.keys(localStorage)")
    assert after == before
    assert story.evaluate("document.cookie") == ""


@pytest.mark.parametrize(
    ("login", "why"),
    [
        ("marie@tu-dresden.de", "not your mail address"),
        ("4711815", "matriculation number"),
        ("marie curie", "starts with a letter and has only"),
        (PLACEHOLDER, "starts with a letter and has only"),
        ("m" * 33, "at most 32"),
    ],
)
def test_what_is_no_login_says_why(story, login, why):
    enter(story, login)
    field = story.get_by_label("Your login on the cluster")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile(why))
    expect(field).to_have_attribute("aria-invalid", "true")
    assert kept(story) == [None, None]


def test_what_is_no_project_says_why(story):
    enter(story, "marie", "p_lv llmsecrets")
    expect(story.get_by_label("Your project")).to_have_accessible_description(
        re.compile("A project has only letters")
    )
    assert kept(story) == [None, None]


def test_a_login_typed_by_a_phone_is_mended(story):
    enter(story, " Marie ")
    assert shown(story, "LOGIN") == {"marie"}


@pytest.mark.parametrize(
    "typed",
    [
        "4711",
        " 4711 ",
        "Submitted batch job 4711",
        "sweep (array) job : 4711",
        "collect job       : 4711 (waits for 4710, squeue shows it as Dependency)",
    ],
)
def test_a_job_number_or_the_line_that_has_it_is_filled_in(story, typed):
    job_field(story, "1234570").fill(typed)
    assert copied(story, "whypending") == "whypending 4711"
    assert copied(story, "tail -n 2 logs/sleepy") == "tail -n 2 logs/sleepy-4711.out"
    assert "1234570" not in story.locator("[data-scene='2'] .terminal code").all_inner_texts()


def test_a_job_number_belongs_to_its_scene_and_to_the_visit(context, story):
    job_field(story, "1234570").fill("4711")
    story.reload()
    expect(job_field(story, "1234570")).to_have_value("4711")
    assert story.locator("[data-scene='1'] [data-value=job1]").first.inner_text() == "1234567"
    other = context.new_page()  # another tab is another visit
    other.goto("/story/")
    expect(job_field(other, "1234570")).to_have_value("")


def test_what_is_no_job_number_says_why_and_changes_nothing(story):
    field = job_field(story, "1234570")
    field.fill("twelve")
    field.press("Tab")
    expect(field).to_have_accessible_description(re.compile("up to 10 digits"))
    assert kept(story) == [None, None]
    field.fill("")
    field.press("Tab")
    expect(field).to_have_accessible_description("")


def test_a_number_of_the_story_is_named_when_it_is_copied(story):
    assert copied(story, "whypending") == "whypending 1234570"
    status = story.get_by_role("status")
    expect(status).to_contain_text("1234570 is the number in the story")
    expect(status).to_be_in_viewport()


@pytest.fixture
def asking_story(context: BrowserContext) -> Page:
    """The story, with a command that has a login in it, which no take has so far."""
    page = context.new_page()
    page.route("**/story/", lambda route: route.fulfill(body=with_login(route.fetch().text())))
    page.goto("/story/")
    return page


def with_login(html: str) -> str:
    words = ("squeue", "--me", "--start")
    command = " ".join(f'<span class="word">{word}</span>' for word in words)
    assert command in html
    login = '<span class="value" data-value="LOGIN">&lt;zih-login&gt;</span>'
    return html.replace(command, f"ssh {login}@login")


def test_a_command_with_a_login_is_copied_only_with_one(asking_story):
    button = asking_story.get_by_role("button", name="command 1 of scene 2, asking Slurm")
    asking_story.evaluate("navigator.clipboard.writeText('nothing')")
    button.click()
    dialog = asking_story.get_by_role("dialog", name=DIALOG)
    expect(dialog).to_contain_text("Your login belongs into this command")
    assert clipboard(asking_story) == "nothing"
    asking_story.keyboard.type("marie")
    asking_story.keyboard.press("Enter")
    expect(button).to_be_focused()
    button.click()
    expect(button).to_have_text("Copied")
    assert clipboard(asking_story) == "ssh marie@login"


def test_on_paper_the_placeholders_stay(story):
    enter(story, "marie", "p_other")
    story.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown(story, "LOGIN") == {PLACEHOLDER}
    assert shown(story, "ACCOUNT") == {"p_lv_llmsecrets"}
    story.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown(story, "LOGIN") == {"marie"}


@pytest.mark.parametrize("address", ["/story/", "/embed/scene-0/", "/teach/"])
def test_without_javascript_and_on_paper_the_placeholders_are_explained(browser, site_url, address):
    context = browser.new_context(base_url=site_url, java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        assert shown(page, "LOGIN") == {PLACEHOLDER}
        expect(page.get_by_text("stands for your own login").last).to_be_visible()
        for control in page.locator("dialog, .values-open, .terminal__jobs, .screen-only").all():
            expect(control).to_be_hidden()
    context.close()


def test_values_work_where_the_browser_keeps_nothing(context):
    context.add_init_script(
        "for (const kind of ['localStorage', 'sessionStorage'])"
        " Object.defineProperty(window, kind, {get() { throw new DOMException('no'); }})"
    )
    page = context.new_page()
    page.goto("/embed/scene-2/")
    enter(page, "marie")
    expect(page.get_by_role("status")).to_contain_text("on this page only")
    job_field(page, "1234570").fill("4711")
    assert copied(page, "whypending") == "whypending 4711"


# --- Hostile values ---

PIECES = [
    *"<>\"'`$(){}[];&|\\!#*?~^%=+,.:/@ \t\n\r\0",
    *"\u200b\u200d\u202e\ufeff\u2028\u2029\u212a\u0130ß\U0001f600",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</code></pre>",
    "javascript:alert(1)",
    "{{7*7}}",
    "${HOME}",
    "$(id)",
    "; rm -rf ~",
    "&& curl x",
    "| sh",
    "> ~/.bashrc",
    "__proto__",
    "constructor",
    "&lt;b&gt;",
    "%3Cscript%3E",
    "Submitted batch job ",
    "1234",
    "marie",
    "p_lv",
    "\u0445",
    "\uff19",
    "a" * 5000,
]


def hostile(count: int) -> list[str]:
    chance = random.Random(7)
    return ["".join(chance.choices(PIECES, k=chance.randint(1, 6))) for _ in range(count)]


# In one call, what a reader does with each value: type it, save, copy. Gives what was copied.
TRY_ALL = """async values => {
    const seen = [];
    navigator.clipboard.writeText = async text => { seen.push(text); };
    const field = id => document.getElementById(id);
    const press = selector => document.querySelector(selector).click();
    const job = document.querySelector("[data-scene='2'] .terminal__jobs input");
    const buttons = document.querySelectorAll(":is([data-scene='0'], [data-scene='2']) .copy");
    for (const value of values) {
        for (const name of ["LOGIN", "ACCOUNT"]) {
            press(".values-open");
            field("values-LOGIN").value = name === "LOGIN" ? value : "";
            field("values-ACCOUNT").value = name === "ACCOUNT" ? value : "";
            document.querySelector(".values form").requestSubmit();
            press(".values-cancel");
        }
        job.value = value;
        job.dispatchEvent(new Event("input", {bubbles: true}));
        job.dispatchEvent(new Event("change", {bubbles: true}));
        for (const button of buttons) button.click();
        await null;
    }
    return [...new Set(seen)];
}"""


def quiet(page: Page) -> list[str]:
    """Collects what must not happen: a dialog of the page, a failure, a request to elsewhere."""
    happened: list[str] = []
    page.on("dialog", lambda dialog: (happened.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: happened.append(str(error)))
    page.on("popup", lambda popup: happened.append(popup.url))
    page.on("framenavigated", lambda frame: happened.append(f"left for {frame.url}"))
    return happened


def elements(page: Page) -> int:
    return page.evaluate("document.querySelectorAll('*').length")


def test_hostile_values_stay_text_and_off_the_clipboard(story):
    before, happened = elements(story), quiet(story)
    seen = story.evaluate(TRY_ALL, hostile(1000))
    assert len(seen) > 10
    assert [text for text in seen if not HARMLESS.fullmatch(text) or "\n" in text] == []
    assert happened == []
    assert elements(story) == before


def test_hostile_values_in_the_browsers_storage_are_not_used(context):
    page = context.new_page()
    page.goto("/embed/scene-0/")
    before, happened = page.locator("article").inner_html(), quiet(page)
    seen = page.evaluate(
        """values => values.filter(value => {
            localStorage.setItem("course-values", value);
            dispatchEvent(new StorageEvent("storage"));
            for (const name of ["LOGIN", "ACCOUNT", "0/job1", "__proto__"]) {
                localStorage.setItem("course-values", JSON.stringify({[name]: value}));
                sessionStorage.setItem("course-values", JSON.stringify({[name]: value}));
                dispatchEvent(new StorageEvent("storage"));
            }
            return [...document.querySelectorAll(".value--own")].length;
        })""",
        hostile(1000),
    )
    assert [value for value in seen if not re.fullmatch(r"[a-z0-9_-]+", value)] == []
    page.evaluate("localStorage.clear(); dispatchEvent(new StorageEvent('storage'))")
    assert page.locator("article").inner_html() == before
    assert happened == []


def test_hostile_addresses_run_nothing_and_are_not_copied(context, site_url):
    page = context.new_page()
    page.goto("/embed/scene-1-mkdir-first/")
    before, happened = elements(page), quiet(page)
    seen = page.evaluate(
        """async values => {
            const seen = [];
            navigator.clipboard.writeText = async text => { seen.push(text); };
            for (const value of values) {
                history.replaceState(null, "", "?h=" + value + "#" + value);
                document.querySelector("a.share").click();
                await null;
            }
            return [...new Set(seen)];
        }""",
        [text[:500] for text in hostile(1000)],
    )
    assert seen == [f"{site_url}/story/#scene-1-mkdir-first"]
    assert [text for text in happened if not text.startswith("left for")] == []
    assert elements(page) == before


def test_pages_opened_by_hostile_addresses_run_nothing(context, site_url):
    page = context.new_page()
    happened = quiet(page)
    for text in hostile(40):
        page.goto(f"/teach/?h={quote(text[:300])}#{text[:300]}")
        iframe = page.locator(".snippet code").first.text_content()
        assert f'src="{site_url}/embed/scene-0/"' in iframe
    assert [text for text in happened if not text.startswith("left for")] == []
