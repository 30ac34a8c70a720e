"""Train the tiny GPT on Shakespeare, let it write a little, and draw its losses.

    mkdir -p logs && sbatch train.sbatch                            as a job, with a GPU
    sbatch train.sbatch --n-head 6 --n-embd 384                     with other settings
    python train.py --steps 300 --batch-size 16 --block-size 64     by hand, small enough for a CPU
    torchrun --standalone --nproc-per-node=2 train.py               with two GPUs

Every 250 steps it prints a line and saves a checkpoint:

    step   250 | train 1.7041 | val 1.8232 | 68.2k tok/s | 30s

train and val are losses: how surprised the model is, on average, by the next character. train: of
the pieces of text that it has just learned from. val: of the last tenth of the text, which it
never learns from. Then how many thousand characters (tokens) it reads in a second, and for how
many seconds it has trained. The time for the validation is not counted.

SIGTERM (the time is nearly up, or scancel) makes it save and stop. Start it again with the same
settings and it goes on from there, to the same result as if nothing had happened.
"""

import json
import math
import os
import signal
import sys
import time
import zlib

import torch
import torch.distributed as dist
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import checkpoint
from model import GPT
from muon import Muon
from sample import write
from settings import read_options, results_folder
from text import read_text, training_batches, validation_windows

# torchrun starts several processes and numbers them. Without it there is one, number 0.
RANK = int(os.environ.get("RANK", 0))
RANKS = int(os.environ.get("WORLD_SIZE", 1))

received = []  # the signals that have come so far


def remember(number, frame):
    """Note that a signal has come. Python calls this at any moment, whatever it is doing."""
    received.append(signal.Signals(number).name)


def say(text, end="\n"):
    if RANK == 0:
        # On a terminal, first go back to the start of the line and clear the progress display.
        clear = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{clear}{text}", end=end, flush=True)


