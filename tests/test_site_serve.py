"""scripts/serve: shows the site, and shows a change at once."""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def wait_for(text: str, url: str) -> None:
    """Wait until the page holds the text: a build takes a few seconds."""
    end = time.monotonic() + 90
    while text not in read(url):
        assert time.monotonic() < end, f"'{text}' did not appear on {url}"
        time.sleep(0.2)


@pytest.fixture
def server(checkout: Path):
    """scripts/serve of a checkout that may be changed: (checkout, address)."""
    port = free_port()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.Popen(
        [checkout / "scripts/serve", "--port", str(port)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    yield checkout, f"http://127.0.0.1:{port}"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_serve_shows_the_story_and_rebuilds_it_when_a_page_or_a_scene_changes(server):
    checkout, address = server
    wait_for("Marie and Martin", f"{address}/story/")

    page = checkout / "docs/story.md"
    page.write_text(page.read_text() + "\nThe page has changed.\n")
    wait_for("The page has changed.", f"{address}/story/")

    scene = checkout / "lab_code/scenes/01_hello.yaml"
    scene.write_text(scene.read_text().replace("title: The first job", "title: The changed job"))
    for page in ("story", "embed/scene-1"):
        wait_for("The changed job", f"{address}/{page}/")


@pytest.mark.parametrize("arguments", [["--port", "eighty"], ["--port"], ["--help-me"]])
def test_serve_says_how_it_is_used(checkout: Path, arguments):
    result = subprocess.run(
        [checkout / "scripts/serve", *arguments], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert result.stderr.startswith("Usage: scripts/serve [--port N]")
