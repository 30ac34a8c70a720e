"""What the site's policy forbids, and what the site keeps."""

import re
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.scenes import ROOT


def refusal(page: Page) -> AbstractContextManager:
    """Waits until the browser says that the policy forbids something."""
    return page.expect_console_message(lambda said: "Content Security Policy" in said.text)


@pytest.fixture
def page(context: BrowserContext) -> Page:
    page = context.new_page()
    page.goto("/story/")
    return page


def test_an_injected_inline_script_does_not_run(page):
    with refusal(page):
        page.evaluate(
            """document.querySelector("article").append(Object.assign(
                document.createElement("script"), {textContent: "window.intruder = true"}))"""
        )
    with refusal(page):
        page.evaluate("""document.querySelector("article").insertAdjacentHTML(
            "beforeend", "<img src=x onerror='window.intruder = true'>")""")
    assert page.evaluate("window.intruder") is None


def test_a_script_in_the_pages_own_html_does_not_run(context):
    page = context.new_page()

    def inject(route):
        html, intruder = route.fetch().text(), "<script>window.intruder = true</script>"
        html = html.replace("<article", f"{intruder}<article")
        route.fulfill(body=html, content_type="text/html")

    page.route("**/story/", inject)
    page.goto("/story/")
    expect(page.locator(".copy").first).to_be_visible()
    assert "window.intruder" in page.content()
    assert page.evaluate("window.intruder") is None


@pytest.mark.parametrize(
    "element",
    [
        "<img src='http://course.test/a.png'>",
        "<iframe src='http://course.test/'></iframe>",
        "<link rel='stylesheet' href='http://course.test/a.css'>",
        "<form action='http://course.test/'><input name='a'></form>",
    ],
)
def test_nothing_is_asked_of_another_host(page, element):
    asked = []
    page.on("requestfinished", lambda request: asked.append(request.url))
    with refusal(page):
        page.evaluate(
            """html => {
                document.querySelector("article").insertAdjacentHTML("beforeend", html);
                document.querySelector("article > form:last-child")?.submit();
            }""",
            element,
        )
    assert [url for url in asked if "course.test" in url] == []


def test_no_page_keeps_anything_that_the_reader_did_not_enter(context, page_addresses):
    page = context.new_page()
    for address in page_addresses:
        page.goto(address)
    page.goto("/rules/")
    page.get_by_placeholder("Search").press_sequentially("sbatch")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    assert page.evaluate("[Object.keys(localStorage), Object.keys(sessionStorage)]") == [[], []]
    assert context.cookies() == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Dark mode").press("Enter")
    assert page.evaluate("Object.keys(localStorage)") == ["course-scheme"]


def test_the_example_for_web_servers_has_the_pages_policy(site):
    policy = re.search(r'Policy" content="([^"]*)"', (site / "index.html").read_text())[1]
    example = (ROOT / "publish/nginx.conf").read_text()
    assert f'"{policy}; frame-ancestors ' in example


@pytest.fixture
def file_page(browser, site) -> Page:
    """The home page, opened from the disk."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    yield page
    page.close()


def test_opened_from_the_disk_the_links_lead_to_pages(file_page):
    file_page.get_by_role("link", name="Read the story").click()
    file_page.wait_for_url(re.compile("/story/index.html$"))
    file_page.get_by_role("navigation").get_by_role("link", name="Trouble").first.click()
    expect(file_page.get_by_role("heading", level=1)).to_contain_text("Trouble")


def test_opened_from_the_disk_only_the_search_is_missing_and_says_so(file_page):
    field = file_page.get_by_role("textbox", name="Search")
    expect(field).to_be_disabled()
    expect(field).to_have_attribute("placeholder", re.compile("it needs a web server"))
    button = file_page.get_by_role("button", name="mkdir -p logs && sbatch hello.sbatch")
    button.click()
    expect(button).to_have_text("Copied")
    file_page.get_by_role("button", name="Dark mode").click()
    expect(file_page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    assert file_page.evaluate(
        "document.fonts.ready.then(fonts => [...fonts].some(font => font.status === 'loaded'))"
    )
