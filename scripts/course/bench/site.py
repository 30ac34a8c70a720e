"""How long the site takes to build, also with ten times the scenes, and to show a change.

scripts/bench site [--times N]
"""

import argparse
import gzip
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from course.scenes import ROOT, load_scenes

TIMES_THE_SCENES = 10
FULL, CHANGE, GROWTH = 8.0, 1.0, 11.0  # seconds, seconds, times: what is wanted
EXERCISE = "exercises/4-tinygpt/index.html"
LEFT_OUT = ("site", "build", ".git", ".venv", "__pycache__", "*.egg-info", "workspace")


def copy_checkout(folder: Path) -> Path:
    """A copy of the checkout that may be changed; it shares the virtual environment."""
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (copy / ".venv").symlink_to(ROOT / ".venv")
    return copy


def multiply_scenes(checkout: Path) -> int:
    """Give the story each scene ten times, under numbers of their own; gives how many there are."""
    scenes = load_scenes()
    story = checkout / "docs/story.md"
    calls = []
    for scene in scenes:
        for tens in range(1, TIMES_THE_SCENES):
            number = 10 * tens + scene.number
            name = f"{number:02}{scene.path.name[2:]}"
            shutil.copy(scene.path, checkout / "lab_code/scenes" / name)
            calls.append(f"{{{{ scene({number}) }}}}\n")
    story.write_text(story.read_text(encoding="utf-8") + "\n" + "\n".join(calls), encoding="utf-8")
    return len(scenes) + len(calls)


def build(checkout: Path) -> float:
    """Seconds of one build. Raises CalledProcessError where it fails."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(checkout / "scripts")}
    subprocess.run(command, cwd=checkout, env=environment, check=True)
    return time.perf_counter() - begin


def builds(checkout: Path, times: int) -> float:
    """The median of some builds, in seconds."""
    return statistics.median(build(checkout) for _ in range(times))


def weight(checkout: Path) -> int:
    """Bytes of the exercise's page and of the styles and scripts that belong to it, compressed."""
    site = checkout / "site"
    files = [EXERCISE, "assets/site.css", "assets/theme.js", "assets/course.js"]
    return sum(len(gzip.compress((site / file).read_bytes(), 6)) for file in files)


def changes(checkout: Path, times: int) -> float:
    """The median of the seconds from a change of a page to its being served."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [checkout / "scripts/serve", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    page, address = checkout / "docs/rules.md", f"http://127.0.0.1:{port}/rules/"
    try:
        wait_for("Marie", address)
        time.sleep(2)  # until it watches the files
        seconds = []
        for number in range(times):
            begin = time.perf_counter()
            page.write_text(page.read_text(encoding="utf-8") + f"\nChange {number}.\n")
            wait_for(f"Change {number}.", address)
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_for(text: str, address: str) -> None:
    """Wait until the page has the text. Raises TimeoutError after a minute."""
    end = time.perf_counter() + 60
    while time.perf_counter() < end:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                if text in answer.read().decode():
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.02)
    raise TimeoutError(f"'{text}' did not appear on {address}")


def main() -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/bench site")
    parser.add_argument("--times", type=int, default=3, help="how often (%(default)s)")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        checkout = copy_checkout(Path(folder))
        full, exercise = builds(checkout, times), weight(checkout)
        pages = len(list((checkout / "site").rglob("*.html")))
        print(f"full build, {pages} pages: {full:.1f} s (wanted: under {FULL:g} s)")
        change = changes(checkout, times)
        print(f"a changed page in scripts/serve: {change:.1f} s (wanted: under {CHANGE:g} s)")
        scenes = multiply_scenes(checkout)
        many, exercise_then = builds(checkout, times), weight(checkout)
        pages = len(list((checkout / "site").rglob("*.html")))
        growth = many / full
        print(
            f"{scenes} scenes, {pages} pages: {many:.1f} s, {growth:.1f} times as long "
            f"(wanted: at most {GROWTH:g} times)"
        )
        print(f"exercise 4 with its styles and scripts: {exercise} bytes, then {exercise_then}")
    kept = full < FULL and change < CHANGE and growth <= GROWTH and exercise_then == exercise
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
