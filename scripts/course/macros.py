"""The macros of the pages, for the mkdocs-macros plugin.

    {{ scene(1) }}                      a whole scene
    {{ take(1, "no-log-folder") }}      one take
    {{ scene_source(1, "mkdir-first") }} the same take, as its file has it
    {{ said("A train …") }}             what a model said to this prompt, from the kept log
    {{ said_how() }}                    which model that was, when, and with which settings
    {{ learned() }}                     the table of what Marie and Martin learned
    {{ value("CLUSTER") }}              a course value, or the reader's LOGIN
    {{ code("ssh <<LOGIN>>@<<SSH_HOST>>") }} the same within code
    {{ page_addresses() }}              all pages, to link
    {{ scene_addresses() }}             all scenes and takes, to link and to embed
    {{ scene_index_fields() }}          the fields of scenes.json

Those of the pages around the story are in page_macros.py.

After the build it writes scenes.json, the index of the scenes.
"""

import json
import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path

import jinja2
from markupsafe import Markup, escape
from mkdocs.exceptions import PluginError
from mkdocs.utils import get_relative_url
from mkdocs_macros.errors import format_error

from course import bundle
from course.answers import load_answers
from course.embeds import css_height, load_heights
from course.page_macros import PageError, define_page_macros
from course.report import Played, digest, load_reports
from course.scenes import (
    DEFAULT_LOGIN,
    LAB,
    ROOT,
    Line,
    Part,
    Scene,
    SceneError,
    Session,
    Take,
    Terminal,
    Text,
    TranscriptFile,
    load_pages,
    load_scenes,
)
from course.values import ValuesError, check_values, load_values

VALUE = re.compile(r"<<([A-Z_]+)>>")
CODE_WITH_VALUE = re.compile(r"`([^`\n]*<<[A-Z_]+>>[^`\n]*)`")
SCHEMA = ROOT / "docs/scenes.schema.json"
READERS_OWN = ("LOGIN", "ACCOUNT")  # a script fills in what the reader has entered


@format_error.register
def _say_it_plainly(error: PageError, markdown: str, page) -> str:
    """What the build prints: the page's file and line instead of a traceback."""
    frame, line = error.__traceback__, 0
    while frame:
        if frame.tb_frame.f_code.co_filename == "<template>":
            line = frame.tb_lineno
        frame = frame.tb_next
    source = Path(page.file.abs_src_path).read_text(encoding="utf-8")
    front_matter = len(source.splitlines()) - len(markdown.splitlines())
    return f"docs/{page.file.src_path}:{line + front_matter}: {error}"


@dataclass
class Group:
    """Lines of a transcript that are shown as one thing."""

    kind: str  # command, direction, until or output
    lines: list[Line]

    @property
    def line(self) -> Line:
        return self.lines[0]


def groups(terminal: Terminal, waits: Collection[str]) -> list[Group]:
    """The shown lines of a terminal; neighboring lines of output are one group.

    `waits` are the jobs for which the reader is told to wait.
    """
    visible = [line for line in terminal.lines if not line.hidden or line.job in waits]
    while visible and visible[-1].kind == "until":  # nothing comes for which one would have to wait
        visible.pop()
    result: list[Group] = []
    for kind, lines in groupby(visible, key=lambda line: line.kind.replace("omission", "output")):
        if kind == "output":
            result.append(Group(kind, list(lines)))
        else:
            result += [Group(kind, [line]) for line in lines]
    return result


def words(parts: tuple[Part, ...]) -> list[list[Part]]:
    """A command cut at its spaces: there a line may break, not at the hyphens of options."""
    result: list[list[Part]] = [[]]
    for part in parts:
        if isinstance(part, Text):
            first, *others = part.text.split(" ")
            result[-1].append(Text(first))
            result += [[Text(word)] for word in others]
        else:
            result[-1].append(part)
    return result


def value_html(name: str, text: str) -> str:
    """A value in a sentence or in code. The reader may have an own login and account."""
    if name not in READERS_OWN:
        return literal_html(text)
    return f'<span class="value" data-value="{name}">{literal_html(text)}</span>'