def choose_device():
    """Return (device, dtype): where to compute, and with which numbers to multiply matrices."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
        say(f"Training on {RANKS} x {torch.cuda.get_device_name(device)}")
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
        return device, torch.bfloat16 if fast else torch.float32
    # The cores that Slurm gave to this job, not all of the machine.
    cores = len(os.sched_getaffinity(0))
    given = os.environ.get("SLURM_CPUS_PER_TASK", "")
    if given.isdecimal():
        cores = min(cores, int(given))
    torch.set_num_threads(max(1, cores // RANKS))
    say(f"No GPU. Training on the CPU ({cores} cores), which takes longer.")
    # 16-bit numbers only where the CPU has instructions for them. Elsewhere they are very slow.
    can = torch.cpu.get_capabilities()
    fast = can.get("avx512_bf16") or can.get("amx_bf16")
    return torch.device("cpu"), torch.bfloat16 if fast else torch.float32


class Training:
    """The model, its optimizers, and how far they have come."""

    def __init__(self, model, dtype, lr, steps):
        self.model, self.dtype, self.lr, self.steps = model, dtype, lr, steps
        self.device = next(model.parameters()).device
        # With several processes, each one learns from its share of the batch, and this wrapper
        # averages the gradients. So all of them make the same step.
        self.parallel = model
        if RANKS > 1:
            self.parallel = DistributedDataParallel(model, broadcast_buffers=False)
        # Muon is for matrices. Tables, and the scores made at the end, do better with AdamW.
        self.muon = Muon(list(model.blocks.parameters()), dtype)
        rest = [*model.here.parameters(), *model.before.parameters(), *model.scores.parameters()]
        self.adamw = torch.optim.AdamW(rest, betas=(0.8, 0.95), weight_decay=0.0, fused=True)
        self.step, self.seconds, self.history = 0, 0.0, []
        # The sum of the losses since the last line. It stays on the GPU: reading it would mean
        # to wait for the GPU in every step.
        self.loss_sum, self.loss_count = torch.zeros((), device=self.device), 0

    def loss(self, model, characters, targets):
        """Return how surprised the model is by the real next characters, summed up.

        The scores become probabilities. The surprise is minus the logarithm of the probability of
        the right character (cross entropy): 0 is perfect, guessing among 65 is 4.17.
        """
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            scores = model(characters)  # (B, T, V)
        return cross_entropy(scores.float().flatten(0, 1), targets.flatten())

    def learn(self, characters, targets):
        """Make one step: how wrong is the model, and which change makes it a bit less wrong?"""
        share = slice(RANK, None, RANKS)
        loss = self.loss(self.parallel, characters[share], targets[share])
        loss.backward()  # now every parameter has its gradient: the direction in which loss grows
        # Large steps at first, then smaller and smaller ones, to settle down.
        lr = self.lr * (1 - self.step / self.steps)
        self.muon.step(lr)
        for group in self.adamw.param_groups:
            group["lr"] = lr
        self.adamw.step()
        self.model.zero_grad()
        self.loss_sum += loss.detach()
        self.loss_count += 1
        self.step += 1

    def training_loss(self):
        """Return the average loss since the last line. Ends the program when it is not a number."""
        if RANKS > 1:
            dist.all_reduce(self.loss_sum)
            self.loss_sum /= RANKS
        mean = self.loss_sum.item() / max(1, self.loss_count)
        if not math.isfinite(mean):
            sys.exit(
                f"The loss is {mean} at step {self.step}: the training went out of control. "
                f"Lower the learning rate, for example --lr {self.lr / 4:g}"
            )
        return mean

    @torch.no_grad()
    def validation_loss(self, windows, batch_size):
        """Return the average loss over the whole validation part."""
        total = 0.0
        for characters, targets in zip(*(part.split(batch_size) for part in windows), strict=True):
            total += self.loss(self.model, characters, targets) * len(characters)
        return total.item() / len(windows[0])

    def state(self):
        """Return all that it takes to go on later."""
        return {
            "model": self.model.state_dict(),
            "muon": self.muon.momentum,
            "adamw": self.adamw.state_dict(),
            "random": torch.get_rng_state(),
            "loss": [self.loss_sum.item(), self.loss_count],
            "progress": [self.step, self.seconds, self.history],
        }

    def restore(self, state):
        """Go on from what state() returned."""
        self.model.load_state_dict(state["model"])
        self.muon.momentum = state["muon"]
        self.adamw.load_state_dict(state["adamw"])
        torch.set_rng_state(state["random"].cpu())
        self.loss_sum.fill_(state["loss"][0])
        self.loss_count = state["loss"][1]
        self.step, self.seconds, self.history = state["progress"]


def told_to_stop():
    """Has a signal come, to this process or to another one of this training?"""
    if RANKS == 1:
        return bool(received)
    stop = torch.tensor(len(received))
    dist.all_reduce(stop)
    return stop > 0


def train(training, batches, windows, options, save):
    """Learn until the last step, or until a signal comes."""
    clock, last = time.perf_counter(), training.step
    while training.step < training.steps and not told_to_stop():
        training.learn(*next(batches))
        step = training.step
        if sys.stdout.isatty() and step % 10 == 0:
            say(f"step {step:5d} of {training.steps}", end="")
        if step % options.eval_every and step < training.steps:
            continue
        # Time for a line. Reading the loss waits for the GPU, so the clock comes after it.
        train_loss = training.training_loss()
        seconds = time.perf_counter() - clock
        training.seconds += seconds
        if RANK == 0:
            val_loss = training.validation_loss(windows, options.batch_size)
            speed = (step - last) * options.batch_size * options.block_size / seconds
            say(
                f"step {step:5d} | train {train_loss:.4f} | val {val_loss:.4f} | "
                f"{speed / 1000:.1f}k tok/s | {training.seconds:.0f}s"
            )
            training.history.append([step, train_loss, val_loss, training.seconds])
        training.loss_sum.zero_()
        training.loss_count = 0
        save()
        clock, last = time.perf_counter(), step
    if training.step < training.steps:
        say(f"Got {(received or ['a signal'])[0]}, saving a checkpoint and stopping")
        training.training_loss()
        training.seconds += time.perf_counter() - clock
        save()


def draw_losses(history, path):
    """Draw the losses of training and validation over the steps."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    steps = [line[0] for line in history]
    axes.plot(steps, [line[1] for line in history], "o--", markersize=3, label="training")
    axes.plot(steps, [line[2] for line in history], "o-", markersize=3, label="validation")
    axes.set(xlabel="step", ylabel="loss (nats per character)", title="The tiny GPT learns")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def resume(training, settings, path):
    """Go on from the checkpoint at path, if there is one for these settings."""
    if not os.path.exists(path):
        return
    state = checkpoint.load(path, training.device)
    for name, value in settings.items():
        if state["settings"].get(name) != value:
            sys.exit(
                f"{path} belongs to other settings: {name} was {state['settings'].get(name)}, "
                f"now it is {value}. I left the file as it is. Choose another folder with --out."
            )
    training.restore(state["training"])
    say(f"Going on at step {training.step}, from {path}")


