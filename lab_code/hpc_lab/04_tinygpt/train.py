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

import io
import json
import os
import signal
import sys
import time
import zlib

import torch
import torch.distributed as dist
from matplotlib.figure import Figure

import checkpoint
from model import GPT
from sample import write
from settings import read_options, results_folder
from text import read_text, training_batches, validation_windows
from trainer import RANK, RANKS, Trainer

received = []  # the signals that have come so far


def remember(number, frame):
    """Note that a signal has come. Python calls this at any moment, whatever it is doing."""
    received.append(signal.Signals(number).name)


def say(text, end="\n"):
    if RANK == 0:
        # On a terminal, first go back to the start of the line and clear the progress display.
        clear = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{clear}{text}", end=end, flush=True)


def choose_device(options):
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
    # A core that gets less than 32768 numbers to work on only makes the others wait.
    numbers = options.batch_size * options.block_size * options.n_embd  # in a layer
    work = max(numbers, options.n_embd**2)  # or in a matrix, where that is more
    cores = max(1, min(cores // RANKS, work // 32768))
    torch.set_num_threads(cores)
    say(f"No GPU. Training on the CPU (cores: {cores}), which takes longer.")
    # 16-bit numbers only where the CPU has instructions for them. Elsewhere they are very slow.
    can = torch.cpu.get_capabilities()
    fast = can.get("avx512_bf16") or can.get("amx_bf16")
    return torch.device("cpu"), torch.bfloat16 if fast else torch.float32


def told_to_stop():
    """Has a signal come, to this process or to another one of this training?"""
    if RANKS == 1:
        return bool(received)
    stop = torch.tensor(len(received))
    dist.all_reduce(stop)  # now it is the sum over all processes
    return stop > 0


def train(trainer, batches, windows, options, save):
    """Learn until the last step, or until a signal comes."""
    clock, last = time.perf_counter(), trainer.step
    while trainer.step < trainer.steps and not told_to_stop():
        trainer.learn(*next(batches))
        step = trainer.step
        if sys.stdout.isatty() and step % 10 == 0:
            say(f"step {step:5d} of {trainer.steps}", end="")
        if step % options.eval_every and step < trainer.steps:
            continue
        # Time for a line. The GPU is still busy with the last steps. Reading the loss waits for it,
        # so the clock comes after that.
        train_loss = trainer.training_loss()
        seconds = time.perf_counter() - clock
        trainer.seconds += seconds
        if RANK == 0:
            val_loss = trainer.validation_loss(windows)
            speed = (step - last) * options.batch_size * options.block_size / seconds
            say(
                f"step {step:5d} | train {train_loss:.4f} | val {val_loss:.4f} | "
                f"{speed / 1000:.1f}k tok/s | {trainer.seconds:.0f}s"
            )
            trainer.history.append([step, train_loss, val_loss, trainer.seconds])
        trainer.loss_sum.zero_()
        trainer.loss_count = 0
        save()
        clock, last = time.perf_counter(), step
    if trainer.step < trainer.steps:
        say(f"Got {(received or ['a signal'])[0]}, saving a checkpoint and stopping")
        trainer.training_loss()  # waits for the GPU
        trainer.seconds += time.perf_counter() - clock
        save()


def draw_losses(history, path):
    """Draw the losses of training and validation over the steps."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    steps = [line[0] for line in history]
    axes.plot(steps, [line[1] for line in history], "o--", markersize=3, label="training")
    axes.plot(steps, [line[2] for line in history], "o-", markersize=3, label="validation")
    axes.set(xlabel="step", ylabel="loss per character (nats)", title="The tiny GPT learns")
    axes.grid(alpha=0.3)
    axes.legend()
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150)
    checkpoint.write_file(path, picture.getbuffer())


def resume(trainer, settings, path):
    """Go on from the checkpoint at path, if there is one for these settings."""
    if not os.path.exists(path):
        return
    state = checkpoint.load(path)
    for name, value in settings.items():
        if state["settings"].get(name) != value:
            sys.exit(
                f"{path} belongs to other settings: {name} was {state['settings'].get(name)}, "
                f"now it is {value}. I left the file as it is. Choose another folder with --out."
            )
    trainer.restore(state["trainer"])
    say(f"Going on at step {trainer.step}, from {path}")


def finish(trainer, characters, folder):
    """Draw the losses. Let the model write, if it has learned everything."""
    draw_losses(trainer.history, f"{folder}/loss.png")
    say(f"The losses as a picture: {folder}/loss.png")
    if trainer.step == trainer.steps:
        say(f"The model writes:\n\n{write(trainer.model, characters)}\n")


def run(options):
    device, dtype = choose_device(options)
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
    trainer = Trainer(model, dtype, options.lr, options.steps)

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
    resume(trainer, settings, f"{folder}/checkpoint.pt")

    def save():
        if RANK == 0:
            state = {"settings": settings, "model_settings": model_settings}
            state |= {"characters": characters, "trainer": trainer.state()}
            checkpoint.save(f"{folder}/checkpoint.pt", state)
            losses = {"settings": settings, "history": trainer.history}
            checkpoint.write_file(f"{folder}/losses.json", json.dumps(losses).encode())

    batches = training_batches(
        learn_from.to(device), options.block_size, options.batch_size, options.seed, trainer.step
    )
    windows = validation_windows(validate_on.to(device), options.block_size)
    train(trainer, batches, windows, options, save)
    if RANK == 0:
        finish(trainer, characters, folder)
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
