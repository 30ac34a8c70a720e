"""The facts on ZIH's clusters, from docs/machines.yaml: each has a source page and a month."""

import calendar
from dataclasses import dataclass
from pathlib import Path

import yaml

from course.scenes import ROOT

FACTS = ROOT / "docs/machines.yaml"
COMPENDIUM = "https://compendium.hpc.tu-dresden.de/"


@dataclass(frozen=True)
class Fact:
    """A value, and where and when it was looked up."""

    value: str | int
    title: str  # of the page in the Compendium
    url: str
    month: str  # "2026-03"

    @property
    def source(self) -> str:
        """Markdown: the page and the month."""
        year, month = self.month.split("-")
        return f"[{self.title}]({self.url}), {calendar.month_name[int(month)]} {year}"


def load_facts(path: Path = FACTS) -> dict[str, dict[str, Fact]]:
    """The facts by their group ("alpha", …, "limits") and name.

    Raises ValueError where a fact is not [value, page, month].
    """
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    groups = {**data["clusters"], "limits": data["limits"]}
    facts: dict[str, dict[str, Fact]] = {}
    for group, entries in groups.items():
        facts[group] = {}
        for name, entry in entries.items():
            try:
                value, page, month = entry
                year, number = month.split("-")
                assert len(year) == 4 and 1 <= int(number) <= 12
                source = data["pages"][page]
            except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
                raise ValueError(
                    f"{path.name}: {group}, {name}: a fact is [value, page, month], with a page "
                    "that stands below 'pages:' and a month such as 2026-03."
                ) from None
            facts[group][name] = Fact(value, source["title"], COMPENDIUM + source["path"], month)
    return facts


def machines_table(facts: dict[str, dict[str, Fact]]) -> str:
    """What each cluster has, as a table in Markdown."""
    columns = {
        "name": "cluster",
        "nodes": "nodes",
        "cpus": "CPU cores a node",
        "gpus": "GPUs a node",
        "memory": "memory a node",
    }
    rows = ["| " + " | ".join(columns.values()) + " |", "|---" * len(columns) + "|"]
    for group, cluster in facts.items():
        if group != "limits":
            cells = [f"{cluster[column].value}" for column in columns]
            rows.append("| " + " | ".join(["**" + cells[0] + "**", *cells[1:]]) + " |")
    return "\n".join(rows)


def machines_list(facts: dict[str, dict[str, Fact]]) -> str:
    """The rest about each cluster, with the sources of all of its facts, as a list."""
    items = []
    for group, cluster in facts.items():
        if group != "limits":
            sources = "; ".join(dict.fromkeys(fact.source for fact in cluster.values()))
            items.append(
                f"- **{cluster['name'].value}** (since {cluster['since'].value}). "
                f"CPUs of a node: {cluster['cpu'].value}. GPUs: {cluster['gpu'].value}. "
                f"Local disk: {cluster['disk'].value}. Login: `{cluster['login'].value}`. "
                f"Source: {sources}."
            )
    return "\n".join(items)