def literal_html(text: str) -> str:
    """Text in which neither HTML nor Markdown sees a sign of its own."""
    return re.sub(r"[^\w ./-]|_", lambda match: f"&#{ord(match[0])};", text)


def frame_height(embed: str) -> tuple[int, str]:
    """The height of the frame around an embed: for any width in pixels, and as CSS."""
    heights = load_heights().get(embed)
    if heights is None:  # a new one: scripts/measure-embeds needs a built site
        return 800, "800px"
    return heights[0], css_height(heights)


def pages_of(nav: list) -> Iterator[tuple[str, str]]:
    """Title and address of each page of MkDocs' navigation."""
    for entry in nav:
        for title, target in entry.items():
            if isinstance(target, list):
                yield from pages_of(target)
            else:
                path = target.removesuffix(".md")
                yield title, "" if path == "index" else f"{path}/"


def page_name(scene: Scene) -> str:
    return "the Setup page" if scene.number == 0 else f"exercise {scene.number}"


def us_date(day: date) -> str:
    """Such as November 30, 2026."""
    return f"{day:%B} {day.day}, {day.year}"


def played(entries: list[Played], wanted: str, cluster: str) -> str:
    """Where and when a take was last played, and where it was not.

    `entries` are all that the reports have of it, `wanted` is its digest, `cluster` the course's.
    """
    current = [entry for entry in entries if entry.digest == wanted]
    if not current:
        return "Not played since it was last changed." if entries else "Not played yet."
    sentences = []
    for entry in current:
        day = us_date(entry.day)
        where = f"the {entry.cluster}" if entry.cluster == "practice cluster" else entry.cluster
        sentences.append(f"Played on {where} (Slurm {entry.slurm}) on {day}.")
        if entry.gpu == "none":
            sentences.append("There was no GPU: only what Slurm allocated was checked.")
        elif entry.gpu:
            sentences.append(f"The GPU was an {entry.gpu}.")
    if cluster not in [entry.cluster for entry in current]:
        sentences.append(f"Not played on {cluster} yet. The paths shown are those of {cluster}.")
    return " ".join(sentences)


def scene_index(scenes: list[Scene]) -> dict:
    """The contents of scenes.json, as docs/scenes.schema.json describes it."""
    return {
        "version": 1,
        "takes": [
            {
                "address": f"/story/#{scene.anchor(take)}",
                "short_address": f"/s/{scene.number}/",
                "embed_address": f"/embed/{scene.anchor(take)}/",
                "scene": scene.number,
                "scene_title": scene.title,
                "lab": scene.lab,
                "id": take.id,
                "title": take.title,
                "who": take.who,
                "works": take.works,
                "start": take.start,
                "commands": take.commands,
            }
            for scene in scenes
            for take in scene.takes
        ],
    }