def finish(training, characters, folder):
    """Draw the losses. Let the model write, if it has learned everything."""
    draw_losses(training.history, f"{folder}/loss.png")
    say(f"The losses as a picture: {folder}/loss.png")
    if training.step == training.steps:
        say(f"The model writes:\n\n{write(training.model, characters)}\n")


def run(options):
    device, dtype = choose_device()
    if RANKS > 1:
        # gloo for messages between CPUs, nccl between GPUs.
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        if options.batch_size % RANKS:
            sys.exit(f"{RANKS} processes cannot share a --batch-size of {options.batch_size}.")

    characters, learn_from, validate_on = read_text(options.data)
    size = {name: getattr(options, name) for name in ("n_layer", "n_head", "n_embd", "block_size")}
    model_settings = {"n_vocab": len(characters), **size}
    torch.manual_seed(options.seed)
    model = GPT(**model_settings).to(device)
    training = Training(model, dtype, options.lr, options.steps)

    # What the result depends on. A checkpoint of anything else is not this training's.
    settings = {
        **model_settings,
        "batch_size": options.batch_size,
        "steps": options.steps,
        "lr": options.lr,
        "seed": options.seed,
        "text": zlib.crc32(learn_from.numpy()),  # another text has another number
    }
    folder = results_folder(options)
    if RANK == 0:
        checkpoint.reserve(folder)
    resume(training, settings, f"{folder}/checkpoint.pt")

    def save():
        if RANK == 0:
            state = {"settings": settings, "model_settings": model_settings}
            state |= {"characters": characters, "training": training.state()}
            checkpoint.save(f"{folder}/checkpoint.pt", state)
            losses = {"settings": settings, "history": training.history}
            checkpoint.write_file(f"{folder}/losses.json", json.dumps(losses).encode())

    batches = training_batches(
        learn_from.to(device), options.block_size, options.batch_size, options.seed, training.step
    )
    windows = validation_windows(validate_on.to(device), options.block_size)
    train(training, batches, windows, options, save)
    if RANK == 0:
        finish(training, characters, folder)
    if RANKS > 1:
        dist.destroy_process_group()


def main():
    options = read_options()
    signal.signal(signal.SIGTERM, remember)  # from Slurm
    signal.signal(signal.SIGINT, remember)  # Ctrl+C
    try:
        run(options)
    except (RuntimeError, MemoryError) as error:
        if "memory" not in f"{type(error)} {error}".lower():
            raise
        sys.exit(
            "Not enough memory for these settings. Lower --batch-size "
            f"(now {options.batch_size}), then --n-embd, --n-layer or --block-size."
        )


if __name__ == "__main__":
    main()
