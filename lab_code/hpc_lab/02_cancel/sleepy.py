"""A slow program that saves its work when it is told to stop.

    mkdir -p logs && sbatch sleepy.sbatch                       as a job
    python3 sleepy.py                                           by hand; Ctrl+C stops it
    python3 sleepy.py --resume checkpoint-1234570.json          go on where a job has stopped
    sbatch sleepy.sbatch --resume checkpoint-1234570.json       the same, as a job

It works through a number of steps. A step is just a nap here; think of a minute of training.

scancel sends the signal SIGTERM to the program, and SIGKILL half a minute later. Nobody can
react to SIGKILL. So the time in between is for saving.
"""

import argparse
import json
import math
import os
import signal
import sys
import time

received = []  # the numbers of the signals that have come so far


def remember(number, frame):
    """Note that a signal has come. Python calls this at any moment, whatever it is doing."""
    # Do no more than this here. The signal may come in the middle of a step, or even while a
    # checkpoint is being written. The main loop looks at the list when it is safe to stop.
    received.append(number)


def say(text):
    print(f"[sleepy] {text}", flush=True)  # flush: show it now, in a log file too


def work(seconds):
    """Do the work of one step, but return early when a signal has come."""
    end = time.monotonic() + seconds
    while not received and time.monotonic() < end:
        time.sleep(min(0.1, seconds))  # short naps: a signal does not end a time.sleep()


def save_checkpoint(name, step, steps):
    """Write the checkpoint file so that it is never half written, whatever happens."""
    # Write a second file first, and give it the right name when all of it is on the disk.
    # Renaming is one single step: there is either the old checkpoint or the new one.
    unfinished = f"{name}.part"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump({"step": step, "steps": steps}, file)
            file.flush()  # from Python to the operating system ...
            os.fsync(file.fileno())  # ... and from there to the disk
        os.replace(unfinished, name)
    except OSError as error:
        sys.exit(
            f"[sleepy] could not save {name}: {error.strerror}. "
            "Make room or choose a folder in which you may write, then start again."
        )


def load_checkpoint(name):
    """Return (step, steps): the step to go on with, and how many there are in all."""
    try:
        with open(name, encoding="utf-8") as file:
            checkpoint = json.load(file)
    except OSError as error:
        sys.exit(
            f"[sleepy] cannot open {name}: {error.strerror}. ls checkpoint-* shows what is there."
        )
    except (ValueError, RecursionError):  # not JSON, or not even text
        checkpoint = None
    if isinstance(checkpoint, dict):
        step, steps = checkpoint.get("step"), checkpoint.get("steps")
        if type(step) is int and type(steps) is int and 1 <= step <= steps:
            return step, steps
    sys.exit(
        f"[sleepy] {name} is not a checkpoint of this program. I left the file as it is. "
        "Choose another one, or start without --resume."
    )


def whole_number(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 up")
    return int(text)


def duration(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to 3600")
    return seconds


def read_options():
    parser = argparse.ArgumentParser(description="A slow program that saves when told to stop.")
    # A checkpoint knows how many steps there are, so you give one or the other.
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--steps", type=whole_number, default=60, help="how many (default: 60)")
    start.add_argument("--resume", metavar="CHECKPOINT", help="go on from this file")
    parser.add_argument("--seconds", type=duration, default=5.0, help="for each step (default: 5)")
    return parser.parse_args()


def main():
    options = read_options()
    step, steps = load_checkpoint(options.resume) if options.resume else (1, options.steps)
    job = os.environ.get("SLURM_JOB_ID", "local")  # local: started by hand, without Slurm
    checkpoint = f"checkpoint-{job}.json"

    # From this line on, SIGTERM (scancel) and SIGINT (Ctrl+C) do not end the program.
    signal.signal(signal.SIGTERM, remember)
    signal.signal(signal.SIGINT, remember)
    say(f"step {step} to {steps}, {options.seconds:g} s each. When stopped, I save {checkpoint}")

    while step <= steps:
        work(options.seconds)
        if received:
            number = received[0]
            say(f"received signal {number} ({signal.Signals(number).name}) -> cleaning up")
            save_checkpoint(checkpoint, step, steps)
            say(f"saved {checkpoint} at step {step} (cancelled)")
            return
        say(f"step {step:4d}  {time.strftime('%H:%M:%S')}  still working...")
        step += 1
    say(f"finished all {steps} steps")


if __name__ == "__main__":
    main()
