"""How much faster lab 06's generate.py answers than a plain loop in fp32, prompt by prompt.

The same prompts, the same model and the same number of new tokens for each: the token that ends
an answer is switched off.
"""

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType

import torch
from transformers import AutoModelForCausalLM

from course.hub import HUB, load_listing, make_model
from course.scenes import LAB

PAIRS = 3
NEW_TOKENS = 64
PROMISED = 2.5


def main(argv: list[str]) -> int:
    """Measures PAIRS pairs, in turns; gives the exit code, 1 where the promise is not kept."""
    if argv:
        print("Usage: scripts/bench generate", file=sys.stderr)
        return 2
    make_model()
    program = load_program()
    prompts = program.read_prompts(LAB / "06_hf_generate/prompts.txt")
    folder = HUB / load_listing()["model"]
    model, tokenizer = program.load_model(folder)
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(model.device)
    for one in (model, plain):
        one.generation_config.eos_token_id = None
    print(
        f"{len(prompts)} prompts, {NEW_TOKENS} new tokens each, {torch.get_num_threads()} threads"
    )
    print(f"generate.py: one batch, {model.dtype}; loop: one by one, {plain.dtype}")

    ratios = []
    for _ in range(PAIRS):
        batch = speed(lambda: program.answer(model, tokenizer, prompts, NEW_TOKENS, 0.7, seed=1))
        loop = speed(lambda: answer_in_a_loop(plain, tokenizer, prompts))
        ratios.append(batch / loop)
        print(f"{batch:.1f} and {loop:.1f} tokens/s: {ratios[-1]:.2f} times")
    median = statistics.median(ratios)
    print(f"median: {median:.2f} times (promised: {PROMISED})")
    return 0 if median >= PROMISED else 1


def load_program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", LAB / "06_hf_generate/generate.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def answer_in_a_loop(model, tokenizer, prompts: list[str]) -> torch.Tensor:
    """Answer one prompt after the other. Return the new tokens, a row for each prompt."""
    rows = []
    for prompt in prompts:
        inputs = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        ).to(model.device)
        output = model.generate(
            **inputs, max_new_tokens=NEW_TOKENS, do_sample=True, temperature=0.7
        )
        rows.append(output[:, inputs["input_ids"].shape[1] :])
    return torch.cat(rows)


def speed(answer: Callable[[], torch.Tensor]) -> float:
    """New tokens in a second, of all answers together."""
    begin = time.perf_counter()
    new_tokens = answer()
    seconds = time.perf_counter() - begin
    assert new_tokens.shape[1] == NEW_TOKENS  # no answer has ended before
    return new_tokens.numel() / seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
