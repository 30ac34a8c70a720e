"""Pages that MkDocs makes without a file in docs/: a hook, named in mkdocs.yml.

    /embed/scene-3/           a scene alone, for an iframe on a learning platform
    /embed/scene-2-ctrl-c/    one take alone
    /s/3/                     a short address of a scene, which leads to it on the story's page

They have templates of their own in overrides/, and are neither searched nor in the sitemap.
"""

from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

from course.scenes import Scene, SceneError, Take, load_scenes
from course.values import ValuesError


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs when it knows the files of docs/."""
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
