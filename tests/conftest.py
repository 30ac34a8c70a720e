"""What several areas of tests share: a checkout to change, the built site, and a browser."""

import functools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from xdist.scheduler import LoadScopeScheduling

from course.cluster import Cluster
from course.scenes import ROOT

# Tests press Ctrl+C. Started in the background, pytest would ignore it, and all that it starts too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Two tests share two cores: the page may take its time.
expect.set_options(timeout=30_000)

CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name that is not this machine's own: there a browser offers no clipboard over http.
    "--host-resolver-rules=MAP course.test 127.0.0.1",
]


# These use the practice cluster, so they stay together: one is enough for all of them.
CLUSTER_FILES = {
    "tests/test_cluster.py",
    "tests/test_copy_through.py",
    "tests/test_lab_sbatch.py",
    "tests/test_pages_sessions.py",
    "tests/test_rehearse.py",
    "tests/test_semester.py",
}


class FileScheduling(LoadScopeScheduling):
    """For two at a time: the tests of a file stay together, and so do those with a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "cluster" if file in CLUSTER_FILES else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FileScheduling:
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    fixtures = {"cluster", "idle_cluster"}
    files = {item.nodeid.partition("::")[0] for item in items if fixtures & set(item.fixturenames)}
    if files - CLUSTER_FILES:
        raise pytest.UsageError(f"Add to CLUSTER_FILES in conftest.py: {files - CLUSTER_FILES}")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this checkout that a test may change; it shares the virtual environment."""
    copy = tmp_path / "checkout"
    leave_out = shutil.ignore_patterns(
        ".git", ".venv", "site", "build", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, copy, ignore=leave_out)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    # The folders' own commands are called build and site too, so they were left out.
    shutil.copy(ROOT / "scripts/build", copy / "scripts/build")
    return copy


def new_cluster(folder: Path) -> Cluster:
    """A practice cluster of its own, so that one that somebody is using goes on."""
    packages = ROOT / "build/cluster/packages"
    packages.mkdir(parents=True, exist_ok=True)
    (folder / "build/cluster").mkdir(parents=True)
    (folder / "build/cluster/packages").symlink_to(packages)
    for name in ("scripts", "lab_code"):
        (folder / name).symlink_to(ROOT / name)
    return Cluster(folder)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running practice cluster."""
    if os.geteuid() != 0:
        pytest.skip("not run: the practice cluster needs root")
    practice = new_cluster(tmp_path_factory.mktemp("cluster"))
    # A setting of pip, to see that the cluster's users have those of who starts it.
    settings = os.environ | {"PIP_RETRIES": "7"}
    subprocess.run([practice.checkout / "scripts/cluster", "start"], env=settings, check=True)
    yield practice
    practice.stop()


@pytest.fixture
def idle_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A practice cluster that is not started yet."""
    practice = new_cluster(tmp_path)
    yield practice
    practice.stop()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built once, as scripts/build does it."""
    run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        run = run.parent  # the folder that all workers share
    with FileLock(run / "site.lock"):
        if not (run / "site.built").exists():
            build = subprocess.run([ROOT / "scripts/build"], capture_output=True, text=True)
            assert build.returncode == 0, build.stdout + build.stderr
            (run / "site.built").touch()
    return ROOT / "site"


@pytest.fixture(scope="session")
def published() -> list[str]:
    """The addresses that instructors link by now, pages and anchors. They stay."""
    return (ROOT / "tests/addresses.txt").read_text(encoding="utf-8").split()


@pytest.fixture(scope="session")
def page_addresses(published: list[str]) -> list[str]:
    """The pages to read: no anchors, no data, no short addresses, which lead away at once."""
    return [
        address for address in published if address.endswith("/") and not address.startswith("/s/")
    ]


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def site_url(site: Path) -> Iterator[str]:
    """The address at which the built site is served, without a slash at the end."""
    handler = functools.partial(_QuietHandler, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    flags = CHROMIUM_FLAGS + (["--no-sandbox"] if os.geteuid() == 0 else [])
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def context(browser: Browser, site_url: str) -> Iterator[BrowserContext]:
    """A reader's browser that lets the site write to the clipboard, and the test read it."""
    context = browser.new_context(
        base_url=site_url, permissions=["clipboard-read", "clipboard-write"]
    )
    yield context
    context.close()


@pytest.fixture
def story(context: BrowserContext) -> Page:
    page = context.new_page()
    page.goto("/story/")
    return page
