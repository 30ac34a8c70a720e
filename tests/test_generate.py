"""Lab 06: the model is downloaded from the local hub, and really answers. Nothing is mocked."""

import errno
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
import torch

from course.hub import HUB, Handler, HubServer, load_listing, make_model
from course.scenes import LAB
from course.values import change_values

COMMAND = "python generate.py --download-only"
WEIGHTS = "model.safetensors"
PROMPTS = (LAB / "06_hf_generate/prompts.txt").read_text(encoding="utf-8").splitlines()

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root to mount")


class WatchedHandler(Handler):
    """Remembers what is asked, and can break off in the middle of the weights."""

    server: "WatchedHub"

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.requests.append(
            f"{self.command} {self.path.rpartition('/')[2]} {wanted}".strip()
        )
        super().do_GET()

    do_HEAD = do_GET

    def _send_content(self, name: str, first: int) -> None:
        if name != WEIGHTS or not self.server.breaks:
            super()._send_content(name, first)
            return
        self.server.breaks -= 1
        with (self.server.folder / name).open("rb") as content:
            content.seek(first)
            if not first:
                self.wfile.write(content.read(30_000_000))
        self.server.broke_off.set()
        self.server.go_on.wait(60)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class WatchedHub(HubServer):
    def __init__(self) -> None:
        super().__init__(HUB, 0, WatchedHandler)
        self.requests: list[str] = []
        self.breaks = 0  # how often the weights still break off
        self.broke_off = threading.Event()
        self.go_on = threading.Event()  # closes the connection that has broken off
        self.go_on.set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture(scope="module")
def model_is_made() -> None:
    make_model()


