"""The options of train.py, and the name of the folder for their results."""

import argparse
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Options of sbatch that are easily written in the wrong place, behind the job script's name.
SBATCH_OPTIONS = """
    --account --array --cpus-per-task --dependency --error --exclusive --gpus --gres --job-name
    --mem --mem-per-cpu --nodes --ntasks --output --partition --qos --reservation --signal --time
    -A -J -N -c -n -o -p -t
"""


def count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 up")
    return int(text)


def rate(text):
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return number


def read_options():
    parser = argparse.ArgumentParser(
        description="Train the tiny GPT.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--n-layer", type=count, default=4, help="blocks, one after the other")
    add("--n-head", type=count, default=4, help="attention heads in a block")
    add("--n-embd", type=count, default=128, help="width: numbers for each character")
    add("--block-size", type=count, default=128, help="context: characters that it can look back")
    add("--batch-size", type=count, default=32, help="pieces of text in a step")
    add("--steps", type=count, default=10000, help="length of the training")
    add("--lr", type=rate, default=0.02, help="learning rate: the size of the first steps")
    add("--seed", type=count, default=1, help="another one gives other random numbers")
    add("--eval-every", type=count, default=250, help="steps between two lines and checkpoints")
    data = f"{HERE}/shakespeare.txt"
    add("--data", default=data, help="the text to learn from; without it, shakespeare.txt")
    add(
        "--out",
        default=argparse.SUPPRESS,
        help="folder for the results (default: tinygpt/SETTINGS in the workspace ($WS_DIR), or "
        "runs/SETTINGS beside train.py)",
    )
    options, unknown = parser.parse_known_args()
    for word in unknown:
        if word.split("=")[0] in SBATCH_OPTIONS.split():
            sys.exit(
                f"{word} is an option of sbatch, not of this program. Write it before the name of "
                "the job script, as in: sbatch --time=00:02:00 train.sbatch"
            )
    if unknown:
        parser.error(f"unknown: {' '.join(unknown)}. All options: --help")
    # Not here, but in model.py: whether the heads can share the width evenly.
    if options.n_embd / options.n_head % 2 == 1:
        parser.error("the width of a head, --n-embd divided by --n-head, has to be an even number")
    return options


def results_folder(options):
    """Return --out, or else a folder named by the settings, so that equal settings share one."""
    if "out" in options:
        return options.out
    text = os.path.splitext(os.path.basename(options.data))[0]
    name = (
        f"{text}-{options.n_layer}layers-{options.n_head}heads-{options.n_embd}wide-"
        f"{options.block_size}context-{options.batch_size}batch-{options.steps}steps-"
        f"lr{options.lr:g}-seed{options.seed}"
    )
    workspace = os.environ.get("WS_DIR")  # set by 00_setup/setup_env.sh
    return os.path.join(workspace, "tinygpt", name) if workspace else f"{HERE}/runs/{name}"
