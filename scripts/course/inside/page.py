"""The macros of the pages inside the model: what was recorded, as text and tables.

    {{ cut_sentence() }}                 the sentence about the Elbe in Qwen2.5's tokens
    {{ cut_examples() }}                 some words in three vocabularies
    {{ vocabulary_size("qwen2.5") }}     how many tokens it has
    {{ mask() }}                         who may look at whom
    {{ attention("finder") }}            recorded weights: "finder", "first" or "average"
    {{ attention_fact("finder", "head") }}  a number of them
    {{ next_tokens(0) }}                 what may come after a recorded prompt, likeliest first
    {{ prompt(0) }}                      that prompt
    {{ cities() }}                       right and wrong ones, with their probabilities
    {{ temperatures(1) }}                the same prompt at several temperatures
    {{ endings() }}                      how the sentence goes on, along the recorded tree
    {{ recorded_how() }}                 which model, which revision, when
    {{ tinygpt_fact("parameters") }}     the size of the tiny GPT, or another fact about it

The pages' scripts show the same from the same files, and let the reader change it.
"""

import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from course.inside import DATA

TEMPERATURES = (0, 0.2, 1, 2)
LISTED = 10  # tokens in a table; all others are one row
# The space first: the HTML of a mark has spaces of its own.
MARKS = {" ": ("·", "space"), "\n": ("↵", "new line"), "\t": ("⇥", "tab")}


