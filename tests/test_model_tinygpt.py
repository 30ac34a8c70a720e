"""The tiny GPT in the page computes what PyTorch computes."""

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page

torch = pytest.importorskip("torch", reason="not run: needs PyTorch")

from course.inside import DATA, tinygpt  # noqa: E402
from tinygpt_runs import train  # noqa: E402

ROUNDING = 2e-3  # of 32-bit sums in another order, in a score; scores go from about -10 to 10


@pytest.fixture(scope="module")
def lab():
    """The lab's modules model and sample, found as when one of its programs runs."""
    sys.path.insert(0, str(tinygpt.LAB))
    modules = {}
    for name in ("model", "sample"):
        spec = importlib.util.spec_from_file_location(name, tinygpt.LAB / f"{name}.py")
        modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    yield modules
    sys.path.remove(str(tinygpt.LAB))


def read_weights(folder: Path) -> tuple[dict, dict]:
    """What tinygpt.json says, and the matrices of tinygpt.bin (int8), for PyTorch."""
    head = json.loads((folder / "tinygpt.json").read_text(encoding="utf-8"))
    content = (folder / "tinygpt.bin").read_bytes()
    rows = sum(height for _, height, _ in head["matrices"])
    factors = torch.frombuffer(bytearray(content[: 4 * rows]), dtype=torch.float32)
    values = torch.frombuffer(bytearray(content[4 * rows :]), dtype=torch.int8)
    weights, row, place = {}, 0, 0
    for name, height, width in head["matrices"]:
        matrix = values[place : place + height * width].view(height, width).float()
        weights[f"{name}.weight"] = matrix * factors[row : row + height, None]
        row, place = row + height, place + height * width
    return head, weights


@pytest.fixture(scope="module")
def gpt(lab):
    """The tiny GPT of the page, in PyTorch."""
    head, weights = read_weights(DATA)
    sizes = {name: head[name] for name in ("n_layer", "n_head", "n_embd", "block_size")}
    model = lab["model"].GPT(n_vocab=len(head["characters"]), **sizes)
    model.load_state_dict(weights)
    model.characters, model.sizes = head["characters"], sizes
    return model


@pytest.fixture
def page(context) -> Page:
    page = context.new_page()
    page.goto("/model/temperature/")
    return page


@torch.no_grad()
def test_the_scores_are_those_of_pytorch(page, gpt):
    dice = random.Random(2)
    texts = [
        dice.choices(range(len(gpt.characters)), k=dice.randint(1, gpt.block_size))
        for _ in range(200)
    ]
    ours = page.evaluate(
        """async (texts) => {
            const { loadTinyGPT } = await import("/assets/model/tinygpt.js");
            const model = await loadTinyGPT();
            return texts.map((text) => {
                model.forget();
                let scores;
                for (const character of text) scores = model.next(character);
                return Array.from(scores);
            });
        }""",
        texts,
    )
    for text, mine in zip(texts, ours, strict=True):
        theirs = gpt(torch.tensor([text]))[0, -1]
        torch.testing.assert_close(torch.tensor(mine), theirs, rtol=0, atol=ROUNDING)


def test_the_likeliest_200_characters_are_those_of_pytorch(page, gpt, lab, tmp_path):
    # A checkpoint as train.py writes it, with the page's weights: exported without rounding them.
    settings = {"n_vocab": len(gpt.characters), **gpt.sizes}
    settings |= {"batch_size": 1, "steps": 1, "lr": 1.0, "seed": 1}
    progress = {"model": gpt.state_dict(), "progress": [1, 0.0, [[1, 0.0, 0.0, 0.0]]]}
    state = {"settings": settings, "characters": gpt.characters, "trainer": progress}
    torch.save(state, tmp_path / "checkpoint.pt")
    tinygpt.export(tmp_path / "checkpoint.pt", tmp_path, numbers="float32")
    page.route(
        "**/unquantized/*",
        lambda route: route.fulfill(path=tmp_path / route.request.url.rsplit("/", 1)[1]),
    )
    for prompt in ("ROMEO:", "The Elbe flows through", "\n"):
        ours = page.evaluate(
            """async (prompt) => {
                const { loadTinyGPT } = await import("/assets/model/tinygpt.js");
                const model = await loadTinyGPT(new URL("/unquantized/", location.href));
                let text = prompt;
                let scores;
                for (const character of model.encode(prompt)) scores = model.next(character);
                for (let i = 0; i < 200; i++) {
                    const best = scores.indexOf(Math.max(...scores));
                    text += model.characters[best];
                    scores = model.next(best);
                }
                return text;
            }""",
            prompt,
        )
        assert ours == lab["sample"].write(gpt, gpt.characters, prompt, length=200, top_k=1)


def test_a_trained_checkpoint_is_exported_with_an_error_of_half_a_step(tmp_path):
    result = train(tmp_path, "--steps=3")
    assert result.returncode == 0, result.stderr
    checkpoint = tmp_path / "run/checkpoint.pt"
    tinygpt.export(checkpoint, tmp_path)
    _, weights = read_weights(tmp_path)
    trained = torch.load(checkpoint, weights_only=True)["trainer"]["model"]
    assert weights.keys() == trained.keys()
    for name, matrix in trained.items():
        half_a_step = matrix.abs().amax(dim=1, keepdim=True) / 127 / 2
        assert ((weights[name] - matrix).abs() <= half_a_step * 1.001).all(), name


def test_the_files_in_the_page_are_small_enough():
    assert sum((DATA / name).stat().st_size for name in ("tinygpt.bin", "tinygpt.json")) < 2**20


def test_what_is_no_checkpoint_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "checkpoint.pt").write_text("not one")
    with pytest.raises(tinygpt.RecordingError, match="is no checkpoint of lab 04"):
        tinygpt.export(tmp_path / "checkpoint.pt", tmp_path)


def test_beyond_its_context_it_goes_on_with_the_second_half(page, gpt):
    same = page.evaluate(
        """async () => {
            const { loadTinyGPT } = await import("/assets/model/tinygpt.js");
            const model = await loadTinyGPT();
            const text = Array.from({ length: model.blockSize + 1 }, (_, i) => (i * 7) % 60);
            let long, short;
            for (const character of text) long = model.next(character);
            model.forget();
            for (const character of text.slice(model.blockSize / 2)) short = model.next(character);
            return long.every((score, i) => score === short[i]);
        }"""
    )
    assert same
