"""The macros of the pages around the story.

    {{ session("1-hello", "submit") }}                      a session: commands and their output
    {{ word("setup", "install", "--gres=") }}               a word of a session's command
    {{ troubles("submitting") }}                            the troubles of one kind
    {{ listing("01_hello/hello.sbatch") }}                  a lab file; also folded_listing
    {{ line("01_hello/hello.sbatch", "#SBATCH --time=") }}  its one line that starts like this
    {{ default("04_tinygpt/settings.py", "--steps") }}      the default of a program's option
    {{ options("04_tinygpt/settings.py") }}                 a table of all its options
    {{ command("squeue --me") }}                            a command that stands in the story
    {{ remembers() }}                                       the Remembers of all scenes
    {{ bundle_checksum() }}                                 of the file that students download
    {{ machines_table() }}, {{ machines_list() }}           the clusters, from docs/machines.yaml
    {{ fact("limits", "days") }}, {{ source("limits", "days") }}    one fact, its source and month

Those of the pages inside the model are in inside/page.py.

What a page asks for and is not there any more fails the build.
"""

import ast
import hashlib
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import jinja2
from markupsafe import escape

from course.bundle import make_bundle
from course.inside.page import MACROS
from course.machines import Fact, load_facts, machines_list, machines_table
from course.scenes import DEFAULT_LOGIN, LAB, Scene, TranscriptFile, Troubles


class PageError(Exception):
    """A page asks for something that does not exist."""


def prompts(values: dict[str, str]) -> dict[str, str]:
    """The Compendium's prompts, by the place where a command is typed."""
    return {
        "": f"marie@{values['LOGIN_HOST']}$",
        "node": f"marie@{values['CLUSTER']}$",
        "local": "marie@local$",
    }


def lab_file(name: str, lab: Path = LAB) -> str:
    """The text of a lab file, such as "01_hello/hello.py"."""
    file = lab / name
    if not file.is_file():
        raise PageError(f"There is no file {name} in the lab.")
    return file.read_text(encoding="utf-8")


def line_of(name: str, start: str, lab: Path = LAB) -> str:
    """The one line of a lab file that starts like this, without its indentation."""
    lines = [line.strip() for line in lab_file(name, lab).splitlines()]
    found = [line for line in lines if line.startswith(start)]
    if len(found) != 1:
        raise PageError(f"{len(found)} lines of {name} start with '{start}', not one.")
    return found[0]


