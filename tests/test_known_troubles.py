"""Each trouble of known_troubles.yaml is held by tests that there are, and that run each time."""

import ast
from pathlib import Path

import pytest
import yaml

from course.rehearse import chosen
from course.scenes import load_pages, load_scenes

FOLDER = Path(__file__).parent
TROUBLES = yaml.safe_load((FOLDER / "known_troubles.yaml").read_text(encoding="utf-8"))
NAMES = [trouble["trouble"] for trouble in TROUBLES]
SCENES = [*load_scenes(), *load_pages()]


def is_soak(test: ast.FunctionDef) -> bool:
    """Whether all of a test waits for "scripts/test soak"; some of its parameters may."""
    return any(ast.unparse(mark) == "pytest.mark.soak" for mark in test.decorator_list)


def quick_tests(file: str) -> set[str]:
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if node.name.startswith("test_") and not is_soak(node)}


@pytest.mark.parametrize("trouble", TROUBLES, ids=NAMES)
def test_a_known_trouble_is_held_by_tests_and_sessions_that_there_are(trouble):
    tests, sessions = trouble.get("tests", []), trouble.get("sessions", [])
    assert trouble.keys() <= {"trouble", "tests", "sessions"}
    assert tests or sessions
    for test in tests:
        file, _, name = test.partition("::")
        assert name in quick_tests(file)
    chosen(SCENES, sessions)  # raises KeyError for one that there is not


def test_no_trouble_stands_there_twice():
    assert len(NAMES) == len(set(NAMES)) == 28
