"""Let a trained tiny GPT write.

    python sample.py                                    with the model that was trained last
    python sample.py --prompt "JULIET:" --seed 7        another beginning, other random choices
    python sample.py --temperature 0.5                  bolder above 1, more careful below
    python sample.py --top-k 3                          only ever one of the 3 likeliest characters
    python sample.py --checkpoint runs/…/checkpoint.pt  another model

The temperature divides the scores before they become probabilities. Below 1, what is likely
becomes even likelier; above 1, the unlikely gets its chance.
"""

import argparse
import glob
import os
import sys

import torch

import checkpoint
from model import GPT
from settings import HERE, count, rate
from text import decode, encode


@torch.no_grad()  # it only writes here, and does not learn
def write(model, characters, prompt="ROMEO:", length=500, temperature=0.8, top_k=None, seed=1):
    """Return prompt and the characters that the model writes behind it, length of them."""
    device = next(model.parameters()).device
    random = torch.Generator(device).manual_seed(seed)
    numbers = encode(prompt, characters).to(device)[None]  # (1, T): a batch of one
    for _ in range(length):
        # The model sees the last characters, as many as it can, and scores the next one.
        scores = model(numbers[:, -model.block_size :])[0, -1].float()  # (V)
        if top_k is not None and top_k < len(characters):
            scores[scores < scores.topk(top_k).values[-1]] = float("-inf")
        probabilities = (scores / temperature).softmax(dim=0)  # (V)
        # Draw one character. A likely one is drawn often, an unlikely one sometimes.
        drawn = torch.multinomial(probabilities, 1, generator=random)  # (1)
        numbers = torch.cat([numbers, drawn[None]], dim=1)  # (1, T + 1)
    return decode(numbers[0].tolist(), characters)


def newest_checkpoint():
    """Return the path of the checkpoint that was written last."""
    places = [f"{HERE}/runs/*/checkpoint.pt"]
    if os.environ.get("WS_DIR"):
        places.append(os.path.join(os.environ["WS_DIR"], "tinygpt/*/checkpoint.pt"))
    found = [path for place in places for path in glob.glob(place)]
    if not found:
        sys.exit(
            "No trained model found. Train one first: sbatch train.sbatch. "
            "In a new terminal, type before: source ../00_setup/setup_env.sh"
        )
    return max(found, key=os.path.getmtime)


def read_options():
    parser = argparse.ArgumentParser(
        description="Let a trained tiny GPT write.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--prompt", default="ROMEO:", help="the beginning, which the model continues")
    add("--length", type=count, default=500, help="how many characters to write")
    add("--temperature", type=rate, default=0.8, help="below 1: careful, above 1: bold")
    add("--top-k", type=count, help="choose among this many of the likeliest characters only")
    add("--seed", type=count, default=1, help="another one gives other random choices")
    add("--checkpoint", help="the trained model; without it, the one that was written last")
    return parser.parse_args()


def main():
    options = read_options()
    path = options.checkpoint or newest_checkpoint()
    state = checkpoint.load(path)
    characters = state["characters"]
    strange = set(options.prompt) - set(characters)
    if strange or not options.prompt:
        known = "".join(character for character in characters if character.isprintable())
        sys.exit(f"The prompt needs at least one character. The model knows only these: {known}")
    model = GPT(**state["model_settings"])
    model.load_state_dict(state["trainer"]["model"])
    print(f"({path}, step {state['trainer']['progress'][0]})", file=sys.stderr)
    text = write(
        model,
        characters,
        options.prompt,
        options.length,
        options.temperature,
        options.top_k,
        options.seed,
    )
    print(text)


if __name__ == "__main__":
    main()
