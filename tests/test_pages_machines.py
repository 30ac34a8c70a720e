"""The page on the machines: where its facts come from, and that the lab keeps within the limits."""

import html
import re
import shlex
from pathlib import Path

import pytest

from course.machines import load_facts
from course.scenes import LAB, load_pages, load_scenes
from course.values import COURSE_ENV, load_values

SCRIPTS = sorted(LAB.rglob("*.sbatch"))
LIMITS = {name: fact.value for name, fact in load_facts()["limits"].items()}
MEGABYTES = {"": 1, "M": 1, "G": 1024}


def options_of_script(script: Path) -> dict[str, str]:
    lines = re.findall(r"^#SBATCH (--\S+)", script.read_text(), re.MULTILINE)
    return dict(line.split("=", 1) for line in lines)


def options_of_command(command: str) -> dict[str, str]:
    """What a command asks for: its own options win over those of its job script."""
    words = shlex.split(command)
    options = {}
    for script in SCRIPTS:
        if script.name in words:
            words = words[: words.index(script.name)]  # what is behind it goes to the program
            options = options_of_script(script)
    return options | dict(word.split("=", 1) for word in words if re.match("--.+=", word))


def minutes(time: str) -> float:
    hours, minutes, seconds = map(int, time.split(":"))
    return hours * 60 + minutes + seconds / 60


def assert_within_limits(options: dict[str, str]) -> None:
    assert minutes(options["--time"]) <= LIMITS["days"] * 24 * 60
    if "--gres" in options:
        gpus = int(re.fullmatch(r"gpu(?::(\d+))?", options["--gres"])[1] or 1)
        cpus = int(options["--cpus-per-task"]) * int(options.get("--ntasks", 1))
        amount, unit = re.fullmatch(r"(\d+)([MG]?)", options["--mem-per-cpu"]).groups()
        assert cpus <= LIMITS["cpus_per_gpu"] * gpus
        assert cpus * int(amount) * MEGABYTES[unit] <= LIMITS["megabytes_per_gpu"] * gpus


def test_each_lab_but_the_setup_has_a_job_script():
    labs = {folder.name for folder in LAB.iterdir() if re.match("0[1-6]_", folder.name)}
    assert {script.parent.name for script in SCRIPTS} == labs


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_job_script_keeps_within_alphas_limits(script):
    options = options_of_script(script)
    assert options["--mem-per-cpu"]
    assert_within_limits(options)


COMMANDS = sorted(
    {
        command
        for file in [*load_scenes(), *load_pages()]
        for take in file.takes
        if take.works
        for command in take.commands
        if re.search(r"\b(sbatch|srun) .*--\S+=.*(\.sbatch|--pty)", command)
    }
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_asks_for_something_keeps_within_alphas_limits(command):
    assert_within_limits(options_of_command(command))


def test_options_of_a_command_win_over_those_of_its_script():
    options = options_of_command("mkdir -p logs && sbatch --gres=gpu:2 gpu.sbatch --time=1")
    assert options == {**options_of_script(LAB / "03_gpu/gpu.sbatch"), "--gres": "gpu:2"}
    with pytest.raises(AssertionError):
        assert_within_limits(options_of_command("sbatch --cpus-per-task=8 gpu.sbatch"))


@pytest.mark.parametrize(
    "fact",
    ["[37]", "[37, nowhere, 2026-03]", "[37, overview, 2026-13]", "[37, overview, 2026-03-01]"],
)
def test_a_fact_without_a_source_or_a_month_is_refused(fact, tmp_path):
    file = tmp_path / "machines.yaml"
    file.write_text(
        "pages: {overview: {title: Overview, path: overview/}}\n"
        f"clusters: {{alpha: {{nodes: {fact}}}}}\n"
        "limits: {}\n"
    )
    with pytest.raises(ValueError, match="alpha, nodes: a fact is"):
        load_facts(file)


# A login node as ZIH or a prompt names it, and what stands behind the @ of a prompt.
HOST = re.compile(
    r"\blogin\d?\.[\w.-]*\w|\b[\w-]+(?:\.[\w-]+)*\.hpc\.tu-dresden\.de|(?<=@)[\w.]+(?=\$)"
)
OTHERS = {"compendium.hpc.tu-dresden.de", "local"}  # the documentation, the reader's own machine


def test_no_page_but_that_of_the_machines_names_a_host_of_another_cluster(site):
    values = load_values(LAB / COURSE_ENV)
    ours = {values["LOGIN_HOST"], values["SSH_HOST"], values["CLUSTER"], *OTHERS}
    found = {}
    for path in site.rglob("index.html"):
        text = html.unescape(re.sub(r"<(?!button)[^>]+>", "", path.read_text(encoding="utf-8")))
        found[path.relative_to(site).as_posix()] = set(HOST.findall(text))
    assert found.pop("machines/index.html") - ours  # here they belong
    assert {page: hosts - ours for page, hosts in found.items() if hosts - ours} == {}
    assert values["LOGIN_HOST"] in found["exercises/1-hello/index.html"]
