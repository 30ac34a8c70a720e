"""Records what a real model does with the sentence about the Elbe, for the pages inside the model.

    scripts/record-model --model NAME_OR_FOLDER

Written is docs/assets/model/data/recorded.json. Nothing in it is chosen by hand but the sentences
and the cities below: which heads are shown and how the story goes on is found by the rules of the
functions, whatever the model is.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from course.hub import HUB, LISTING
from course.inside import DATA, RecordingError
from course.inside.vocabularies import printable_bytes

SENTENCE = "The Elbe flows through"
ASKING = "The river Elbe flows through the city of"
LOOKS_AT = "Elbe"
# Does the Elbe flow through it? (A map: from the Giant Mountains to the North Sea.)
CITIES = {
    "Dresden": True,
    "Hamburg": True,
    "Magdeburg": True,
    "Meissen": True,
    "Wittenberg": True,
    "Prague": False,
    "Berlin": False,
    "Leipzig": False,
    "Vienna": False,
    "Paris": False,
}

SHOWN = 200  # tokens of a distribution that are recorded one by one
STEP = 0.1  # the others are counted in steps of their log probability
CANDIDATES = 5  # next tokens that are kept at each place of the tree
BRANCHES = 2  # of them, so many go on ...
DEPTH = 2  # ... up to this depth; from there the likeliest does
LONGEST = 15  # tokens of an ending


@dataclass
class Model:
    """A language model, as far as it is asked here."""

    name: str
    revision: str
    encode: Callable[[str], list[int]]
    text: Callable[[int], str | None]  # of a token; None where it is no whole character
    spans: Callable[[str], list[tuple[int, int]]]  # where each token of a text begins and ends
    log_probabilities: Callable[[list[int]], Any]  # of the next token: a tensor
    attentions: Callable[[list[int]], Any]  # layers, heads, looks, looked at


def load(source: str) -> Model:
    """Load a model from a folder, or by its name from the cache of Hugging Face.

    Raises RecordingError when there is none.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        network = AutoModelForCausalLM.from_pretrained(
            source, dtype=torch.float32, attn_implementation="eager"
        ).eval()
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RecordingError(
            f"There is no model {source} ({reason}). scripts/make-model makes one; on the cluster, "
            "generate.py --download-only in lab 06 fetches the course's."
        ) from None

    @torch.no_grad()
    def log_probabilities(ids: list[int]) -> Any:
        return network(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1)

    @torch.no_grad()
    def attentions(ids: list[int]) -> Any:
        found = network(torch.tensor([ids]), output_attentions=True).attentions
        return torch.stack([layer[0] for layer in found])

    name, revision = identify(source, network.config)
    return Model(
        name=name,
        revision=revision,
        encode=lambda text: tokenizer.encode(text, add_special_tokens=False),
        text=lambda id_: whole_text(tokenizer.convert_ids_to_tokens(id_)),
        spans=lambda text: (
            tokenizer(text, add_special_tokens=False, return_offsets_mapping=True).offset_mapping
        ),
        log_probabilities=log_probabilities,
        attentions=attentions,
    )


def identify(source: str, config: Any) -> tuple[str, str]:
    """The name and the revision of a model. A folder of scripts/make-model has its own."""
    folder = Path(source)
    if not folder.is_dir():
        return source, getattr(config, "_commit_hash", None) or "unknown"
    listing = HUB / LISTING
    if listing.is_file() and folder.resolve().is_relative_to(HUB):
        known = json.loads(listing.read_text(encoding="utf-8"))
        return known["model"], known["revision"]
    return folder.name, "of a local folder"


def token_texts(model: Model, text: str) -> list[str]:
    return [text[start:end] for start, end in model.spans(text)]


def distribution(model: Model, ids: list[int]) -> dict:
    """The probabilities of all tokens that may come next.

    The likeliest are listed as [text, log probability], the others as [how many, log probability].
    """
    logs = model.log_probabilities(ids)
    values, order = logs.sort(descending=True)
    shown = [
        [model.text(id_) or "(a part of a sign)", round(value, 4)]
        for value, id_ in zip(values[:SHOWN].tolist(), order[:SHOWN].tolist(), strict=True)
    ]
    bins = Counter(math.floor(value / STEP) for value in values[SHOWN:].tolist())
    rest = [[bins[bin_], round((bin_ + 0.5) * STEP, 4)] for bin_ in sorted(bins, reverse=True)]
    return {"shown": shown, "rest": rest}