@cache
def load(name: str) -> dict:
    """One of the recorded files."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def piece(text: str) -> Markup:
    """A token as it is shown: spaces and line breaks can be seen."""
    shown = escape(text)
    for sign, (mark, name) in MARKS.items():
        html = f'<span class="piece__mark" role="img" aria-label="{name}">{mark}</span>'
        shown = shown.replace(sign, Markup(html))
    return Markup('<code class="piece">{}</code>').format(shown)


def percent(share: float) -> str:
    """A share of 1 with two digits that count: 49%, 2.1%, 0.0031%; 0% only for nothing at all."""
    if share == 0 or share >= 0.0995:
        return f"{share:.0%}"
    digits = 1 - math.floor(math.log10(share * 100))
    return f"{share * 100:.{max(0, digits)}f}%"


def bar(share: float) -> Markup:
    """A bar of this share of the width. A picture, because a style in the page is not allowed."""
    return Markup(
        '<svg class="bar" aria-hidden="true"><rect width="{:.2f}%" height="100%"/></svg>'
    ).format(share * 100)


def table(caption: str, head: list[Any], rows: list[list[Any]], kind: str) -> str:
    """An HTML table; the first cell of each row is its head."""
    lines = [f'<table class="model {kind}"><caption>{caption}</caption>', "<thead><tr>"]
    # A column of bars has no head.
    lines += [f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in head]
    lines.append("</tr></thead><tbody>")
    for first, *others in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    return "\n".join([*lines, "</tbody></table>"])


def cut_sentence() -> str:
    sentence, cuts = next(iter(load("tokens")["examples"].items()))
    groups = cuts["qwen2.5"]
    items = "".join(
        f"<li>{piece(group['text'])}<span class='piece__ids'>{_ids(group)}</span></li>"
        for group in groups
    )
    return f'<ol class="pieces" aria-label="{escape(sentence)}, in tokens">{items}</ol>'


def _ids(group: dict) -> str:
    return " ".join(map(str, group["ids"]))


def cut_examples() -> str:
    rows = []
    for text, cuts in list(load("tokens")["examples"].items())[1:]:
        row = [Markup('<code class="word">{}</code>').format(text)]
        for name in ("qwen2.5", "smollm2"):
            groups = cuts[name]
            pieces = Markup(" ").join(piece(group["text"]) for group in groups)
            count = sum(len(group["ids"]) for group in groups)
            row.append(Markup('{} <span class="piece__count">{}</span>').format(pieces, count))
        unknown = cuts["tinygpt_unknown"]
        count = Markup('<span class="piece__count">{}</span>').format(len(cuts["tinygpt"]))
        missing = Markup(" without {}").format(Markup(" ").join(piece(c) for c in unknown))
        row.append(count + missing if unknown else count)
        rows.append(row)
    head = ["text", "Qwen2.5", "SmolLM2", "tiny GPT"]
    caption = "The same text in three vocabularies: the pieces, and how many tokens they are"
    return table(caption, head, rows, "examples")


def vocabulary_size(name: str) -> str:
    return f"{load('tokens')['sizes'][name]:,}"


def mask() -> str:
    tokens = load("recorded")["attention"]["tokens"]
    rows, sentences = [], []
    for i, token in enumerate(tokens):
        answers = ["yes" if j <= i else "no" for j in range(len(tokens))]
        rows.append([piece(token), *(Markup(f'<span class="may-{a}">{a}</span>') for a in answers)])
        seen = [piece(earlier) for earlier in tokens[:i]]
        sentences.append(
            Markup("<li>{} may look {}, and at nothing that comes after it.</li>").format(
                piece(token),
                Markup("at {} and at itself").format(_listed(seen)) if seen else "only at itself",
            )
        )
    caption = "Row: the token that looks. Column: the token that it looks at."
    head = ["looks", *map(piece, tokens)]
    return (
        table(caption, head, rows, "mask")
        + f'\n<ol class="mask-sentences">{"".join(sentences)}</ol>'
    )


def _listed(items: list[Markup]) -> Markup:
    return Markup(", ").join(items)


def attention(view: str) -> str:
    recorded = load("recorded")["attention"]
    tokens, shown = recorded["tokens"], recorded[view]
    rows = []
    for i, (token, weights) in enumerate(zip(tokens, shown["weights"], strict=True)):
        cells = [
            Markup('<span class="share share--{}">{:.0%}</span>').format(round(10 * w), w)
            if j <= i
            else Markup('<span class="share">&ndash;</span>')
            for j, w in enumerate(weights)
        ]
        rows.append([piece(token), *cells])
    if view == "average":
        name = f"The average of all {recorded['layers'] * recorded['heads']} heads"
    else:
        name = f"Head {shown['head']} of layer {shown['layer']}"
    caption = f"{name}: how each token (row) shares out its attention. A row sums to 100%."
    return table(caption, ["looks", *map(piece, tokens)], rows, "weights")


def attention_fact(view: str, name: str) -> str:
    recorded = load("recorded")["attention"]
    value = recorded[view][name] if view else recorded[name]
    return percent(value) if name.startswith("share") else str(value)


def prompt(number: int) -> str:
    return load("recorded")["prompts"][number]["text"]


def tempered(entries: list[tuple[int, float]], t: float) -> list[float]:
    """Shares of 1 for [(how many tokens, log probability)] at a temperature, as sampling.js does.

    Entries are sorted, the likeliest first; at 0 it has all of it.
    """
    if t == 0:
        return [1.0] + [0.0] * (len(entries) - 1)
    highest = entries[0][1]
    weights = [count * math.exp((log - highest) / t) for count, log in entries]
    total = sum(weights)
    return [weight / total for weight in weights]


def _entries(recorded: dict) -> list[tuple[int, float]]:
    return [(1, log) for _, log in recorded["shown"]] + [tuple(bin_) for bin_ in recorded["rest"]]


def next_tokens(number: int) -> str:
    recorded = load("recorded")["prompts"][number]
    shares = tempered(_entries(recorded), 1)
    rows = [
        [piece(text), bar(share), percent(share)]
        for (text, _), share in zip(recorded["shown"][:LISTED], shares, strict=False)
    ]
    others = sum(shares[LISTED:])
    rows.append([_others(recorded), bar(others), percent(others)])
    caption = f"What may come after <q>{escape(recorded['text'])}</q>"
    return table(caption, ["next token", "", "probability"], rows, "bars")


def _others(recorded: dict) -> str:
    count = len(recorded["shown"]) - LISTED + sum(count for count, _ in recorded["rest"])
    return f"one of {count:,} others"


def cities() -> str:
    rows = []
    for entry in load("recorded")["cities"]:
        pieces = Markup(" &times; ").join(
            Markup("{} {}").format(piece(text), percent(share))
            for text, share in zip(entry["pieces"], entry["each"], strict=True)
        )
        mark = "right" if entry["right"] else "wrong"
        label = Markup('<span class="verdict verdict--{0}">{0}</span>').format(mark)
        rows.append([entry["city"], label, pieces, percent(entry["probability"])])
    caption = f"Cities after <q>{escape(prompt(1))}</q>, by their probability"
    return table(caption, ["city", "on the Elbe?", "token by token", "probability"], rows, "cities")


def temperatures(number: int) -> str:
    recorded = load("recorded")["prompts"][number]
    columns = [tempered(_entries(recorded), t) for t in TEMPERATURES]
    rows = [
        [piece(text), *(percent(column[i]) for column in columns)]
        for i, (text, _) in enumerate(recorded["shown"][:LISTED])
    ]
    rows.append([_others(recorded), *(percent(sum(column[LISTED:])) for column in columns)])
    caption = f"After <q>{escape(recorded['text'])}</q>, at four temperatures"
    head = ["next token", *(f"T = {t}" for t in TEMPERATURES)]
    return table(caption, head, rows, "temperatures")


def paths(nodes: list[dict], text: str = "", likely: float = 1.0) -> Iterator[tuple[str, float]]:
    """All recorded endings of a tree, each with its probability."""
    for node in nodes:
        own, probability = text + node["text"], likely * node["probability"]
        if node.get("next"):
            yield from paths(node["next"], own, probability)
        elif "next" in node:
            yield own, probability


def endings(most: int = 8) -> str:
    """The likeliest ending of each first token."""
    recorded = load("recorded")["tree"]
    best = [max(paths([node]), key=lambda end: end[1]) for node in recorded["next"]]
    best.sort(key=lambda end: -end[1])
    items = [
        Markup("<li>{}<samp>{}</samp></li>").format(recorded["prompt"], text.rstrip())
        for text, _ in best[:most]
    ]
    return f'<ul class="endings">{"".join(items)}</ul>'


def us_date(text: str) -> str:
    day = date.fromisoformat(text)
    return f"{day:%B} {day.day}, {day.year}"


def recorded_how() -> str:
    kept = load("recorded")
    revision = kept["revision"]
    short = revision[:7] if len(revision) == 40 else revision
    return (
        f"`{kept['model']}` (revision `{short}`), recorded on {us_date(kept['recorded'])} with "
        "`scripts/record-model`"
    )


def tinygpt_fact(name: str) -> str:
    head = load("tinygpt")
    facts = {
        "parameters": f"{sum(rows * width for _, rows, width in head['matrices']):,}",
        "characters": len(head["characters"]),
        "validation_loss": f"{head['training']['validation_loss']:.2f}",
        "exported": us_date(head["training"]["exported"]),
    }
    return str(facts[name] if name in facts else head[name])


MACROS: list[Callable[..., str]] = [
    cut_sentence,
    cut_examples,
    vocabulary_size,
    mask,
    attention,
    attention_fact,
    prompt,
    next_tokens,
    cities,
    temperatures,
    endings,
    recorded_how,
    tinygpt_fact,
]
