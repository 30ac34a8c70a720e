"""The course values of `course.env`: reading them, changing them, carrying them into job scripts.

scripts/set-values                      carries the values into the #SBATCH lines
scripts/set-values ACCOUNT=p_lv_other   changes a value first
"""

import argparse
import re
import sys
from pathlib import Path

LAB = Path(__file__).parents[2] / "lab_code" / "hpc_lab"
COURSE_ENV = Path("00_setup") / "course.env"

# The options of #SBATCH lines whose value is a course value.
SBATCH_OPTIONS = {"account": "ACCOUNT"}

# check.sh holds course.env against the same rule: a shell has to read it as we do.
LINE = re.compile(r"([A-Z_]+)=(?:'([^']*)'|([A-Za-z0-9._/:-]*))")


# What each value may be, and how that is called. They stand in commands that people copy, so none
# has a sign that a shell takes for something else.
RULES = {
    "ACCOUNT": (r"[a-z0-9][a-z0-9_-]*", "an account of Slurm, such as p_lv_llmsecrets"),
    "CLUSTER": (r"[A-Za-z][A-Za-z0-9-]*", "a cluster's name, such as alpha"),
    "LOGIN_HOST": (r"[A-Za-z0-9.-]+", "a host's name, such as login.alpha"),
    "SSH_HOST": (r"[A-Za-z0-9.-]+", "a host's name, such as login1.alpha.hpc.tu-dresden.de"),
    "FILESYSTEM": (r"[A-Za-z0-9_-]+", "a filesystem's name, such as horse"),
    "WORKSPACE": (r"[A-Za-z0-9_-]+", "a workspace's name, such as llm-lab"),
    "WORKSPACE_DAYS": (r"[1-9][0-9]{0,3}", "a number of days, such as 100"),
    "MODULES": (r"[A-Za-z0-9_.+/ -]*", "the names of modules with blanks between them, or empty"),
    "TORCH_BUILD": (r"cuda|cpu", "cuda or cpu"),
    "TORCH_INDEX": (
        r"(https?://[A-Za-z0-9._/:-]+)?",
        "an address that starts with https://, or empty",
    ),
    "MODEL": (
        r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+",
        "a model's name, such as Qwen/Qwen2.5-0.5B-Instruct",
    ),
    "MODEL_REVISION": (r"[0-9a-f]{40}", "a commit: 40 digits and letters from a to f"),
    "TRAIN_OPTIONS": (r"[A-Za-z0-9_.= -]*", "options such as --steps 500, or empty"),
}


class ValuesError(ValueError):
    """A course value is wrong or missing; the message names the key, the file and the line."""


def load_values(path: Path) -> dict[str, str]:
    """The values of a `course.env`, by key.

    Raises ValuesError where a line is not KEY=value, and OSError where there is no file.
    """
    values: dict[str, str] = {}
    for number, line in enumerate(path.read_bytes().decode().split("\n"), start=1):
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise ValuesError(
                f"{path}, line {number}: {line!r} is not KEY=value. Write it without spaces around "
                "the =, with single quotes around a value that has spaces, and with Unix line ends."
            )
        key, quoted, plain = match.groups()
        if key in values:
            raise ValuesError(f"{path}, line {number}: {key} is here twice. Delete one of the two.")
        values[key] = plain if quoted is None else quoted
    return values


def check_values(values: dict[str, str]) -> None:
    """Raises ValuesError for the first value that is missing, unknown, or cannot be right."""
    for key, (pattern, what) in RULES.items():
        if key not in values:
            raise ValuesError(f"course.env has no {key}. Add it: {what}.")
        if not re.fullmatch(pattern, values[key]):
            raise ValuesError(f"{key}={values[key]!r} cannot be right: it has to be {what}.")
    for key in values:
        if key not in RULES:
            raise ValuesError(f"course.env has a {key}, which nothing reads. Remove it.")


def change_values(lab: Path, changes: dict[str, str]) -> None:
    """Writes new values into the `course.env` of a lab folder; comments and order stay.

    Raises ValuesError for a key that is not there and for a value that cannot be quoted.
    """
    path = lab / COURSE_ENV
    known = load_values(path)
    text = path.read_text(encoding="utf-8")
    for key, value in changes.items():
        if key not in known:
            raise ValuesError(f"{path} has no {key}. It has: {', '.join(known)}.")
        if "'" in value or "\n" in value:
            raise ValuesError(f"{key}: the value must be on one line and have no single quotes.")
        plain = re.fullmatch(r"[A-Za-z0-9._/:-]+", value)
        line = f"{key}={value}" if plain else f"{key}='{value}'"
        text = re.sub(rf"^{key}=.*$", lambda _, line=line: line, text, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8", newline="\n")


def carry_values(lab: Path) -> list[Path]:
    """Writes the values of `course.env` into the #SBATCH lines of a lab folder's job scripts.

    Gives the files that were changed. Raises ValuesError as `load_values` does.
    """
    values = load_values(lab / COURSE_ENV)
    changed = []
    for script in sorted(lab.rglob("*.sbatch")):
        old = new = script.read_text(encoding="utf-8")
        for option, key in SBATCH_OPTIONS.items():
            value = values[key]
            new = re.sub(
                rf"^(#SBATCH --{option}=)\S+",
                lambda match, value=value: match[1] + value,
                new,
                flags=re.MULTILINE,
            )
        if new != old:
            script.write_text(new, encoding="utf-8", newline="\n")
            changed.append(script)
    return changed


def main() -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/set-values", description=__doc__.split("\n")[0])
    parser.add_argument("changes", nargs="*", metavar="KEY=value", help="values to change first")
    arguments = parser.parse_args().changes
    wrong = [argument for argument in arguments if "=" not in argument]
    if wrong:
        parser.error(f"{wrong[0]} is not KEY=value")
    changes = dict(argument.split("=", 1) for argument in arguments)
    try:
        values = load_values(LAB / COURSE_ENV)
        check_values(values | {key: changes[key] for key in changes if key in values})
        change_values(LAB, changes)
        changed = carry_values(LAB)
    except ValuesError as error:
        print(error, file=sys.stderr)
        return 1
    if any(values[key] != changes[key] for key in changes):
        print(f"changed: {COURSE_ENV}")
    for script in changed:
        print(f"changed: {script.relative_to(LAB)}")
    print("The #SBATCH lines agree with course.env.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
