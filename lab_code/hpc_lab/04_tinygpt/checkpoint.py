"""Save and load the state of a training, so that nothing is lost, whatever happens.

A job can end at any moment: the time is up, somebody types scancel, a machine breaks. So a file is
never changed in place. The new one is written beside it and takes its name when all of it is on
the disk. Until then the old one stays.
"""

import contextlib
import fcntl
import io
import os
import pickle
import sys
import warnings

import torch

FORMAT = 1  # counts up when the content of a checkpoint changes, so that older ones are recognized


def write_file(path, data):
    """Write data (bytes) to path, all of it or nothing. Ends the program when the disk is full."""
    unfinished = f"{path}.part"
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()  # from Python to the operating system ...
            os.fsync(file.fileno())  # ... and from there to the disk
        os.replace(unfinished, path)  # one single step: there is the old file, or the new one
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(unfinished)  # a full disk needs every byte
        sys.exit(
            f"Could not save {path}: {error.strerror}. What was saved before is still there. "
            "Make room or choose another folder with --out, then start again."
        )


def save(path, state):
    """Save state, a dictionary of tensors, numbers, texts, lists and dictionaries of these."""
    memory = io.BytesIO()
    torch.save({"format": FORMAT, **state}, memory)
    write_file(path, memory.getbuffer())


def load(path):
    """Return the state that save() has written. Ends the program when the file is not one."""
    try:
        with open(path, "rb") as file:
            data = io.BytesIO(file.read())
    except OSError as error:
        sys.exit(f"Cannot open {path}: {error.strerror}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the sentence below says enough
            # weights_only: read data and nothing else. A file made by somebody else could
            # otherwise run any program on your account.
            state = torch.load(data, map_location="cpu", weights_only=True)
    except (RuntimeError, OSError, EOFError, ValueError, KeyError, pickle.UnpicklingError):
        sys.exit(
            f"{path} is damaged, or it is no checkpoint. I left the file as it is. "
            "Move it away to start from the beginning."
        )
    if not isinstance(state, dict) or "format" not in state:
        sys.exit(
            f"{path} is not a checkpoint of this program. I left the file as it is. "
            "Move it away to start from the beginning."
        )
    if state["format"] != FORMAT:
        sys.exit(
            f"{path} was written by another version of this program. I left the file as it is. "
            "Move it away to start from the beginning."
        )
    return state


def reserve(folder):
    """Make folder, and keep every other job out of it for as long as this program runs."""
    try:
        os.makedirs(folder, exist_ok=True)
        lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        sys.exit(f"Cannot write to {folder}: {error.strerror}. Choose another folder with --out.")
    try:
        # The lock ends when the program ends, even when it is killed.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(
            f"Another job is training in {folder} right now, with the same settings. "
            "Wait until it is done (squeue --me), or choose other settings, for example --seed."
        )
    except OSError:
        pass  # A filesystem without locks. Then it is up to you not to submit a job twice.