def city_probabilities(model: Model, prompt: str) -> list[dict]:
    """The probability of each city after a prompt: that of its first token, times that of …"""
    begin = model.encode(prompt)
    result = []
    for city, right in CITIES.items():
        ids = model.encode(f"{prompt} {city}")
        if ids[: len(begin)] != begin:
            raise RecordingError(f"This model cuts '{prompt}' in another way before ' {city}'.")
        own = ids[len(begin) :]
        logs = [
            model.log_probabilities(ids[: len(begin) + i])[id_].item() for i, id_ in enumerate(own)
        ]
        result.append(
            {
                "city": city,
                "right": right,
                "pieces": [model.text(id_) for id_ in own],
                "each": [math.exp(log) for log in logs],
                "probability": math.exp(sum(logs)),
            }
        )
    return sorted(result, key=lambda entry: -entry["probability"])


def attention_views(model: Model) -> dict:
    """The attention weights of the sentence in three views, each found by a rule."""
    ids = model.encode(SENTENCE)
    tokens = token_texts(model, SENTENCE)
    weights = model.attentions(ids)  # layers, heads, looks, looked at
    start = SENTENCE.index(LOOKS_AT)
    end = start + len(LOOKS_AT)
    places = [i for i, (a, b) in enumerate(model.spans(SENTENCE)) if a < end and b > start]
    heads = weights.size(1)
    to_river = weights[:, :, -1, places].sum(dim=-1)
    to_first = weights[:, :, -1, 0]

    def view(scores: Any) -> dict:
        layer, head = divmod(scores.argmax().item(), heads)
        return {
            "layer": layer + 1,
            "head": head + 1,
            "share": round(scores.max().item(), 4),
            "weights": rounded(weights[layer, head]),
        }

    average = weights.mean(dim=(0, 1))
    return {
        "tokens": tokens,
        "river": places,
        "layers": weights.size(0),
        "heads": heads,
        "finder": view(to_river),
        "first": view(to_first),
        "average": {
            "share_first": round(average[-1, 0].item(), 4),
            "share_river": round(average[-1, places].sum().item(), 4),
            "weights": rounded(average),
        },
    }


def rounded(weights: Any) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in weights.tolist()]


def is_end(text: str) -> bool:
    """Is the sentence over? At a dot, or at a new line."""
    return "\n" in text or text.rstrip().endswith((".", "!", "?"))


def whole_text(token: str) -> str | None:
    """The text of a token as tokenizer.json has it, or None where it is only a part of a sign."""
    signs = printable_bytes()
    try:
        return bytes(signs[sign] for sign in token).decode()
    except (KeyError, UnicodeDecodeError):  # KeyError: a special token, which has no bytes
        return None


def tree(model: Model, prompt: str) -> dict:
    """How the sentence can go on: {text, probability, next: [...]}, up to the end of the sentence.

    At each place the likeliest tokens are kept with their probabilities; those with "next" go on.
    At the first place these are all of them, and each first token of a city.
    """
    begin = model.encode(prompt)
    cities = {model.encode(f"{prompt} {city}")[len(begin)] for city in CITIES}

    def grow(ids: list[int], depth: int) -> list[dict]:
        logs = model.log_probabilities(ids)
        best = logs.topk(4 * CANDIDATES).indices.tolist()
        likely = [id_ for id_ in best if model.text(id_)][:CANDIDATES]
        if depth == 0:
            likely += sorted(cities - set(likely), key=lambda id_: -logs[id_].item())
        branches = len(likely) if depth == 0 else BRANCHES if depth < DEPTH else 1
        nodes = []
        for place, id_ in enumerate(likely):
            text = model.text(id_)
            node = {"text": text, "probability": round(logs[id_].exp().item(), 6)}
            if place < branches and not is_end(text) and depth + 1 < LONGEST:
                node["next"] = grow([*ids, id_], depth + 1)
            elif place < branches:
                node["next"] = []  # an end
            nodes.append(node)
        return nodes

    return {"prompt": prompt, "next": grow(begin, 0)}


def record(model: Model) -> dict:
    """All that is recorded of a model."""
    return {
        "model": model.name,
        "revision": model.revision,
        "recorded": date.today().isoformat(),
        "attention": attention_views(model),
        "prompts": [
            {"text": prompt, **distribution(model, model.encode(prompt))}
            for prompt in (SENTENCE, ASKING)
        ],
        "cities": city_probabilities(model, ASKING),
        "tree": tree(model, ASKING),
    }


def write(source: str) -> None:
    """Record the model and write the file. Raises RecordingError when there is no such model."""
    text = json.dumps(record(load(source)), ensure_ascii=False, separators=(",", ":"))
    (DATA / "recorded.json").write_text(text + "\n", encoding="utf-8")
