"""The field on /trouble/: what is pasted finds its entry."""

import re
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect

from course.scenes import LAB, Troubles, load_pages

MESSAGES = yaml.safe_load(Path(__file__).with_name("pasted_messages.yaml").read_text())
SIGNS = ".trouble__message code, .trouble__symptom"  # what an entry shows of what one sees
ENTRIES = [t for file in load_pages() if isinstance(file, Troubles) for t in file.troubles]


@pytest.fixture
def trouble(context) -> Page:
    page = context.new_page()
    page.goto("/trouble/")
    return page


def first(page: Page) -> str:
    return page.locator(".finder__found h3").first.get_attribute("id")


def test_there_are_at_least_30_entries_and_25_messages_of_the_practice_cluster():
    assert len(ENTRIES) >= 30
    assert len(MESSAGES) >= 25


def test_messages_that_were_printed_find_their_entry_first(trouble):
    wrong = []
    for message in MESSAGES:
        trouble.get_by_label("What does your terminal say?").fill(message["pasted"])
        if first(trouble) != message["entry"]:
            wrong.append((message["entry"], first(trouble)))
    assert wrong == []


def test_each_entry_is_found_by_its_own_message(trouble):
    wrong = []
    for entry in ENTRIES:
        signs = trouble.locator(f".trouble:has(#{entry.id})").locator(SIGNS).all_text_contents()
        for sign in signs:
            trouble.get_by_label("What does your terminal say?").fill(sign)
            if first(trouble) != entry.id:
                wrong.append((entry.id, first(trouble)))
        assert signs, entry.id
    assert wrong == []


@pytest.mark.parametrize(
    ("pasted", "entry"),
    [
        ("DUE TO TIME LIMIT", "time-limit"),
        ("dos line breaks", "windows-line-ends"),
        ("bash: squeue: command not found", "sbatch-command-not-found"),
        ("zsh: command not found: scancel", "sbatch-command-not-found"),
        ("Command 'srun' not found, but can be installed with:", "sbatch-command-not-found"),
        ("bash: python: command not found", "python-command-not-found"),
        ("Permission denied, please try again.", "ssh-permission-denied"),
        (
            "ssh: Could not resolve hostname alpha: Name or service not known",
            "could-not-resolve-hostname",
        ),
        ("-bash: /home/x/lab/submit_sweep.sh: line 7: WS_DIR: run source", "ws-dir-empty"),
        (
            "Tried to open \u2018hello.py\u2019: can\u2019t open file \u2018/tmp/hello.py\u2019",
            "wrong-folder",
        ),
    ],
)
def test_parts_other_folders_and_other_quotes_are_borne(trouble, pasted, entry):
    trouble.get_by_label("What does your terminal say?").fill(pasted)
    assert first(trouble) == entry


def test_what_is_unknown_is_said_and_nothing_is_hidden(trouble):
    trouble.get_by_label("What does your terminal say?").fill("qwertzuiop asdfghjkl")
    expect(trouble.get_by_role("status").first).to_contain_text("No entry has this")
    expect(trouble.locator(".trouble:visible")).to_have_count(len(ENTRIES))


def test_an_emptied_field_brings_all_entries_back_in_their_order(trouble):
    before = trouble.locator(".trouble h3").evaluate_all("all => all.map(one => one.id)")
    field = trouble.get_by_label("What does your terminal say?")
    field.fill("DUE TO TIME LIMIT")
    field.fill("")
    after = trouble.locator(".trouble h3").evaluate_all("all => all.map(one => one.id)")
    assert after == before
    expect(trouble.locator(".trouble:visible")).to_have_count(len(ENTRIES))


def test_what_is_pasted_is_text_and_never_run(trouble):
    field = trouble.get_by_label("What does your terminal say?")
    field.fill("<img src=x onerror=document.title='run'> .*+?^${}()|[]\\ " + "x" * 5000)
    assert trouble.title() != "run"


def test_without_javascript_all_entries_are_there_and_no_field(browser, site_url):
    context = browser.new_context(base_url=site_url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/trouble/")
    expect(page.locator(".trouble:visible")).to_have_count(len(ENTRIES))
    expect(page.locator(".finder")).to_be_hidden()
    context.close()


# --- The messages of the lab's own files ---

OF_THE_LAB = """
    ws-dir-empty run-not-sourced no-environment setup-on-the-login-node workspace-expired
    another-python no-pytorch no-gpu pytorch-without-cuda module-cannot-be-loaded
    model-not-downloaded model-half-downloaded space-in-sbatch out-of-memory-on-the-gpu nan-loss
    option-of-sbatch
"""
# What a message has where a file of the lab has a variable.
FILLED_IN = ("<<WORKSPACE>>", "<<MODEL>>", "Python", "nan", "False")


def lab_texts() -> list[str]:
    """The lab's files; a text that goes on in the next line is one again."""
    texts = []
    for file in LAB.rglob("*.*"):
        if file.suffix in (".py", ".sh", ".sbatch"):
            text = file.read_text(encoding="utf-8")
            text = re.sub(r'" \\\n\s*"', " ", text)  # in a shell script: two words of echo
            texts.append(re.sub(r'"\n\s*f?"', "", text))  # in Python
    return texts


def pieces(line: str) -> list[str]:
    """What is left of a message without what varies: values, numbers, names of files."""
    for word in FILLED_IN:
        line = line.replace(word, "…")
    line = re.sub(r"\S*[/.]\S*\w|\d+|:|<-", "…", line)
    return [piece for part in line.split("…") if len(piece := part.strip()) > 4]


@pytest.mark.parametrize("name", OF_THE_LAB.split())
def test_a_message_of_the_lab_is_what_a_file_of_the_lab_prints(name):
    [entry] = [entry for entry in ENTRIES if entry.id == name]
    texts = lab_texts()
    for line in entry.message.splitlines():
        found = [text for text in texts if all(piece in text for piece in pieces(line))]
        assert pieces(line) and found, f"No file of the lab prints: {line}"
