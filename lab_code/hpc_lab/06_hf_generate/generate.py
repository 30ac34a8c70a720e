"""Ask a real language model the questions in prompts.txt.

    python generate.py --download-only           once, on the login node: fetch the model
    mkdir -p logs && sbatch generate.sbatch      answer the questions, in a job with a GPU
    sbatch generate.sbatch --seed 1              the same answers every time
    sbatch generate.sbatch --temperature 0       always the likeliest token, no chance at all

A model is a folder of files: the weights (numbers, most of the bytes), the vocabulary, and a
configuration that says how to put them together. They come from the hub, a website with models,
and stay in your workspace, in the folder HF_HOME. A job never downloads: it has no time to wait.
"""

import argparse
import errno
import os
import random
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

# Settings of the next import. Download in the plain way: Xet, the hub's own one, would use many
# CPUs, and a login node is shared. And tell the hub nothing about this computer.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

try:
    from httpx2 import HTTPError  # huggingface_hub downloads with it
    from huggingface_hub import constants, get_cached_repo_tree, hf_hub_download, snapshot_download
    from huggingface_hub.errors import (
        CachedRepoTreeNotFoundError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import disable_progress_bars
except ImportError:
    sys.exit(
        "This Python has no huggingface_hub. Switch the lab's environment on and try again: "
        "source ../00_setup/setup_env.sh"
    )

LAB = Path(__file__).resolve().parent

# Of all the files that the hub has for a model: the weights, the vocabulary, the configuration.
# Weights come as safetensors, which hold numbers and nothing else. Other formats can hold
# programs, and these would run here when the file is opened.
FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt"]


def stop(problem, advice):
    """End the program with two lines on stderr: what happened, and what to do next."""
    sys.exit(f"{problem}\n{advice}")


def course_value(key):
    """Return a value from 00_setup/course.env, such as the course's model."""
    file = LAB.parent / "00_setup" / "course.env"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        stop(f"{file} cannot be read: {error.strerror}.", "Copy the folder 00_setup again.")
    for line in lines:
        if line.startswith(f"{key}="):
            return line.removeprefix(f"{key}=").strip("'")
    stop(f"{file} has no line {key}=.", "Copy the file again.")


def course_model():
    """Return the model of the course, and its revision: the commit that everybody gets."""
    return course_value("MODEL"), course_value("MODEL_REVISION")


# --- The model's files ---


def listed_files(model, revision):
    """Return those of the model's files that we need, each with its path and size.

    The hub's list of all files was kept when the download began.
    """
    listed = get_cached_repo_tree(model, revision=revision)
    needed = [file for file in listed if any(fnmatch(file.path, pattern) for pattern in FILES)]
    if not any(file.path.endswith(".safetensors") for file in needed):
        stop(f"The hub has no safetensors for {model}.", "Choose another model.")
    return needed


def what_is_wrong(path, size):
    """Say what is wrong with a file that should have this size in bytes. None: nothing."""
    try:
        with open(path, "rb") as content:
            found = content.seek(0, os.SEEK_END)
    except OSError as error:
        return error.strerror
    return None if found == size else f"it has {found:,} of {size:,} bytes"


def find_model(model, revision):
    """Return the folder of a model that was downloaded. Nothing is asked of the network."""
    advice = "On the login node, type: python generate.py --download-only"
    if (model, revision) != course_model():
        advice += f" --model {model} --revision {revision}"
    try:
        folder = snapshot_download(
            model, revision=revision, allow_patterns="config.json", local_files_only=True
        )
        for file in listed_files(model, revision):
            problem = what_is_wrong(Path(folder, file.path), file.size)
            if problem:
                stop(f"The files of {model} are not complete: {file.path}: {problem}.", advice)
    except (OSError, HFValidationError, CachedRepoTreeNotFoundError):
        stop(f"The files of {model} cannot be found in {constants.HF_HUB_CACHE}.", advice)
    return Path(folder)


def fetch_files(model, revision):
    """Download those of the model's files that are missing or not complete."""
    # From now on, the list of files is kept beside them. The first file comes with it.
    with disable_progress_bars():
        folder = Path(snapshot_download(model, revision=revision, allow_patterns="config.json"))
    for file in listed_files(model, revision):
        path = folder / file.path
        if what_is_wrong(path, file.size):
            path.resolve().unlink(missing_ok=True)
            # Until all of it has arrived, the file has another name.
            hf_hub_download(model, file.path, revision=folder.name)


def download(model, revision):
    """Download the model and return its folder, or say why that is not possible."""
    again = "Then type the same again: what has arrived is kept."
    if constants.HF_HUB_OFFLINE:
        stop("HF_HUB_OFFLINE forbids to download.", "Type: unset HF_HUB_OFFLINE")
    try:
        fetch_files(model, revision)
    except KeyboardInterrupt:
        stop("\nStopped.", "Type the same again: what has arrived is kept.")
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError):
        stop(
            f"The hub has no model {model} with the revision {revision}, or not for everybody.",
            "Look for a typo in --model and --revision.",
        )
    except PermissionError as error:
        stop(
            f"{error.filename} belongs to the model's files, and you may not use it.",
            f"Type: chmod -R u+rwX '{constants.HF_HOME}'\n{again}",
        )
    except (OSError, HTTPError, CachedRepoTreeNotFoundError) as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            stop(
                f"There is no space left for {constants.HF_HOME}.",
                f"Make room. To see what is big: du -h --max-depth=2 $WS_DIR | sort -h\n{again}",
            )
        reason = str(error).partition("\n")[0]
        stop(f"The download has stopped: {reason}", f"Is there a network? {again}")
    return find_model(model, revision)


