"""The environment that students get: the real requirements, installed by the real script."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from setup_machine import LAB, Machine

PACKAGES = ["torch", "transformers", "numpy", "matplotlib"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """With packages from where this machine's pip has them, in the build that pip gave us here."""
    machine = Machine(tmp_path_factory.mktemp("real"))
    machine.env = {key: value for key, value in os.environ.items() if key.startswith("PIP_")} | {
        key: value for key, value in machine.env.items() if key != "PIP_CONFIG_FILE"
    }
    shutil.copy(LAB / "00_setup" / "requirements.txt", machine.setup)
    shutil.copy(LAB / "04_tinygpt" / "shakespeare.txt", machine.lab / "04_tinygpt")
    machine.set_values(TORCH_BUILD="cuda" if torch.version.cuda else "cpu")
    return machine


@pytest.fixture(scope="module")
def installed(machine: Machine) -> subprocess.CompletedProcess[str]:
    return machine.run(machine.command(), timeout=900)


def test_real_packages_are_installed(machine: Machine, installed) -> None:
    assert installed.returncode == 0, installed
    imports = "; ".join(f"import {name}; print({name}.__version__)" for name in PACKAGES)
    done = machine.run(f'{machine.command("activate.sh")} && python -c "{imports}"')
    assert done.returncode == 0, done
    requirements = (LAB / "00_setup" / "requirements.txt").read_text()
    for name, version in zip(PACKAGES, done.stdout.split(), strict=True):
        assert f"{name}=={version.partition('+')[0]}" in requirements


def test_real_environment_is_only_activated_the_second_time(machine: Machine, installed) -> None:
    done = machine.source()
    assert done.stdout == f"workspace : {machine.workspace}\nenvironment ready\n"


def test_real_packages_leave_the_home_alone(machine: Machine, installed) -> None:
    use = (
        "import matplotlib.pyplot, torch, transformers; torch.ones(1); "
        "matplotlib.pyplot.plot([1]); transformers.PretrainedConfig()"
    )
    done = machine.run(f"{machine.command('activate.sh')} && python -c '{use}'")
    assert done.returncode == 0, done
    assert machine.files_in_home() == {".profile"}


def test_real_data_is_the_text_of_the_lab(machine: Machine, installed) -> None:
    data = Path(machine.workspace, "data", "shakespeare.txt")
    assert data.read_bytes() == (LAB / "04_tinygpt" / "shakespeare.txt").read_bytes()