def define_env(env) -> None:
    """Called by mkdocs-macros once a build."""
    try:
        values = load_values(LAB / "00_setup/course.env")
        check_values(values)
        scenes = load_scenes(values=values)
        pages = load_pages(values=values)
    except (SceneError, ValuesError) as error:
        raise PluginError(str(error)) from None
    env.scenes = scenes
    typed_values = {"LOGIN": DEFAULT_LOGIN, **values}
    # In sentences the cluster has its name, Alpha, and not its machines' word for it, alpha.
    shown_values = {**typed_values, "CLUSTER": values["CLUSTER"].capitalize()}
    reports = load_reports()
    by_number = {scene.number: scene for scene in scenes}

    def prose(text: str) -> Markup:
        text = CODE_WITH_VALUE.sub(lambda match: code(match[1]), text)
        text = VALUE.sub(lambda match: value(match[1]), text)
        return Markup(text)  # Markdown of our own, not to be escaped

    def when_played(scene: TranscriptFile, take: Session) -> str:
        if take.not_played:
            return f"Not played: {take.not_played}"
        entries = reports.get(f"{scene.name}/{take.id}", [])
        return played(entries, digest(scene, take), shown_values["CLUSTER"])

    def link(source: str) -> str:
        """A page's Markdown file, as seen from the page that is being made."""
        here = posixpath.dirname(env.page.file.src_uri)
        return posixpath.relpath(source, here or ".")

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.globals.update(
        groups=groups,
        words=words,
        prose=prose,
        link=link,
        url=lambda target: get_relative_url(target, env.page.url),
        site_url=env.conf["site_url"] or "https://…/",
        height=frame_height,
        page_name=page_name,
        when_played=when_played,
    )
    template = templates.get_template("scene.md").module
    define_page_macros(env, scenes, pages, templates, values)
    address_template = templates.get_template("addresses.md").module

    def find(number: int) -> Scene:
        if number not in by_number:
            known = ", ".join(map(str, by_number))
            raise PageError(f"There is no scene {number}. There are: {known}.")
        return by_number[number]

    def find_take(number: int, take_id: str) -> tuple[Scene, Take]:
        scene = find(number)
        try:
            return scene, scene.take(take_id)
        except KeyError:
            known = ", ".join(take.id for take in scene.takes)
            raise PageError(
                f"Scene {number} has no take '{take_id}'. There are: {known}."
            ) from None

    def filled_in(name: str, known: dict[str, str]) -> str:
        try:
            return value_html(name, known[name])
        except KeyError:
            names = ", ".join(known)
            raise PageError(f"There is no course value {name}. There are: {names}.") from None

    @env.macro
    def value(name: str) -> str:
        return filled_in(name, shown_values)

    @env.macro
    def code(text: str) -> str:
        pieces = VALUE.split(text)  # every other one is a name
        pieces[0::2] = [literal_html(piece) for piece in pieces[0::2]]
        pieces[1::2] = [filled_in(name, typed_values) for name in pieces[1::2]]
        return f"<code>{''.join(pieces)}</code>"

    @env.macro
    def scene(number: int, level: int = 2) -> str:
        return str(template.scene_section(find(number), level))

    @env.macro
    def take(number: int, take_id: str, level: int = 3) -> str:
        return str(template.take_section(*find_take(number, take_id), level))

    @env.macro
    def scene_addresses() -> str:
        return str(address_template.scene_addresses(scenes))

    @env.macro
    def page_addresses() -> str:
        return str(address_template.page_addresses(list(pages_of(env.conf["nav"]))))

    @env.macro
    def scene_index_fields() -> str:
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        fields = schema["$defs"]["take"]["properties"].items()
        rows = [f"| `{name}` | {escape(field['description'])} |" for name, field in fields]
        return "\n".join(["| field | what it is |", "|---|---|", *rows])

    @env.macro
    def scene_source(number: int, take_id: str) -> str:
        scene, take = find_take(number, take_id)
        return f"```yaml\n{scene.source(take)}\n```"

    log = load_answers()

    @env.macro
    def said(prompt: str) -> str:
        if prompt not in log.answers:
            raise PageError(f"The kept log has no answer to this prompt: {prompt}")
        # HTML, so that nothing that a model says is taken for Markdown.
        lines = [escape(line) for line in log.answers[prompt].splitlines() if line]
        return (
            '<blockquote class="said">'
            + "".join(f"<p>{line}</p>" for line in lines)
            + "</blockquote>"
        )

    @env.macro
    def said_how() -> str:
        kept = log.settings
        day = us_date(date.fromisoformat(kept["day"]))
        return (
            f"the model `{kept['model']}` (revision `{kept['revision'][:7]}`), on the "
            f"{kept['cluster']}, on {day}, with `{kept['chance']}`"
        )

    @env.macro
    def learned() -> str:
        lines = ["| Scene | What went wrong | The rule |", "|---|---|---|"]
        for scene in scenes:
            anchor = f"[{scene.number}](#{scene.anchor()})"
            failed = [take for take in scene.takes if not take.works]
            for row in [*failed, *scene.also_learned]:
                lines.append(f"| {anchor} | {prose(row.went_wrong)} | {prose(row.rule)} |")
        return "\n".join(lines)


def on_post_build(env) -> None:
    """Called by mkdocs-macros when the site is written."""
    site = Path(env.conf["site_dir"])
    site.joinpath(bundle.NAME).write_bytes(env.bundle)
    index = json.dumps(scene_index(env.scenes), ensure_ascii=False, indent=2)
    site.joinpath("scenes.json").write_text(index + "\n", encoding="utf-8")
