"""How long `source 00_setup/setup_env.sh` takes once the environment is there.

    scripts/bench setup [--times N] [LAB]

LAB is a lab folder whose environment exists, for example on Alpha ~/behind-llms-lab/hpc_lab.
Without it, the benchmark makes a real environment in build/bench-setup, once, in the build of
torch that pip gives to this machine; that takes some minutes.
"""

import argparse
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from course.bundle import copy_files
from course.values import LAB, change_values

BUILD = Path(__file__).parents[3] / "build" / "bench-setup"
LIMIT = 1.0  # seconds


def make_lab() -> Path:
    """A copy of the lab with an environment. Raises CalledProcessError if installing fails."""
    lab = BUILD / "hpc_lab"
    copy_files(LAB, lab)
    import torch  # the one of .venv

    change_values(lab, {"TORCH_BUILD": "cuda" if torch.version.cuda else "cpu"})
    subprocess.run(["bash", "00_setup/setup_env.sh"], cwd=lab, stdin=subprocess.DEVNULL, check=True)
    return lab


def measure(shell: str, lab: Path, times: int) -> list[float]:
    """Seconds of each sourcing, every one in a new shell; the shell's own start is included."""
    script = f"source {shlex.quote(str(lab / '00_setup' / 'setup_env.sh'))}"
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([shell, "-c", script], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/bench setup")
    parser.add_argument("--times", type=int, default=20, help="how often (%(default)s)")
    parser.add_argument("lab", nargs="?", type=Path, help="a lab folder that was set up")
    options = parser.parse_args()
    try:
        lab = options.lab or make_lab()
        for shell in ("bash", "zsh"):
            if shutil.which(shell) is None:
                print(f"{shell:5} not run: it is not on this machine")
                continue
            seconds = measure(shell, lab.resolve(), options.times)
            print(
                f"{shell:5} {len(seconds)} times: median {statistics.median(seconds):.2f} s, "
                f"from {min(seconds):.2f} to {max(seconds):.2f} s (wanted: under {LIMIT:.0f} s)"
            )
    except subprocess.CalledProcessError:
        print("setup_env.sh failed: see above what it says.", file=sys.stderr)
        return 1
    tools = "asked" if shutil.which("ws_find") else "not on this machine"
    print(f"ws_find and ws_list: {tools}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
