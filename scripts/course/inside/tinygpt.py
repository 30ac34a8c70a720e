"""The tiny GPT of lab 04 as files for the pages: tinygpt.json and tinygpt.bin.

    scripts/record-model --tinygpt CHECKPOINT

The first says what is in the second: the numbers of all matrices, one after the other. As "int8"
each row of a matrix is stored as whole numbers from -127 to 127 and a factor: a quarter of the
size, and an error of at most half a step in each number. All factors come first, as 32-bit
numbers; "float32" has no factors and loses nothing.
"""

import json
import pickle
from datetime import date
from pathlib import Path

from course.inside import DATA, ROOT, RecordingError

LAB = ROOT / "lab_code/hpc_lab/04_tinygpt"
UNREADABLE = (
    OSError,
    RuntimeError,
    KeyError,
    TypeError,
    EOFError,
    ValueError,
    pickle.UnpicklingError,
)


def matrix_names(layers: int) -> list[str]:
    """The matrices in the order in which they are stored."""
    parts = ["attention.query", "attention.key", "attention.value", "attention.output"]
    parts += ["widen", "narrow"]
    blocks = [f"blocks.{layer}.{part}" for layer in range(layers) for part in parts]
    return ["here", "before", *blocks, "scores"]


def export(checkpoint: Path, folder: Path, numbers: str = "int8") -> dict:
    """Write the two files of a checkpoint into a folder; return what the first one says.

    Raises RecordingError when the checkpoint is not one.
    """
    import torch  # slow to import, and only needed here

    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        settings, characters = state["settings"], state["characters"]
        weights = state["trainer"]["model"]
        step, _, history = state["trainer"]["progress"]
    except UNREADABLE as error:
        raise RecordingError(
            f"{checkpoint} is no checkpoint of lab 04 ({type(error).__name__}). Train one with "
            "lab_code/hpc_lab/04_tinygpt/train.py; it tells where its checkpoint is."
        ) from None
    names = matrix_names(settings["n_layer"])
    matrices = [weights[f"{name}.weight"].float() for name in names]
    if numbers == "int8":
        factors = [matrix.abs().amax(dim=1) / 127 for matrix in matrices]
        rounded = [
            (matrix / factor.clamp(min=1e-30)[:, None]).round().to(torch.int8)
            for matrix, factor in zip(matrices, factors, strict=True)
        ]
        content = torch.cat(factors).numpy().tobytes()
        content += b"".join(matrix.numpy().tobytes() for matrix in rounded)
    else:
        content = torch.cat([matrix.flatten() for matrix in matrices]).numpy().tobytes()
    head = {
        "numbers": numbers,
        "characters": characters,
        **{name: settings[name] for name in ("n_layer", "n_head", "n_embd", "block_size")},
        "matrices": [[name, *m.shape] for name, m in zip(names, matrices, strict=True)],
        "training": {
            **{name: settings[name] for name in ("batch_size", "steps", "lr", "seed")},
            "step": step,
            "validation_loss": round(history[-1][2], 4),
            "exported": date.today().isoformat(),
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tinygpt.bin").write_bytes(content)
    text = json.dumps(head, ensure_ascii=False, indent=1) + "\n"
    (folder / "tinygpt.json").write_text(text, encoding="utf-8")
    return head


def load_characters() -> str:
    """All characters that the exported tiny GPT knows; their place is their number."""
    return json.loads((DATA / "tinygpt.json").read_text(encoding="utf-8"))["characters"]
