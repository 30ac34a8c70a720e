"""Make a table and a picture of a sweep: which learning rate is the best?

    python collect.py 1234590 0.003 0.01 0.03 0.1

1234590 is the number of the sweep. The learning rates are those of its jobs, in their order. The
table is sorted by the loss on the validation part: the best is at the top. Jobs that failed, that
stopped early, or that left nothing are named too. collect.sbatch runs this when a sweep is over.
"""

import json
import os
import sys

from matplotlib import colormaps
from matplotlib.figure import Figure


def read_results(folder):
    """Return (steps, history) of one training: how long it was to be, and its lines so far.

    A line is [step, training loss, validation loss, seconds]. Without results: (None, []).
    """
    try:
        with open(f"{folder}/losses.json", encoding="utf-8") as file:
            losses = json.load(file)
        return losses["settings"]["steps"], losses["history"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, []


def print_table(results, sweep):
    """Print one line for each learning rate, the best first, those without a result last."""
    print(f"Sweep {sweep}: {len(results)} learning rates, the best first\n")
    print("task | learning rate | validation loss | training loss |          step")

    def last_loss(result):
        history = result[3]
        return history[-1][2] if history else float("inf")

    for task, lr, steps, history in sorted(results, key=last_loss):
        if not history:
            print(f"{task:4d} | {lr:>13} | no result: read logs/sweep-{sweep}_{task}.err")
            continue
        step, train, val, _ = history[-1]
        early = "" if step == steps else f"  not finished: read logs/sweep-{sweep}_{task}.err"
        print(
            f"{task:4d} | {lr:>13} | {val:15.4f} | {train:13.4f} | {step:5d} of {steps:5d}{early}"
        )


def draw_curves(results, path):
    """Draw the validation loss over the steps: one curve for each learning rate."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for task, lr, _, history in results:
        # From dark to light, in the order of the list, so that gray print tells them apart too.
        color = colormaps["viridis"](0.85 * task / len(results))
        steps = [line[0] for line in history]
        losses = [line[2] for line in history]
        marker = "osD^vPX*"[task % 8]
        axes.plot(steps, losses, color=color, marker=marker, markersize=4, label=lr)
    axes.set(xlabel="step", ylabel="validation loss (nats per character)")
    axes.grid(alpha=0.3)
    axes.legend(title="learning rate", ncols=1 + len(results) // 12)
    figure.savefig(path, dpi=150)


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdecimal():
        sys.exit("Usage: python collect.py NUMBER_OF_THE_SWEEP LEARNING_RATE...")
    sweep, *learning_rates = sys.argv[1:]
    workspace = os.environ.get("WS_DIR")
    if not workspace:
        sys.exit("WS_DIR is empty: run source ../00_setup/setup_env.sh first")
    folder = f"{workspace}/sweep/{sweep}"
    results = [
        (task, lr, *read_results(f"{folder}/{task}")) for task, lr in enumerate(learning_rates)
    ]
    print_table(results, sweep)
    if not any(history for _, _, _, history in results):
        sys.exit(f"\nNo job of sweep {sweep} left a result in {folder}.")
    draw_curves(results, f"{folder}/sweep.png")
    print(f"\nThe curves: {folder}/sweep.png")


if __name__ == "__main__":
    main()
