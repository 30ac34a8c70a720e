"""Turn a text into numbers, and cut it into the pieces that the model learns from."""

import sys

import torch


def encode(text, characters):
    """Return text as a tensor of numbers: the position of each character in characters."""
    number = {character: i for i, character in enumerate(characters)}
    return torch.tensor([number[character] for character in text])


def decode(numbers, characters):
    """Return the text of a sequence of numbers: the reverse of encode()."""
    return "".join(characters[number] for number in numbers)


def read_text(path):
    """Return (characters, training part, validation part) of a text file.

    characters is a text with every different character once. The last tenth of the file is never
    trained on. It shows whether the model has learned something, or only knows the rest by heart.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        sys.exit(
            f"Cannot read {path}: {error.strerror}. "
            "shakespeare.txt belongs beside train.py; --data=FILE takes any other text."
        )
    except UnicodeDecodeError:
        sys.exit(f"{path} is not a text in UTF-8. --data=FILE takes any text file.")
    characters = "".join(sorted(set(text)))
    numbers = encode(text, characters)
    n = len(numbers) * 9 // 10
    return characters, numbers[:n], numbers[n:]


def training_batches(numbers, block_size, batch_size, seed, step):
    """Yield (characters, targets) for ever, beginning with those of this step, (B, T) each.

    The text is cut into blocks, and all of them are read once, in random order, before any is
    read again. The next time, the cuts are elsewhere. Targets are the characters one further: what
    the model should have said at each place.

    Seed and step decide everything, so a training that goes on later reads what it would have read.
    """
    blocks = (len(numbers) - block_size) // block_size
    rounds = blocks // batch_size  # steps until all blocks are read; a few remain
    if rounds < 1:
        sys.exit(
            f"The text is too short: its training part has {len(numbers):,} characters, and "
            f"a batch needs {(batch_size + 1) * block_size:,}. "
            "Lower --batch-size or --block-size, or take a longer text."
        )
    window = torch.arange(block_size + 1, device=numbers.device)
    while True:
        epoch, start = divmod(step, rounds)
        random = torch.Generator().manual_seed(1_000_000 * seed + epoch)
        cut = torch.randint(block_size, (1,), generator=random)
        order = cut + block_size * torch.randperm(blocks, generator=random)
        order = order.to(numbers.device)  # once per epoch, so that a GPU need not wait
        for batch in order[: rounds * batch_size].view(rounds, batch_size, 1)[start:]:
            pieces = numbers[batch + window]  # (B, T + 1)
            yield pieces[:, :-1], pieces[:, 1:]
            step += 1


def validation_windows(numbers, block_size):
    """Return (characters, targets) of the whole validation part, (windows, T) each."""
    windows = (len(numbers) - 1) // block_size
    if windows == 0:
        sys.exit(
            f"The text is too short: its last tenth has {len(numbers):,} characters, and one "
            f"piece has {block_size}. Lower --block-size, or take a longer text."
        )
    n = windows * block_size
    return numbers[:n].view(windows, block_size), numbers[1 : n + 1].view(windows, block_size)
