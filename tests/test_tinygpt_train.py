"""train.py and sample.py as a student sees them: what they print, leave and refuse."""

import json
import pickle
import resource
import shutil
import signal
import subprocess
import sys

import pexpect
import pytest
import torch

from tinygpt_runs import (
    LAB,
    TINY,
    command,
    environment,
    is_one_sentence,
    lines,
    run,
    saved,
    short_text,
    start,
    train,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training that has come to its end: (its folder, what subprocess.run() returned)."""
    folder = tmp_path_factory.mktemp("trained")
    result = train(folder, "--steps=300", "--eval-every=100")
    assert result.returncode == 0, result.stderr
    return folder, result


def test_it_prints_the_line_of_the_story_and_learns(trained):
    _, result = trained
    steps, train_losses, val_losses = zip(*lines(result.stdout), strict=True)
    assert steps == (100, 200, 300)
    assert train_losses[0] > train_losses[1] > train_losses[2]
    assert val_losses[0] > val_losses[2]
    assert "step   100 | train " in result.stdout  # aligned, as the story shows it
    assert result.stderr == ""


def test_without_a_gpu_one_line_says_so(trained):
    _, result = trained
    expected = "No GPU. Training on the CPU (cores: 1), which takes longer.\n"
    assert result.stdout.startswith(expected)


def test_at_the_end_there_is_a_sample_and_a_picture(trained):
    folder, result = trained
    assert "\nROMEO:" in result.stdout
    assert (folder / "run/loss.png").read_bytes().startswith(b"\x89PNG")


def test_the_losses_are_kept_for_other_programs(trained):
    folder, result = trained
    losses = json.loads((folder / "run/losses.json").read_text())
    assert losses["settings"]["steps"] == 300
    rounded = [(step, round(t, 4), round(v, 4)) for step, t, v, _ in losses["history"]]
    assert rounded == lines(result.stdout)


def test_the_validation_loss_is_that_of_the_whole_last_tenth(trained):
    folder, result = trained
    sys_path = str(command("model.py")[2]).removesuffix("/model.py")
    sys.path.insert(0, sys_path)
    from model import GPT

    sys.path.remove(sys_path)
    state = saved(folder)
    model = GPT(**state["model_settings"])
    model.load_state_dict(state["trainer"]["model"])
    text = short_text(folder).read_text()[27_000:]
    numbers = torch.tensor([state["characters"].index(character) for character in text])
    surprise = []
    with torch.no_grad():
        for place in range(0, len(numbers) - 16, 16):
            scores = model(numbers[None, place : place + 16])[0]
            right = numbers[place + 1 : place + 17]
            surprise += (-scores.log_softmax(1)[range(16), right]).tolist()
    assert sum(surprise) / len(surprise) == pytest.approx(lines(result.stdout)[-1][2], abs=1e-4)


def test_a_finished_training_is_not_done_again(trained):
    folder, first = trained
    again = train(folder, "--steps=300", "--eval-every=100")
    assert again.returncode == 0
    assert lines(again.stdout) == []
    assert first.stdout.partition("\nROMEO:")[2] in again.stdout


def test_a_terminal_shows_the_progress(tmp_path):
    options = [*TINY, f"--data={short_text(tmp_path)}", f"--out={tmp_path / 'run'}", "--steps=40"]
    child = pexpect.spawn(
        sys.executable, command("train.py", *options)[1:], env=environment(), timeout=120
    )
    child.expect("step    10 of 40")
    child.expect(r"step    40 \| train")
    child.expect(pexpect.EOF)


def test_results_go_to_the_workspace_in_a_folder_named_by_the_settings(tmp_path):
    options = [*TINY, f"--data={short_text(tmp_path)}", "--steps=2", "--lr=0.03"]
    result = run("train.py", *options, env={**environment(), "WS_DIR": str(tmp_path)})
    assert result.returncode == 0, result.stderr
    (folder,) = (tmp_path / "tinygpt").iterdir()
    assert folder.name == "short-1layers-2heads-16wide-16context-4batch-2steps-lr0.03-seed1"
    assert {"checkpoint.pt", "loss.png", "losses.json"} <= {f.name for f in folder.iterdir()}


def test_six_heads_cannot_share_128_numbers(tmp_path):
    data = short_text(tmp_path)
    result = run("train.py", f"--data={data}", f"--out={tmp_path / 'run'}", "--n-head=6")
    assert result.returncode == 1
    assert "    assert n_embd % n_head == 0\n" in result.stderr
    assert result.stderr.endswith("\nAssertionError\n")


def test_six_heads_can_share_384_numbers(tmp_path):
    options = ["--n-head=6", "--n-embd=384", "--n-layer=1", "--steps=1"]
    result = train(tmp_path, *options)
    assert result.returncode == 0, result.stderr


REFUSED = {
    "slurm's option behind the script's name": (
        ["--time=00:02:00"],
        1,
        "sbatch --time=00:02:00 train.sbatch",
    ),
    "slurm's option in two words": (["--gres", "gpu:1"], 1, "--gres is an option of sbatch"),
    "an unknown option": (["--n-heads=6"], 2, "unknown: --n-heads=6"),
    "a number that is none": (["--steps=many"], 2, "'many' is not a whole number from 1 up"),
    "no steps": (["--steps=0"], 2, "'0' is not a whole number from 1 up"),
    "a learning rate of zero": (["--lr=0"], 2, "'0' is not a number above 0"),
    "a width of 5 for a head": (["--n-embd=10"], 2, "has to be an even number"),
    "missing data": (["--data=/nowhere.txt"], 1, "Cannot read /nowhere.txt: No such file"),
    "data that is no text": ([f"--data={sys.executable}"], 1, "is not a text in UTF-8"),
    "an empty text": (["--data=/dev/null"], 1, "The text is too short"),
    "blocks longer than the text": (["--block-size=40000"], 1, "The text is too short"),
    "batches larger than the text": (["--batch-size=40000"], 1, "Lower --batch-size"),
    "a folder that cannot be made": (["--out=/dev/null/run"], 1, "Cannot write to /dev/null/run"),
    "a learning rate that is far too high": (["--lr=1e30"], 1, "Lower the learning rate"),
}


@pytest.mark.parametrize(("options", "code", "sentence"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_in_a_sentence(tmp_path, options, code, sentence):
    result = train(tmp_path, "--steps=20", "--eval-every=10", *options)
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == code


def test_too_little_memory_names_the_option_to_lower(tmp_path):
    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))

    options = [f"--data={short_text(tmp_path)}", f"--out={tmp_path / 'run'}", "--batch-size=1600"]
    more = ["--block-size=16", "--n-embd=2048", "--n-layer=1", "--steps=2"]
    result = run("train.py", *options, *more, preexec_fn=little_memory)
    assert "Lower --batch-size (now 1600)" in result.stderr
    assert is_one_sentence(result.stderr)
    assert result.returncode == 1


def test_when_nothing_more_can_be_written_the_last_checkpoint_stays(tmp_path):
    # A limit on the size of files makes writing fail in the middle, as a full disk does.
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    options = [*TINY, f"--data={short_text(tmp_path)}", f"--out={tmp_path / 'run'}"]
    options += ["--steps=1000000", "--eval-every=10"]
    first = start("train.py", *options)
    while not first.stdout.readline().startswith("step "):
        assert first.poll() is None
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    checkpoint = tmp_path / "run/checkpoint.pt"
    good = checkpoint.read_bytes()
    assert len(good) > 20_000
    result = run("train.py", *options, preexec_fn=small_files)
    assert f"Could not save {checkpoint}: File too large" in result.stderr
    assert is_one_sentence(result.stderr)
    assert result.returncode == 1
    assert checkpoint.read_bytes() == good
    assert not list((tmp_path / "run").glob("*.part"))


def test_other_settings_in_the_same_folder_are_refused(trained):
    folder, _ = trained
    before = (folder / "run/checkpoint.pt").read_bytes()
    result = train(folder, "--steps=300", "--n-head=4")
    assert "belongs to other settings: n_head was 2, now it is 4" in result.stderr
    assert is_one_sentence(result.stderr)
    assert result.returncode == 1
    assert (folder / "run/checkpoint.pt").read_bytes() == before


def test_another_text_of_the_same_name_is_refused(tmp_path):
    assert train(tmp_path, "--steps=2").returncode == 0
    data = tmp_path / "short.txt"
    data.write_text(data.read_text().replace("First", "Third", 1))
    result = train(tmp_path, "--steps=2")
    assert "belongs to other settings: text" in result.stderr
    assert result.returncode == 1


def test_two_jobs_with_the_same_settings_do_not_disturb_each_other(tmp_path):
    options = [*TINY, f"--data={short_text(tmp_path)}", f"--out={tmp_path / 'run'}"]
    first = start("train.py", *options, "--steps=1000000", "--eval-every=10")
    try:
        assert first.stdout.readline().startswith("No GPU")
        assert first.stdout.readline().startswith("step ")
        second = run("train.py", *options, "--steps=1000000", "--eval-every=10")
        assert "Another job is training in" in second.stderr
        assert is_one_sentence(second.stderr)
        assert second.returncode == 1
    finally:
        first.send_signal(signal.SIGTERM)
        out, err = first.communicate(timeout=60)
    assert (first.returncode, err) == (0, "")
    assert "Got SIGTERM, saving a checkpoint and stopping\n" in out


class Evil:
    def __reduce__(self):
        return (print, ("a checkpoint ran a program",))


def old_format(content):
    state = torch.load(content, weights_only=True)
    torch.save({**state, "format": 0}, content)


def foreign(content):
    torch.save({"model": torch.zeros(3)}, content)


def bare_tensor(content):
    torch.save(torch.zeros(3), content)


def evil(content):
    content.write_bytes(pickle.dumps(Evil()))


def cut(content):
    content.write_bytes(content.read_bytes()[: content.stat().st_size // 2])


def nearly_whole(content):
    content.write_bytes(content.read_bytes()[:-1])


def empty(content):
    content.write_bytes(b"")


def some_text(content):
    content.write_text("To be, or not to be")


@pytest.mark.parametrize(
    "spoil", [cut, nearly_whole, empty, some_text, foreign, bare_tensor, evil, old_format]
)
def test_a_checkpoint_that_is_none_is_refused_and_kept(trained, tmp_path, spoil):
    folder, _ = trained
    (tmp_path / "run").mkdir()
    checkpoint = tmp_path / "run/checkpoint.pt"
    checkpoint.write_bytes((folder / "run/checkpoint.pt").read_bytes())
    spoil(checkpoint)
    before = checkpoint.read_bytes()
    result = train(tmp_path, "--steps=300")
    assert "I left the file as it is" in result.stderr
    assert is_one_sentence(result.stderr)
    assert "ran a program" not in result.stdout
    assert result.returncode == 1
    assert checkpoint.read_bytes() == before


def test_sampling_refuses_it_too(tmp_path):
    some_text(tmp_path / "checkpoint.pt")
    result = run("sample.py", f"--checkpoint={tmp_path / 'checkpoint.pt'}")
    assert "it is no checkpoint. I left the file as it is" in result.stderr
    assert is_one_sentence(result.stderr)
    assert result.returncode == 1


def test_the_same_seed_writes_the_same_and_another_one_something_else(trained):
    folder, _ = trained
    checkpoint = f"--checkpoint={folder / 'run/checkpoint.pt'}"

    def sample(*options):
        result = run("sample.py", checkpoint, "--length=80", *options)
        assert result.returncode == 0, result.stderr
        return result.stdout

    first = sample()
    assert first.startswith("ROMEO:") and len(first) == len("ROMEO:") + 80 + len("\n")
    assert sample() == first
    assert sample("--seed=2") != first
    assert sample("--prompt=JULIET:").startswith("JULIET:")
    # One choice only: the seed makes no difference any more.
    assert sample("--top-k=1") == sample("--top-k=1", "--seed=2")
    # Close to zero, the likeliest character wins as well.
    assert sample("--temperature=0.0001") == sample("--top-k=1")


def test_a_prompt_with_unknown_characters_is_refused(trained):
    folder, _ = trained
    result = run("sample.py", f"--checkpoint={folder / 'run/checkpoint.pt'}", "--prompt=Ä")
    assert "The model knows only these: " in result.stderr
    assert is_one_sentence(result.stderr)
    assert result.returncode == 1


def test_sampling_takes_the_newest_model(trained, tmp_path):
    folder, _ = trained
    workspace = {**environment(), "WS_DIR": str(tmp_path)}
    (tmp_path / "tinygpt").mkdir()
    (tmp_path / "tinygpt/newest").symlink_to(folder / "run")
    result = run("sample.py", "--length=10", env=workspace)
    assert result.stdout.startswith("ROMEO:")
    assert "newest/checkpoint.pt, step 300" in result.stderr


def test_without_a_trained_model_sampling_says_so(tmp_path):
    for program in LAB.glob("*.py"):
        shutil.copy(program, tmp_path)
    result = subprocess.run(
        [sys.executable, tmp_path / "sample.py"], env=environment(), capture_output=True, text=True
    )
    assert "No trained model found. Train one first: sbatch train.sbatch." in result.stderr
    assert is_one_sentence(result.stderr)
    assert result.returncode == 1
