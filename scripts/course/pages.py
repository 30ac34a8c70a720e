"""Which pages MkDocs makes, besides those with a file in docs/: a hook, named in mkdocs.yml.

    /embed/scene-3/           a scene alone, for an iframe on a learning platform
    /embed/scene-2-ctrl-c/    one take alone
    /s/3/                     a short address of a scene, which leads to it on the story's page

They have templates of their own in overrides/, and are neither searched nor in the sitemap.

In `scripts/serve` (MkDocs calls it dirty) a page whose text has changed is made alone, and shows at
once. All are made when something else has changed, since a scene may be on any page.
"""

import logging
from pathlib import Path
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

from course.scenes import ROOT, Scene, SceneError, Take, load_scenes
from course.values import ValuesError

_is_dirty = False
_made_from: dict[Path, int] = {}  # what all pages were last made from


def on_startup(dirty: bool, **_: Any) -> None:
    """Called by MkDocs with the way in which it was started."""
    global _is_dirty
    _is_dirty = dirty
    # MkDocs warns each time that other pages may be out of date. on_files() sees to it.
    build = logging.getLogger("mkdocs.commands.build")
    build.addFilter(lambda record: "'dirty' build" not in record.getMessage())


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs when it knows the files of docs/."""
    if _is_dirty and _made_from == _sources(files):
        return files
    for page in Path(config.site_dir).rglob("*.html"):
        page.unlink()  # so that MkDocs makes it anew
    _made_from.clear()
    _made_from.update(_sources(files))
    try:
        scenes = load_scenes()
    except (SceneError, ValuesError):
        return files  # the macros say it
    for scene in scenes:
        files.append(_short(config, scene))
        files.append(_embed(config, scene))
        for take in scene.takes:
            files.append(_embed(config, scene, take))
    return files


def on_build_error(**_: Any) -> None:
    """Called by MkDocs when it could not make all pages."""
    _made_from.clear()


def _sources(files: Files) -> dict[Path, int]:
    """What any page may show, with its last change; of the pages themselves, which there are."""
    folders = (ROOT / name for name in ("lab_code", "overrides", "scripts/course"))
    sources = [ROOT / "mkdocs.yml", *(path for folder in folders for path in folder.rglob("*"))]
    changes = {path: path.stat().st_mtime_ns for path in sources if path.is_file()}
    return changes | {Path(file.src_uri): 0 for file in files.documentation_pages()}


def on_template_context(
    context: dict[str, Any], template_name: str, config: MkDocsConfig
) -> dict[str, Any]:
    """Called by MkDocs for its templates without a page."""
    if template_name == "sitemap.xml":
        context["pages"] = [file for file in context["pages"] if file.inclusion.is_in_nav()]
    return context


def _short(config: MkDocsConfig, scene: Scene) -> File:
    text = f"[{_title(scene)}](../story.md#{scene.anchor()})\n"
    return _page(config, f"s/{scene.number}.md", "short.html", scene, None, text)


def _embed(config: MkDocsConfig, scene: Scene, take: Take | None = None) -> File:
    call = f'take({scene.number}, "{take.id}", 1)' if take else f"scene({scene.number}, 1)"
    path = f"embed/{scene.anchor(take)}.md"
    return _page(config, path, "embed.html", scene, take, f"{{{{ {call} }}}}\n")


def _page(
    config: MkDocsConfig, path: str, template: str, scene: Scene, take: Take | None, text: str
) -> File:
    meta = {
        "title": _title(scene, take),
        "description": _description(scene, take),
        "template": template,
        "story": f"story/#{scene.anchor(take)}",
        "search": {"exclude": True},
    }
    content = f"---\n{yaml.safe_dump(meta, allow_unicode=True)}---\n{text}"
    return File.generated(config, path, content=content, inclusion=InclusionLevel.NOT_IN_NAV)


def _title(scene: Scene, take: Take | None = None) -> str:
    return f"Scene {scene.number}: {scene.title}" + (f" · {take.title}" if take else "")


def _description(scene: Scene, take: Take | None) -> str:
    if take is None:
        return (
            f"Scene {scene.number} of the story of Marie and Martin: what does not work, why, and "
            "what works."
        )
    works = "works" if take.works else "does not work"
    return f"One take of the story of Marie and Martin: {take.who} tries it, and it {works}."
