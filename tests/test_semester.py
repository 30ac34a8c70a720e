"""The course at another place: other course values, on all pages, in all payloads, and played."""

import html
import re
import subprocess
from pathlib import Path

import pytest

from course.scenes import LAB, ROOT
from course.values import COURSE_ENV, load_values

OTHER = {
    "ACCOUNT": "hpc-lab27",
    "CLUSTER": "neptune",
    "LOGIN_HOST": "login3.neptune",
    "SSH_HOST": "login3.neptune.example.org",
    "FILESYSTEM": "scratch",
    "WORKSPACE": "secrets",
    "WORKSPACE_DAYS": "30",
    "MODULES": "python/3.12",
    "MODEL": "example/Tiny-1B-Chat",
    "MODEL_REVISION": "0123456789abcdef0123456789abcdef01234567",
}
# What would be left of the first course, as a reader reads it. Not here: values that are words of
# other things, too, such as "100".
FIRST = [
    *(
        re.escape(load_values(LAB / COURSE_ENV)[key])
        for key in ("ACCOUNT", "CLUSTER", "LOGIN_HOST", "SSH_HOST", "WORKSPACE", "MODULES")
    ),
    r"/data/horse",
    r"Qwen[\w/.-]*",
]
# Qwen2.5 is one of the tokenizers that one can try there, whichever model the course takes.
ABOUT_TOKENIZERS = ("model/tokens/", "assets/model/")
COMMENT = re.compile(r'<span class="c1">#(?!SBATCH)[^<]*</span>')
LEFT = re.compile(rf"(?<![\w-])({'|'.join(FIRST)})(?![\w-])", re.IGNORECASE)

# Pages about the machines of ZIH tell of them whatever the course values are; /teach/ says so. So
# do the comments of the lab's files, where a number comes from Alpha's limits.
ABOUT_ZIH = {"machines/index.html", "trouble/index.html", "search/search_index.json"}


def set_values(checkout: Path, *changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts/set-values", *changes], capture_output=True, text=True
    )


@pytest.fixture
def other(checkout: Path) -> Path:
    """The checkout of another course."""
    result = set_values(checkout, *(f"{key}={value}" for key, value in OTHER.items()))
    assert result.returncode == 0, result.stderr
    return checkout


def test_nothing_of_the_first_course_is_left_on_any_page(other):
    build = subprocess.run([other / "scripts/build"], capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    texts = {
        path.relative_to(other / "site").as_posix(): path.read_text(encoding="utf-8")
        for path in (other / "site").rglob("*")
        if path.suffix in (".html", ".json", ".xml", ".js") and "javascripts" not in path.parts
    }
    left = {
        name: sorted({match[0] for match in LEFT.finditer(html.unescape(COMMENT.sub("", text)))})
        for name, text in texts.items()
        if name not in ABOUT_ZIH and not name.startswith(ABOUT_TOKENIZERS)
    }
    assert {name: found for name, found in left.items() if found} == {}
    story = html.unescape(re.sub(r"<[^>]+>", "", texts["story/index.html"]))
    for text in (
        "srun --account=hpc-lab27 --nodes=1",
        "/data/scratch/ws/<zih-login>-secrets",
        "downloaded example/Tiny-1B-Chat to",
        "Both are logged in on Neptune.",
    ):
        assert text in story


def test_the_job_scripts_have_the_other_account(other):
    for script in (other / "lab_code/hpc_lab").rglob("*.sbatch"):
        orders = re.findall(r"^#SBATCH --account=(.*)$", script.read_text(), re.MULTILINE)
        assert orders == ["hpc-lab27"], script.name


@pytest.mark.parametrize(
    ("take", "takes"),
    [
        ("1", 2),
        # Account, filesystem and workspace in one take; it installs the environment anew.
        pytest.param("0/srun-and-source", 1, marks=pytest.mark.soak),
    ],
)
def test_the_other_course_is_played(cluster, other, take, takes):
    (other / "build/cluster").mkdir(parents=True)
    for made in ("cluster/packages", "hub"):  # the fixture has made them
        (other / "build" / made).symlink_to(ROOT / "build" / made)
    try:
        played = subprocess.run([other / "scripts/rehearse", take], capture_output=True, text=True)
    finally:
        subprocess.run([other / "scripts/cluster", "stop"], check=True)
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.count("as told") == takes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ACCOUNT=p lv", "ACCOUNT='p lv' cannot be right"),
        ("ACCOUNT=", "ACCOUNT='' cannot be right"),
        ("ACCOUNT=$(id)", "ACCOUNT='$(id)' cannot be right"),
        ("SSH_HOST=login;rm", "SSH_HOST='login;rm' cannot be right"),
        ("WORKSPACE=../x", "WORKSPACE='../x' cannot be right"),
        ("WORKSPACE_DAYS=many", "WORKSPACE_DAYS='many' cannot be right"),
        ("TORCH_BUILD=gpu", "cuda or cpu"),
        ("MODEL=Qwen", "MODEL='Qwen' cannot be right"),
        ("MODEL_REVISION=main", "MODEL_REVISION='main' cannot be right"),
        ("ACOUNT=p_x", "has no ACOUNT"),
    ],
)
def test_a_wrong_value_is_named_and_changes_nothing(checkout, change, message):
    file = checkout / "lab_code/hpc_lab" / COURSE_ENV
    before = file.read_text()
    result = set_values(checkout, "WORKSPACE=other", change)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FILESYSTEM=horse\n", "", "course.env has no FILESYSTEM"),
        ("FILESYSTEM=horse\n", "FILESYSTEM=a/b\n", "FILESYSTEM='a/b' cannot be right"),
        ("FILESYSTEM=horse\n", "FILESYSTEM=horse\nCOLOR=red\n", "course.env has a COLOR"),
    ],
)
def test_a_wrong_file_stops_the_build_with_its_key(checkout, old, new, message):
    file = checkout / "lab_code/hpc_lab" / COURSE_ENV
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    build = subprocess.run([checkout / "scripts/build"], capture_output=True, text=True)
    assert build.returncode != 0
    assert message in build.stderr
    assert "Traceback" not in build.stderr