def options_of(name: str, lab: Path = LAB) -> dict[str, dict[str, object]]:
    """The options that a program's argparse knows: {"--steps": {"default": 10000, "help": "…"}}.

    A default that is not a plain value in the source (a path that is put together, say) is left
    out: the help has to say it. A plain one is taken out of the help, "(default: …)" at its end.
    Raises PageError where an option's help is not a plain string.
    """
    options: dict[str, dict[str, object]] = {}
    for node in ast.walk(ast.parse(lab_file(name, lab))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        if isinstance(first, ast.Constant) and str(first.value).startswith("--"):
            known = {
                keyword.arg: keyword.value.value
                for keyword in node.keywords
                if isinstance(keyword.value, ast.Constant)
            }
            if "help" not in known:
                raise PageError(f"The help of {first.value} in {name} is not one plain string.")
            if "default" in known:
                known["help"] = re.sub(r" \(default: .*\)$", "", known["help"])
            options[first.value] = known
    return options


def default_of(name: str, option: str, lab: Path = LAB) -> object:
    """The default of an option."""
    try:
        return options_of(name, lab)[option]["default"]
    except KeyError:
        raise PageError(f"{name} has no option {option} with a plain default.") from None


def options_table(name: str, lab: Path = LAB) -> str:
    """A table of all options of a program."""
    lines = ["| option | default | what it is |", "|---|---|---|"]
    for option, known in options_of(name, lab).items():
        default = f"`{known['default']}`" if "default" in known else ""
        lines.append(f"| `{option}` | {default} | {known['help']} |")
    if len(lines) == 2:
        raise PageError(f"{name} has no options.")
    return "\n".join(lines)


def listing(name: str, lab: Path = LAB) -> str:
    """A lab file, whole, as a code block with its name."""
    language = {".py": "python", ".txt": "text", ".env": "bash"}.get(Path(name).suffix, "bash")
    return f'```{language} title="{name}"\n{lab_file(name, lab).rstrip()}\n```'


def folded_listing(name: str, lab: Path = LAB) -> str:
    """A lab file that shows its name, and its text when it is opened."""
    block = textwrap.indent(listing(name, lab), "    ")
    return f'??? note "The whole file: `{name}`"\n\n{block}\n'


def define_page_macros(
    env,
    scenes: Sequence[Scene],
    pages: Sequence[TranscriptFile],
    templates: jinja2.Environment,
    values: dict[str, str],
) -> None:
    """Define the macros. `templates` has the globals that scene.md needs."""
    by_name = {page.name: page for page in pages}
    templates.globals["prompts"] = prompts(values)
    shown = {**values, "LOGIN": DEFAULT_LOGIN}
    templates.globals["filled"] = lambda text: re.sub(
        r"<<([A-Z_]+)>>", lambda match: shown[match[1]], text
    )
    prose = templates.globals["prose"]
    template = templates.get_template("session.md").module

    def find(name: str, kind: type[TranscriptFile]) -> TranscriptFile:
        if not isinstance(by_name.get(name), kind):
            known = ", ".join(page.name for page in pages if isinstance(page, kind))
            what = "troubles" if kind is Troubles else "sessions"
            raise PageError(f"There is no file '{name}' with {what}. There are: {known}.")
        return by_name[name]

    @env.macro
    def session(name: str, session_id: str) -> str:
        page = find(name, TranscriptFile)
        try:
            return str(template.session_block(page, page.take(session_id)))
        except KeyError:
            known = ", ".join(take.id for take in page.takes)
            raise PageError(f"{name} has no session '{session_id}'. There are: {known}.") from None

    @env.macro
    def word(name: str, session_id: str, start: str) -> str:
        page = find(name, TranscriptFile)
        words = {word for command in page.take(session_id).commands for word in command.split()}
        found = [word for word in words if word.startswith(start)]
        if len(found) != 1:
            raise PageError(f"{len(found)} words of {name}, {session_id} start with '{start}'.")
        return f"<code>{escape(found[0])}</code>"

    @env.macro
    def troubles(name: str) -> str:
        return str(template.troubles_section(find(name, Troubles)))

    @env.macro
    def command(text: str) -> str:
        typed = [command for scene in scenes for take in scene.takes for command in take.commands]
        if text not in typed:
            raise PageError(f"No scene has the command '{text}'.")
        return f"<code>{escape(text)}</code>"

    @env.macro
    def remembers() -> str:
        lines = [f"- **{scene.title}** {prose(scene.remember)}" for scene in scenes]
        return "\n".join(line.rstrip() for line in lines)

    @env.macro
    def line(name: str, start: str) -> str:
        return f"`{line_of(name, start)}`"

    facts = load_facts()

    def find_fact(group: str, name: str) -> Fact:
        try:
            return facts[group][name]
        except KeyError:
            raise PageError(f"machines.yaml has no fact {group}, {name}.") from None

    @env.macro
    def fact(group: str, name: str) -> str:
        value = find_fact(group, name).value
        return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)

    @env.macro
    def source(group: str, name: str) -> str:
        return find_fact(group, name).source

    bundle = make_bundle()
    env.bundle = bundle

    @env.macro
    def bundle_checksum() -> str:
        return hashlib.sha256(bundle).hexdigest()

    plain: dict[str, Callable[..., object]] = {
        "listing": listing,
        "folded_listing": folded_listing,
        "default": default_of,
        "options": options_table,
        "machines_table": lambda: machines_table(facts),
        "machines_list": lambda: machines_list(facts),
    }
    for name, function in plain.items():
        env.macro(function, name)
    for function in MACROS:
        env.macro(function)
