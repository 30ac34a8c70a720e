"""How much sooner is the tiny GPT of lab 04 as good as nanoGPT?

    scripts/bench tinygpt --reference ~/nanoGPT

DIR is a checkout of github.com/karpathy/nanoGPT. Both programs train a model of the same size on
the same text on this machine, in turns, three times. Measured is the time of training (without
starting, validating and saving) until the loss on the whole validation part, in windows as long as
the context, is reached. On a CPU, nanoGPT has the settings for a CPU of its README, with a schedule
just long enough to get there; on a GPU those of its config/train_shakespeare_char.py.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

ROOT = Path(__file__).parents[3]
LAB = ROOT / "lab_code/hpc_lab/04_tinygpt"
PAIRS = 3
# The most that a chip can do in bf16, without sparsity, in FLOP/s, from NVIDIA's data sheets.
PEAKS = {"A100": 312e12, "H100": 989e12, "H200": 989e12}


@dataclass
class Case:
    """What is compared: the loss to reach, and the settings of both programs."""

    loss: float
    block_size: int
    reference: str
    reference_batch: int
    every: int  # steps between two looks at the reference's loss
    ours: str
    our_batch: int


CPU = Case(
    loss=1.88,
    block_size=64,
    # The command of nanoGPT's README, with max_iters and lr_decay_iters stretched from 2000.
    reference="--device=cpu --compile=False --block_size=64 --batch_size=12 --n_layer=4 --n_head=4 "
    "--n_embd=128 --dropout=0.0 --max_iters=2600 --lr_decay_iters=2600",
    reference_batch=12,
    every=50,
    ours="--block-size=64 --batch-size=16 --steps=170 --lr=0.06 --eval-every=5",
    our_batch=16,
)
GPU = Case(
    loss=1.4697,
    block_size=256,
    reference="",
    reference_batch=64,
    every=250,
    ours="--n-layer=6 --n-head=6 --n-embd=384 --block-size=256 --batch-size=64 --steps=2000 "
    "--eval-every=50",
    our_batch=64,
)


@dataclass
class Result:
    """seconds: of training until the loss was reached, None if it was not; speed: tokens/s."""

    seconds: float | None
    speed: float
    best: float
    parameters: int


def prepare_reference(reference: Path, data: Path, work: Path) -> Path:
    """Copy the checkout, and let its own program prepare the text. Returns the copy."""
    copy = work / "reference"
    shutil.copytree(reference, copy, ignore=shutil.ignore_patterns(".git", "out*"))
    folder = copy / "data/shakespeare_char"
    shutil.copy(data, folder / "input.txt")
    subprocess.run([sys.executable, folder / "prepare.py"], check=True, stdout=subprocess.DEVNULL)
    return copy


def run_reference(copy: Path, case: Case) -> Result:
    """Train nanoGPT once, keeping its checkpoints; look at their losses afterwards."""
    out = Path(tempfile.mkdtemp(dir=copy))
    command = [sys.executable, "-u", "train.py", "config/train_shakespeare_char.py"]
    command += [*case.reference.split(), f"--out_dir={out}", "--log_interval=1", "--eval_iters=1"]
    command += [f"--eval_interval={case.every}", "--always_save_checkpoint=True"]
    process = subprocess.Popen(
        command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    milliseconds = []
    for line in process.stdout:
        if found := re.match(r"iter (\d+): loss .*, time ([\d.]+)ms", line):
            step = int(found[1])
            milliseconds.append(float(found[2]))
            if step and step % case.every == 0:  # its checkpoint was saved before this line
                shutil.copy(out / "ckpt.pt", out / f"{step}.pt")
    if process.wait() != 0 or not milliseconds:
        sys.exit(f"nanoGPT failed. To see why, run this in its folder: {' '.join(command[2:])}")
    # The steps in which it validated and saved took longer for that reason: take a usual one.
    usual = statistics.median(milliseconds)
    for step in range(0, len(milliseconds), case.every):
        milliseconds[step] = usual

    speed = case.reference_batch * case.block_size * len(milliseconds) / sum(milliseconds) * 1000
    best, parameters = float("inf"), 0
    for step in range(case.every, len(milliseconds), case.every):
        loss, parameters = reference_loss(copy, out / f"{step}.pt", case.block_size)
        best = min(best, loss)
        if loss <= case.loss:
            return Result(sum(milliseconds[:step]) / 1000, speed, best, parameters)
    return Result(None, speed, best, parameters)


@torch.no_grad()
def reference_loss(copy: Path, path: Path, block_size: int) -> tuple[float, int]:
    """The loss of a nanoGPT checkpoint on the whole validation part, and its parameters."""
    spec = importlib.util.spec_from_file_location("reference_model", copy / "model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    state = torch.load(path, map_location=device, weights_only=True)
    model = module.GPT(module.GPTConfig(**state["model_args"])).to(device).eval()
    weights = {name.removeprefix("_orig_mod."): w for name, w in state["model"].items()}
    model.load_state_dict(weights)
    raw = (copy / "data/shakespeare_char/val.bin").read_bytes()
    numbers = torch.frombuffer(bytearray(raw), dtype=torch.uint16).long().to(device)
    windows = (len(numbers) - 1) // block_size
    n = windows * block_size
    x, y = numbers[:n].view(windows, -1), numbers[1 : n + 1].view(windows, -1)
    total = 0.0
    for some_x, some_y in zip(x.split(64), y.split(64), strict=True):
        total += model(some_x, some_y)[1].item() * len(some_x)
    return total / windows, sum(p.numel() for p in model.parameters())


def run_ours(data: Path, case: Case, seed: int) -> Result:
    """Train the tiny GPT of lab 04 once."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, LAB / "train.py", *case.ours.split(), f"--data={data}"]
        command += [f"--seed={seed}", f"--out={out}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        history = json.loads(Path(out, "losses.json").read_text())["history"]
        state = torch.load(Path(out, "checkpoint.pt"), weights_only=True, map_location="cpu")
    parameters = sum(weights.numel() for weights in state["trainer"]["model"].values())
    steps, _, losses, seconds = zip(*history, strict=True)
    speed = steps[-1] * case.our_batch * case.block_size / seconds[-1]
    reached = [s for s, loss in zip(seconds, losses, strict=True) if loss <= case.loss]
    return Result(reached[0] if reached else None, speed, min(losses), parameters)


def share_of_peak(result: Result) -> str:
    """How much of the GPU's peak a training used, or "" where the peak is not known."""
    if not torch.cuda.is_available():
        return ""
    name = torch.cuda.get_device_name()
    for chip, peak in PEAKS.items():
        if chip in name:
            # Each parameter takes 6 operations per token: 2 forward, 4 backward.
            return f", {6 * result.parameters * result.speed / peak:.1%} of the peak of an {chip}"
    return f", peak of {name} not known"


def describe(name: str, result: Result, loss: float) -> str:
    reached = f"{result.seconds:.1f} s" if result.seconds else f"never (best {result.best:.3f})"
    return (
        f"  {name:8} to loss {loss}: {reached}, {result.speed / 1000:.1f}k tokens/s, "
        f"{result.parameters / 1e6:.2f} M parameters{share_of_peak(result)}"
    )


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench tinygpt", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--reference", required=True, type=Path, metavar="DIR")
    parser.add_argument("--data", type=Path, metavar="FILE", default=LAB / "shakespeare.txt")
    options = parser.parse_args()
    if not (options.reference / "config/train_shakespeare_char.py").is_file():
        sys.exit(f"{options.reference} is not a checkout of nanoGPT.")
    if not options.data.is_file():
        sys.exit(f"There is no file {options.data}.")

    case = GPU if torch.cuda.is_available() else CPU
    chip = torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU"
    print(f"PyTorch {torch.__version__} on {chip}, {len(os.sched_getaffinity(0))} cores")
    times, speeds = [], []
    with tempfile.TemporaryDirectory() as work:
        copy = prepare_reference(options.reference, options.data.absolute(), Path(work))
        for pair in range(1, PAIRS + 1):
            theirs = run_reference(copy, case)
            ours = run_ours(options.data.absolute(), case, seed=pair)
            print(f"pair {pair}:", describe("nanoGPT", theirs, case.loss), sep="\n")
            print(describe("ours", ours, case.loss), flush=True)
            if theirs.seconds is None or ours.seconds is None:
                sys.exit("One of them never reached the loss, so there is nothing to compare.")
            times.append(theirs.seconds / ours.seconds)
            speeds.append(ours.speed / theirs.speed)
    print("median of the pairs (smallest to largest):")
    print(f"  ours is there {spread(times)} times sooner")
    print(f"  ours reads {spread(speeds)} times as many tokens in a second")


if __name__ == "__main__":
    main()
