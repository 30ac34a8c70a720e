"""The site's one stylesheet: the theme's styles and ours, without what no page uses.

A hook, named in mkdocs.yml. `scripts/serve` only joins the files: a change shows at once.

A selector goes when a class, an id or the value of an attribute in it is on no page, in none of our
scripts, and is nothing that the theme's script gives to a part that a page has (its search results,
say). Custom properties that nothing reads go, too: most of them are icons.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import tinycss2
from mkdocs.config.defaults import MkDocsConfig

from course.scenes import ROOT

OWN = ROOT / "docs/assets/course.css"
STYLES = "assets/site.css"
_GROUPS = ("media", "supports", "container", "layer")  # at-rules that hold other rules

_serving = False


def on_startup(command: str, **_: Any) -> None:
    """Called by MkDocs with the command that was typed."""
    global _serving
    _serving = command == "serve"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Called by MkDocs: overrides/partials/policy.html has to know that pages reload."""
    config.extra["serving"] = _serving
    return config


def on_post_build(config: MkDocsConfig) -> None:
    """Called by MkDocs when the site is written."""
    site = Path(config.site_dir)
    css = joined(site)
    if not _serving:
        css = purge(css, used_names(site))
    (site / STYLES).write_text(css, encoding="utf-8")


def joined(site: Path) -> str:
    """All styles, the theme's and ours, before any is left out."""
    theme = [next(site.glob(f"assets/stylesheets/{name}.*.css")) for name in ("main", "palette")]
    return "\n".join(path.read_text(encoding="utf-8") for path in [*theme, OWN])


# --- What is used ------------------------------------------------------------------------------


class _Names(HTMLParser):
    """Collects the words in the attributes of a page: classes, ids, and other values."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for _, value in attributes:
            self.found.update((value or "").split())


def used_names(site: Path) -> set[str]:
    """All names by which a style may find a part of a page of a built site."""
    pages = _Names()
    for page in site.rglob("*.html"):
        pages.feed(page.read_text(encoding="utf-8"))
    names = pages.found
    blocks = {_block(name) for name in names}
    for script in (site / "assets").rglob("*.js"):
        words = set(re.findall(r"[\w-]+", script.read_text(encoding="utf-8")))
        is_themes = script.is_relative_to(site / "assets/javascripts")
        names |= {word for word in words if _block(word) in blocks} if is_themes else words
    return names


def _block(name: str) -> str:
    """The part to which a name belongs: md-search of md-search__input or md-search--open."""
    return re.split("__|--", name)[0]


# --- Purging -----------------------------------------------------------------------------------


@dataclass
class Rule:
    """What has braces: a head, and in it declarations (as texts, by name) and other rules."""

    head: str
    declarations: list[tuple[str, str]] = field(default_factory=list)
    rules: list["Rule"] = field(default_factory=list)

    def __str__(self) -> str:
        declarations = ";".join(f"{name}:{value}" for name, value in self.declarations)
        between = ";" if self.declarations and self.rules else ""
        return f"{self.head}{{{declarations}{between}{_text(self.rules)}}}"

    @property
    def is_empty(self) -> bool:
        return not self.declarations and not self.rules


def purge(css: str, names: set[str]) -> str:
    """The styles without comments, selectors of other names, and unused custom properties."""
    rules = list(_rules(tinycss2.parse_stylesheet(css, True, True), names))
    while True:
        text = _text(rules)
        # The theme's script sets some properties, and reads none.
        read = set(re.findall(r"var\(\s*(--[\w-]+)", text))
        rules = _without_unread(rules, read)
        if _text(rules) == text:
            return text


def _text(rules: Iterable[Rule]) -> str:
    return "".join(map(str, rules))


def _rules(nodes: Iterable[Any], names: set[str]) -> Iterator[Rule]:
    for node in nodes:
        if node.type == "error":
            raise ValueError(f"The styles have an error: {node.message} (line {node.source_line}).")
        if node.type == "qualified-rule":
            selectors = [part for part in _split(node.prelude) if _is_used(part, names)]
            head = ",".join(_minified(part) for part in selectors)
            rule = _rule(head, node.content, names) if selectors else Rule("")
        elif node.content is None:
            continue  # @charset: it is UTF-8 anyway
        else:
            head = f"@{node.at_keyword} {_minified(node.prelude)}".rstrip()
            if node.lower_at_keyword in _GROUPS:
                inner = tinycss2.parse_rule_list(node.content, True, True)
                rule = Rule(head, rules=list(_rules(inner, names)))
            elif node.lower_at_keyword.endswith("keyframes"):
                frames = tinycss2.parse_rule_list(node.content, True, True)
                inner = [_rule(_minified(frame.prelude), frame.content, names) for frame in frames]
                rule = Rule(head, rules=inner)
            else:
                rule = _rule(head, node.content, names)
        if not rule.is_empty:
            yield rule


def _rule(head: str, content: list[Any], names: set[str]) -> Rule:
    rule = Rule(head)
    for node in tinycss2.parse_blocks_contents(content, True, True):
        if node.type == "declaration":
            value = _minified(node.value) + ("!important" if node.important else "")
            rule.declarations.append((node.name, value))
        else:
            rule.rules += _rules([node], names)
    return rule


def _without_unread(rules: list[Rule], read: set[str]) -> list[Rule]:
    result = []
    for rule in rules:
        kept = [
            (name, value)
            for name, value in rule.declarations
            if not name.startswith("--") or name in read
        ]
        result.append(Rule(rule.head, kept, _without_unread(rule.rules, read)))
    return [rule for rule in result if not rule.is_empty]


def _split(tokens: list[Any]) -> list[list[Any]]:
    """The selectors of a list of selectors."""
    parts: list[list[Any]] = [[]]
    for token in tokens:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _is_used(selector: list[Any], names: set[str]) -> bool:
    """Whether a page may have what the selector names, outside of :is() and :not()."""
    before: Any = None
    for token in selector:
        if token.type == "hash" or (token.type == "ident" and before == "."):
            if token.value not in names:
                return False
        elif token.type == "[] block":
            given = [part for part in token.content if part.type != "whitespace"]
            if len(given) == 3 and given[1] == "=" and given[2].value not in names:
                return False
        before = token
    return True


def _minified(tokens: list[Any]) -> str:
    shown = [token for token in tokens if token.type != "comment"]
    return re.sub(r"\s+", " ", tinycss2.serialize(shown)).strip()
