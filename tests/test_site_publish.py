"""The files with which GitLab and GitHub publish the site, and what the site's address changes."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from course.scenes import ROOT

ADDRESS = "https://pages.example.org/llm-course"


@pytest.fixture
def published_site(checkout: Path) -> Path:
    """The site as GitLab's job makes it: its script's own lines, with its own variables."""
    job = yaml.safe_load((checkout / ".gitlab-ci.yml").read_text())["pages"]
    assert job["variables"] == {"SITE_URL": "$CI_PAGES_URL"}
    result = subprocess.run(
        ["bash", "-e", "-c", "\n".join(job["script"])],
        cwd=checkout,
        env=os.environ | {"SITE_URL": ADDRESS},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    [folder] = job["artifacts"]["paths"]
    return checkout / folder


def test_a_published_site_names_its_address(published_site):
    story = (published_site / "story/index.html").read_text()
    assert f'<link rel="canonical" href="{ADDRESS}/story/">' in story
    assert f'<meta property="og:url" content="{ADDRESS}/story/">' in story
    sitemap = re.findall("<loc>(.*)</loc>", (published_site / "sitemap.xml").read_text())
    assert f"{ADDRESS}/story/" in sitemap
    assert [place for place in sitemap if "/embed/" in place or "/s/" in place] == []
    teach = (published_site / "teach/index.html").read_text()
    assert f"{ADDRESS}/embed/scene-3/" in teach


def test_github_builds_with_the_projects_own_command_and_fixed_actions():
    job = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text())["jobs"]["publish"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["scripts/build"]
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert len(used) == 4
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)


@pytest.mark.parametrize("file", [".gitlab-ci.yml", ".github/workflows/pages.yml"])
def test_publishing_needs_no_secret(file):
    assert "secret" not in (ROOT / file).read_text().lower()