# --- The answers ---


def choose_device():
    """Return where to compute, and in which numbers: ("cuda" or "cpu", a dtype of torch)."""
    import torch

    if torch.cuda.is_available():
        device, has_bfloat16 = "cuda", torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        device, features = "cpu", torch.cpu.get_capabilities()
        has_bfloat16 = any(features.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
        # The CPUs of the job, not those of the whole machine.
        cpus = len(os.sched_getaffinity(0))
        from_slurm = os.environ.get("SLURM_CPUS_PER_TASK", "")
        if from_slurm.isdecimal() and int(from_slurm) > 0:
            cpus = min(cpus, int(from_slurm))
        torch.set_num_threads(cpus)
    # bfloat16 has 16 bits instead of 32: half the memory, and where the chip can compute with
    # it, about twice the speed. A model of this kind was trained in it and loses nothing.
    return device, torch.bfloat16 if has_bfloat16 else torch.float32


def load_model(folder):
    """Return the model and its tokenizer, ready to compute."""
    # Here and not at the top, because it takes seconds: if the files are not complete, you learn
    # it at once.
    import transformers

    transformers.utils.logging.disable_progress_bar()  # a log is no place for it
    device, dtype = choose_device()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
    except Exception as error:  # whatever is wrong with a file ends here
        reason = str(error).strip().partition("\n")[0]
        stop(
            f"The model's files are complete, but cannot be loaded: {reason}",
            f"Download them anew: rm -rf '{folder.parents[1]}'; python generate.py --download-only",
        )
    if tokenizer.chat_template is None:
        stop("This model only continues text, it cannot chat.", "Choose an Instruct model.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.to(device), tokenizer


def answer(model, tokenizer, prompts, max_new_tokens, temperature, seed):
    """Answer all prompts at once. Return the new tokens, a row for each prompt."""
    import torch

    # The template puts the marks around a prompt that say who speaks, as in the model's training.
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    # All rows of a batch are equally long. The shorter prompts are filled up on the left, so that
    # every prompt ends where its answer begins.
    tokenizer.padding_side = "left"
    inputs = tokenizer.apply_chat_template(
        chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    ).to(model.device)
    length = inputs["input_ids"].shape[1]  # input_ids: (prompts, tokens of the longest one)
    longest = model.config.max_position_embeddings
    if length + max_new_tokens > longest:
        stop(
            f"The longest prompt has {length} tokens, and the model has room for {longest}, with "
            f"the {max_new_tokens} of the answer.",
            "Shorten the prompt, or choose a smaller --max-new-tokens.",
        )
    if temperature >= 0.01:
        sampling = {"do_sample": True, "temperature": temperature}
    else:  # so little chance is none, and dividing by it would give numbers that are too large
        sampling = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    torch.manual_seed(seed)
    try:
        output = model.generate(**inputs, max_new_tokens=max_new_tokens, **sampling)
    except torch.OutOfMemoryError:
        stop("The GPU has not enough memory.", "Choose fewer prompts, or shorter answers.")
    return output[:, length:]  # (prompts, tokens of the longest answer)


def print_answers(prompts, new_tokens, tokenizer):
    """Print every prompt and its answer. Return how many tokens the answers have."""
    count = 0
    for prompt, tokens in zip(prompts, new_tokens.tolist(), strict=True):
        # An answer ends with a special token, and behind it the row is filled up.
        count += sum(token != tokenizer.pad_token_id for token in tokens)
        print(f"\n>>> {prompt}")
        print(tokenizer.decode(tokens, skip_special_tokens=True).strip())
        if tokens[-1] not in tokenizer.all_special_ids:
            print(f"(cut off here, after {len(tokens)} tokens: see --max-new-tokens)")
    return count


# --- The command line ---


def read_prompts(file):
    """Return the prompts in a file, one in each line. Empty lines do not count."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        stop(f"{file} cannot be read: {error.strerror}.", "Give another file: --prompts FILE")
    except UnicodeDecodeError:
        stop(f"{file} is not text in UTF-8.", "Save it again as UTF-8.")
    prompts = [line.strip() for line in lines if line.strip()]
    if not prompts:
        stop(f"There is no prompt in {file}.", "Write one in each line.")
    return prompts


def number(convert, smallest, largest):
    """Return a function that reads a number for argparse, and says in which range it must be."""

    def read(text):
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not smallest <= value <= largest:
            kind = "a whole number" if convert is int else "a number"
            raise argparse.ArgumentTypeError(f"'{text}' is not {kind} from {smallest} to {largest}")
        return value

    return read


def read_options():
    parser = argparse.ArgumentParser(description="Ask a language model the questions in a file.")
    add = parser.add_argument
    add("--download-only", action="store_true", help="fetch the model's files, and stop")
    add("--model", help="its name on the hub (default: MODEL in 00_setup/course.env)")
    add("--revision", help="a commit or branch of the model (default: MODEL_REVISION there)")
    questions = LAB / "prompts.txt"
    add("--prompts", default=questions, metavar="FILE", help="the questions (default: prompts.txt)")
    add("--seed", type=number(int, 0, 2**32 - 1), help="the same number, the same answers")
    add(
        "--temperature",
        type=number(float, 0, 5),
        default=0.7,
        help="how much chance: 0 is none, 1 as the model has learned it (default: 0.7)",
    )
    add(
        "--max-new-tokens",
        type=number(int, 1, 4096),
        default=200,
        help="the longest answer; a word has one token or a few (default: 200)",
    )
    options = parser.parse_args()
    if options.model is None:
        model, revision = course_model()
        options.model, options.revision = model, options.revision or revision
    options.revision = options.revision or "main"
    if options.seed is None:
        options.seed = random.randrange(2**32)
    return options


def main():
    options = read_options()
    if "HF_HOME" not in os.environ:
        stop(
            "HF_HOME is not set: the model would fill your home folder.",
            "Switch the lab's environment on and try again: source ../00_setup/setup_env.sh",
        )
    if options.download_only:
        print(f"HF_HOME = {constants.HF_HOME}", flush=True)
        folder = download(options.model, options.revision)
        print(f"downloaded {options.model} to {folder}. Now submit the GPU job.")
        return

    prompts = read_prompts(options.prompts)
    folder = find_model(options.model, options.revision)
    model, tokenizer = load_model(folder)
    print(f"model       : {options.model}")
    print(f"revision    : {folder.name}")
    print(f"computes on : {model.device.type}, {model.dtype}")
    print(f"chance      : --temperature {options.temperature:g} --seed {options.seed}")
    start = time.perf_counter()
    new_tokens = answer(
        model, tokenizer, prompts, options.max_new_tokens, options.temperature, options.seed
    )
    seconds = time.perf_counter() - start
    count = print_answers(prompts, new_tokens, tokenizer)
    print(f"\n{count} tokens in {seconds:.1f} s: {count / seconds:.1f} tokens/s")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
