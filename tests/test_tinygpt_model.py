"""The tiny GPT itself: what its parts promise in their comments."""

import ast
import sys
from pathlib import Path

import pytest
import torch

LAB = Path(__file__).parents[1] / "lab_code/hpc_lab/04_tinygpt"
PROGRAMS = sorted([*LAB.glob("*.py"), *LAB.parent.glob("05_sweep/*.py")])


@pytest.fixture(scope="module")
def lab():
    """The lab's modules, found as when one of its programs runs."""
    sys.path.insert(0, str(LAB))
    import model
    import muon
    import text

    yield {"model": model, "muon": muon, "text": text}
    sys.path.remove(str(LAB))


@pytest.fixture
def gpt(lab):
    """A model with random numbers everywhere, also where training starts with zeros."""
    torch.manual_seed(0)
    model = lab["model"].GPT(n_vocab=20, n_layer=2, n_head=2, n_embd=16, block_size=12)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


@torch.no_grad()
def test_no_character_sees_the_ones_after_it(gpt):
    characters = torch.randint(20, (1, 12))
    changed = characters.clone()
    changed[0, 7:] = (changed[0, 7:] + 1) % 20
    before, after = gpt(characters), gpt(changed)
    assert torch.equal(before[0, :7], after[0, :7])
    assert not torch.allclose(before[0, 7:], after[0, 7:])


@torch.no_grad()
def test_every_character_sees_all_before_it(gpt):
    characters = torch.randint(20, (1, 12))
    end = gpt(characters)[0, -1]
    for place in range(12):
        changed = characters.clone()
        changed[0, place] = (changed[0, place] + 1) % 20
        assert not torch.allclose(gpt(changed)[0, -1], end), f"place {place} makes no difference"


@torch.no_grad()
def test_a_short_text_is_read_like_the_start_of_a_long_one(gpt):
    characters = torch.randint(20, (1, 12))
    torch.testing.assert_close(gpt(characters[:, :5]), gpt(characters)[:, :5])


@torch.no_grad()
def test_rotated_vectors_fit_by_their_distance_alone(lab, gpt):
    query, key = torch.randn(8), torch.randn(8)
    everywhere = torch.ones(1, 1, 12, 1)
    q = lab["model"].rotate(query * everywhere, gpt.cos, gpt.sin)[0, 0]
    k = lab["model"].rotate(key * everywhere, gpt.cos, gpt.sin)[0, 0]
    torch.testing.assert_close(q[5] @ k[2], q[10] @ k[7])


@torch.no_grad()
def test_an_untrained_model_finds_all_characters_equally_likely(lab):
    model = lab["model"].GPT(n_vocab=20, n_layer=2, n_head=2, n_embd=16, block_size=12)
    probabilities = model(torch.randint(20, (3, 12))).softmax(dim=-1)
    torch.testing.assert_close(probabilities, torch.full((3, 12, 20), 1 / 20))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: needs a GPU")
@torch.no_grad()
def test_the_attention_of_the_gpu_is_that_of_the_cpu(gpt):
    characters = torch.randint(20, (3, 12))
    on_cpu = gpt(characters)
    on_gpu = gpt.cuda()(characters.cuda())
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-3, atol=1e-3)


def test_muon_makes_all_directions_about_equally_long(lab):
    gradients = torch.randn(3, 16, 40) * torch.logspace(-1, 1, 16)[:, None]
    lengths = torch.linalg.svdvals(lab["muon"].same_length_in_all_directions(gradients))
    assert lengths.min() > 0.3 and lengths.max() < 1.6


def test_muon_treats_upright_and_lying_matrices_alike(lab):
    lying = torch.nn.Parameter(torch.zeros(8, 32))
    upright = torch.nn.Parameter(torch.zeros(32, 8))
    lying.grad = torch.randn(8, 32)
    upright.grad = lying.grad.T.clone()
    lab["muon"].Muon([lying, upright], torch.float32).step(lr=0.1)
    torch.testing.assert_close(upright.detach(), 2 * lying.detach().T)  # 2: the root of 32 / 8


def test_an_epoch_reads_every_block_once(lab):
    numbers = torch.arange(1000)
    batches = lab["text"].training_batches(numbers, block_size=10, batch_size=9, seed=1, step=0)
    seen = []
    for _ in range(11):  # 99 blocks, 9 in a batch
        characters, targets = next(batches)
        assert torch.equal(targets, characters + 1)
        seen += characters.flatten().tolist()
    assert len(seen) == len(set(seen)) == 990


def test_batches_go_on_in_the_middle_as_from_the_start(lab):
    def batches(step):
        return lab["text"].training_batches(torch.arange(1000), 10, 9, 1, step)

    all_of_them = batches(0)
    expected = [next(all_of_them) for _ in range(30)]
    for step in (1, 10, 11, 12, 25):
        assert torch.equal(next(batches(step))[0], expected[step][0])


def test_validation_reads_the_whole_part_in_windows(lab):
    characters, targets = lab["text"].validation_windows(torch.arange(1001), 10)
    assert torch.equal(characters.flatten(), torch.arange(1000))
    assert torch.equal(targets, characters + 1)


def test_the_files_stay_short_enough_to_be_read():
    lengths = {path.name: len(path.read_text().splitlines()) for path in PROGRAMS}
    assert lengths["model.py"] <= 200
    assert lengths["train.py"] <= 300
    for path in PROGRAMS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                length = node.end_lineno - node.lineno + 1
                assert length <= 50, f"{node.name} in {path.name} has {length} lines"
