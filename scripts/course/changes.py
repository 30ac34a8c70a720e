"""In `scripts/serve`, makes a page whose text has changed alone: a hook, named in mkdocs.yml.

MkDocs (it calls this dirty) makes the pages that are newer than their HTML. That is not enough: a
scene may be on any page. So when something else has changed, all HTML goes, and all is made anew.
"""

import logging
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files

from course.scenes import ROOT

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
    """Called by MkDocs when it knows all files, those of pages.py among them."""
    global _made_from
    if not _is_dirty:
        return files
    sources = _sources(files)
    if sources == _made_from:
        for file in [file for file in files if file.generated_by]:
            files.remove(file)  # it has no date, so MkDocs would make it each time
        return files
    for page in Path(config.site_dir).rglob("*.html"):
        page.unlink()
    _made_from = sources
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