@pytest.fixture
def hub(model_is_made: None) -> Iterator[WatchedHub]:
    with WatchedHub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def lab(model_is_made: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab as on the practice cluster: its course values name the hub's model.

    The environment is the one in which these tests run.
    """
    folder = tmp_path_factory.mktemp("hpc_lab")
    for name in ("00_setup", "06_hf_generate"):
        shutil.copytree(LAB / name, folder / name, ignore=shutil.ignore_patterns("logs"))
    listing = load_listing()
    change_values(folder, {"MODEL": listing["model"], "MODEL_REVISION": listing["revision"]})
    path = f'PATH="{Path(sys.executable).parent}:$PATH"\n'
    (folder / "00_setup/activate.sh").write_text(path, encoding="utf-8")
    return folder / "06_hf_generate"


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a shell in which the lab's environment is on, with this HF_HOME."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # The machine is shared: threads that wait do not keep a CPU busy.
    settings = {"PATH": path, "HF_HOME": str(home), "OMP_WAIT_POLICY": "passive"}
    return settings | more


def run(
    lab: Path, home: Path, *options: str, timeout: float = 120, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["python", "generate.py", *options],
        cwd=lab,
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def download(lab: Path, home: Path, hub: WatchedHub) -> subprocess.CompletedProcess[str]:
    return run(lab, home, "--download-only", HF_ENDPOINT=hub.address)


def start_download(lab: Path, home: Path, hub: WatchedHub) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["python", "generate.py", "--download-only"],
        cwd=lab,
        env=environment(home, HF_ENDPOINT=hub.address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def whole(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An HF_HOME with the whole model, as the program has downloaded it."""
    home = tmp_path_factory.mktemp("whole")
    with WatchedHub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = download(lab, home, server)
        server.shutdown()
    assert result.returncode == 0, result.stderr
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may break: hard links, so nothing may be changed in place."""
    return shutil.copytree(whole, tmp_path / "home", symlinks=True, copy_function=os.link)


def snapshot(home: Path) -> Path:
    return next(home.glob("hub/models--*/snapshots/*"))


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def wanted_sizes() -> dict[str, int]:
    """What has to be there after a download: everything but the page about the model."""
    files = load_listing()["files"]
    return {name: files[name]["size"] for name in files if name not in ("README.md", "LICENSE")}


# --- The download ---


def test_the_download_says_where_the_model_is(lab, hub, tmp_path):
    result = download(lab, tmp_path, hub)
    model = load_listing()["model"]
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        f"HF_HOME = {tmp_path}\n"
        f"downloaded {model} to {snapshot(tmp_path)}. Now submit the GPU job.\n"
    )
    assert sizes(snapshot(tmp_path)) == wanted_sizes()


def test_the_download_shows_its_progress_on_a_terminal(lab, hub, tmp_path):
    settings = environment(tmp_path, HF_ENDPOINT=hub.address, TERM="xterm")
    terminal = pexpect.spawn(
        "python", ["generate.py", "--download-only"], cwd=lab, env=settings, encoding="utf-8"
    )
    terminal.expect(r"\d+%\|", timeout=60)
    terminal.expect_exact("Now submit the GPU job.", timeout=60)
    terminal.close()


def test_what_is_there_is_not_downloaded_again(lab, hub, whole):
    result = download(lab, whole, hub)
    assert (result.returncode, hub.requests) == (0, [])
    assert result.stdout.endswith("Now submit the GPU job.\n")


def test_after_a_short_break_the_download_goes_on_where_it_was(lab, hub, tmp_path):
    hub.breaks = 1
    result = download(lab, tmp_path, hub)
    assert result.returncode == 0
    assert sizes(snapshot(tmp_path)) == wanted_sizes()
    assert any(re.fullmatch(rf"GET {WEIGHTS} bytes=\d{{8}}-", asked) for asked in hub.requests)


def test_without_a_network_the_download_stops_and_goes_on_when_started_again(lab, hub, tmp_path):
    hub.breaks = 100  # more often than the library tries
    result = download(lab, tmp_path, hub)
    assert result.returncode == 1
    assert "downloaded" not in result.stdout
    last = result.stderr.splitlines()[-1]
    assert last.endswith("Then type the same again: what has arrived is kept.")
    assert WEIGHTS not in sizes(snapshot(tmp_path))
    assert_not_downloaded(run(lab, tmp_path, HF_HUB_OFFLINE="1"))

    hub.breaks = 0
    hub.requests.clear()
    assert download(lab, tmp_path, hub).returncode == 0
    assert f"GET {WEIGHTS}" in hub.requests
    assert "GET generation_config.json" not in hub.requests  # it had arrived
    assert sizes(snapshot(tmp_path)) == wanted_sizes()


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_a_download_that_is_stopped_goes_on_when_started_again(lab, hub, tmp_path, signal_number):
    hub.breaks = 1
    hub.go_on.clear()
    process = start_download(lab, tmp_path, hub)
    assert hub.broke_off.wait(60)
    process.send_signal(signal_number)
    time.sleep(0.1)
    hub.go_on.set()
    errors = process.communicate(timeout=60)[1]
    if signal_number == signal.SIGINT:
        assert process.returncode == 1
        assert errors.endswith("Stopped.\nType the same again: what has arrived is kept.\n")
        assert "Traceback" not in errors
    assert_not_downloaded(run(lab, tmp_path, HF_HUB_OFFLINE="1"))
    assert download(lab, tmp_path, hub).returncode == 0
    assert sizes(snapshot(tmp_path)) == wanted_sizes()


def test_of_two_downloads_at_the_same_time_one_waits_for_the_other(lab, hub, tmp_path):
    hub.breaks = 1
    hub.go_on.clear()
    first = start_download(lab, tmp_path, hub)
    assert hub.broke_off.wait(60)
    second = start_download(lab, tmp_path, hub)
    while hub.requests.count(f"HEAD {WEIGHTS}") < 2:  # it knows by now what is missing
        assert second.poll() is None
        time.sleep(0.1)
    hub.go_on.set()
    for process in (first, second):
        assert process.communicate(timeout=60)[0].endswith("Now submit the GPU job.\n")
        assert process.returncode == 0
    assert hub.requests.count(f"GET {WEIGHTS}") == 1
    assert sizes(snapshot(tmp_path)) == wanted_sizes()


@needs_root
def test_on_a_full_disk_the_download_stops_and_goes_on_when_there_is_room(lab, hub, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", tmp_path], check=True)
    try:
        result = download(lab, tmp_path, hub)
        assert result.returncode == 1
        assert f"There is no space left for {tmp_path}." in result.stderr
        assert result.stderr.splitlines()[-1].startswith("Then type the same again")
        assert "Traceback" not in result.stderr
        assert_not_downloaded(run(lab, tmp_path, HF_HUB_OFFLINE="1"))
        subprocess.run(["mount", "-o", "remount,size=400m", tmp_path], check=True)
        assert download(lab, tmp_path, hub).returncode == 0
        assert sizes(snapshot(tmp_path)) == wanted_sizes()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "Qwen/Qwen2.5-0.5B-Instruct"),  # the hub has one, under its own name
        ("--revision", "7ae557604adf67be50417f59c2c2f167def9a775"),
        ("--model", "no model"),
    ],
)
def test_a_model_that_the_hub_does_not_have_is_not_downloaded(lab, hub, tmp_path, options):
    result = run(lab, tmp_path, "--download-only", *options, HF_ENDPOINT=hub.address)
    assert result.returncode == 1
    assert "The hub has no model" in result.stderr
    assert result.stderr.splitlines()[-1] == "Look for a typo in --model and --revision."
    assert "Traceback" not in result.stderr


def test_in_a_shell_that_is_offline_the_download_says_so(lab, hub, tmp_path):
    result = run(lab, tmp_path, "--download-only", HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="1")
    assert (result.returncode, hub.requests) == (1, [])
    assert result.stderr.splitlines()[-1] == "Type: unset HF_HUB_OFFLINE"


# --- What is not whole ---


def remove_blob(home: Path) -> None:
    (snapshot(home) / WEIGHTS).resolve().unlink()


def cut_blob(home: Path) -> None:
    blob = (snapshot(home) / WEIGHTS).resolve()
    beginning = blob.open("rb").read(1_000_000)
    blob.unlink()
    blob.write_bytes(beginning)


def point_link_nowhere(home: Path) -> None:
    link = snapshot(home) / "tokenizer.json"
    link.unlink()
    link.symlink_to("../../blobs/nowhere")


def remove_link(home: Path) -> None:
    (snapshot(home) / "config.json").unlink()


def lose_list_of_files(home: Path) -> None:
    file = next(home.glob("hub/models--*/trees/*.json"))
    file.unlink()
    file.write_text("{")


BROKEN = [remove_blob, cut_blob, point_link_nowhere, remove_link, lose_list_of_files]


def assert_not_downloaded(result: subprocess.CompletedProcess[str]) -> None:
    assert (result.returncode, result.stdout) == (1, "")
    assert COMMAND in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("break_it", BROKEN)
def test_a_model_that_is_not_whole_is_noticed_at_once_and_mended(lab, hub, home, break_it):
    break_it(home)
    settings = {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "1"}
    assert_not_downloaded(run(lab, home, timeout=15, **settings))
    assert hub.requests == []  # the network was not asked

    assert download(lab, home, hub).returncode == 0
    assert sizes(snapshot(home)) == wanted_sizes()


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_a_download_the_job_fails_at_once(lab, hub, tmp_path, offline):
    settings = {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": offline}
    assert_not_downloaded(run(lab, tmp_path / "other", timeout=15, **settings))
    assert hub.requests == []


@needs_root
@pytest.mark.parametrize("folder", ["hub", "hub/models--*", "hub/models--*/blobs"])
def test_a_folder_without_permission_is_noticed_at_once(lab, hub, home, folder):
    [closed] = home.glob(folder)
    closed.chmod(0)
    # Root may open everything, unless it gives that up.
    common = {"cwd": lab, "capture_output": True, "text": True, "timeout": 15}
    mortal = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    generate = [*mortal, "python", "generate.py"]
    settings = environment(home, HF_ENDPOINT=hub.address)
    offline = settings | {"HF_HUB_OFFLINE": "1"}
    assert_not_downloaded(subprocess.run(generate, env=offline, **common))
    assert hub.requests == []
    result = subprocess.run([*generate, "--download-only"], env=settings, **common)
    assert result.returncode == 1
    assert f"Type: chmod -R u+rwX '{home}'" in result.stderr
    assert "Traceback" not in result.stderr
    closed.chmod(0o755)


def test_a_file_that_holds_something_else_is_named(lab, home):
    config = (snapshot(home) / "config.json").resolve()
    size = config.stat().st_size
    config.unlink()
    config.write_bytes(bytes(size))
    result = run(lab, home, HF_HUB_OFFLINE="1")
    assert (result.returncode, result.stdout) == (1, "")
    assert "cannot be loaded" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Download them anew: rm -rf ")
    assert "Traceback" not in result.stderr


# --- The answers ---


def answers(log: str) -> str:
    """What stands between the head of a log and the last line, which has the speed."""
    return log[log.index(">>> ") : log.rindex("\n\n")]


def job(lab: Path, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The job script, as Slurm runs it, with short answers."""
    settings = environment(home, SLURM_CPUS_PER_TASK="1")
    command = ["bash", "generate.sbatch", "--max-new-tokens", "12", *options]
    return subprocess.run(command, cwd=lab, env=settings, capture_output=True, text=True)


@pytest.fixture(scope="module")
def seeded(lab, whole) -> subprocess.CompletedProcess[str]:
    return job(lab, whole, "--seed", "1")


def test_the_job_answers_every_prompt(seeded):
    assert (seeded.returncode, seeded.stderr) == (0, "")
    head, *rest = seeded.stdout.split("\n>>> ")
    listing = load_listing()
    assert head.startswith(
        f"model       : {listing['model']}\nrevision    : {listing['revision']}\n"
    )
    assert [text.split("\n")[0] for text in rest] == PROMPTS
    for text in rest:
        assert re.search(r"\w", text.partition("\n")[2])
    last = seeded.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ tokens in \d+\.\d s: \d+\.\d tokens/s", last)


def test_the_capital_is_the_second_prompt():
    assert PROMPTS[1] == "What is the capital of Saxony, and what is it famous for?"


def test_with_the_same_seed_the_answers_are_the_same(lab, whole, seeded):
    assert answers(job(lab, whole, "--seed", "1").stdout) == answers(seeded.stdout)


def test_without_a_seed_two_jobs_answer_differently(lab, whole):
    assert answers(job(lab, whole).stdout) != answers(job(lab, whole).stdout)


def load_program(lab: Path):
    spec = importlib.util.spec_from_file_location("generate", lab / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program(lab):
    return load_program(lab)


@pytest.fixture(scope="module")
def loaded(program, whole):
    """The model and its tokenizer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CPUS_PER_TASK", "1")
        return program.load_model(snapshot(whole))


def test_a_prompt_is_answered_in_a_batch_as_it_is_alone(program, loaded):
    model, tokenizer = loaded
    together = program.answer(model, tokenizer, PROMPTS[1:3], 5, temperature=0, seed=0)
    for prompt, tokens in zip(PROMPTS[1:3], together, strict=True):
        alone = program.answer(model, tokenizer, [prompt], 5, temperature=0, seed=0)
        assert alone[0].tolist() == tokens.tolist()


def test_a_temperature_of_zero_leaves_nothing_to_chance(program, loaded, recwarn):
    first, second = (
        program.answer(*loaded, PROMPTS[:1], 8, temperature=temperature, seed=seed)
        for temperature, seed in ((0, 1), (1e-40, 2))
    )
    assert first.tolist() == second.tolist()
    assert [str(warning.message) for warning in recwarn] == []


def test_a_prompt_that_is_too_long_is_refused(program, loaded):
    with pytest.raises(SystemExit, match="has room for 8192"):
        program.answer(*loaded, ["Dresden " * 9000], 8, temperature=0, seed=0)


def test_no_more_threads_are_used_than_there_are_cpus(program, monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    program.choose_device()
    assert torch.get_num_threads() == 1
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1000")
    program.choose_device()
    assert torch.get_num_threads() == len(os.sched_getaffinity(0))
    torch.set_num_threads(before)


# --- What may be typed ---


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "There is no prompt in"),
        (b"\n \n", "There is no prompt in"),
        ("Wo fließt die Elbe?".encode("latin-1"), "is not text in UTF-8"),
        (None, os.strerror(errno.ENOENT)),
    ],
)
def test_a_file_without_prompts_is_refused(lab, whole, tmp_path, content, problem):
    file = tmp_path / "mine.txt"
    if content is not None:
        file.write_bytes(content)
    result = run(lab, whole, "--prompts", str(file))
    assert (result.returncode, result.stdout) == (1, "")
    assert problem in result.stderr
    assert "Traceback" not in result.stderr


def test_prompts_from_windows_are_read(program, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_bytes("\ufeffWo fließt die Elbe?\r\n\r\nUnd wohin?\r\n".encode())
    assert program.read_prompts(file) == ["Wo fließt die Elbe?", "Und wohin?"]


@pytest.mark.parametrize(
    "options",
    [
        ("--seed", "-1"),
        ("--seed", "one"),
        ("--temperature", "-0.1"),
        ("--temperature", "nan"),
        ("--max-new-tokens", "0"),
        ("--max-new-tokens", "1.5"),
    ],
)
def test_a_wrong_number_is_refused(lab, whole, options):
    result = run(lab, whole, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"argument {options[0]}: '{options[1]}' is not a" in result.stderr


def test_without_the_environment_it_says_what_to_source(lab, tmp_path):
    source = "source ../00_setup/setup_env.sh\n"
    # -I and -S leave out everything that is installed beside Python.
    bare = subprocess.run(
        [sys.executable, "-I", "-S", "generate.py"], cwd=lab, capture_output=True, text=True
    )
    assert (bare.returncode, bare.stdout) == (1, "")
    assert bare.stderr.endswith(source)
    settings = environment(tmp_path)
    del settings["HF_HOME"]
    command = ["python", "generate.py", "--download-only"]
    no_home = subprocess.run(command, cwd=lab, env=settings, capture_output=True, text=True)
    assert (no_home.returncode, no_home.stdout) == (1, "")
    assert no_home.stderr.endswith(source)
