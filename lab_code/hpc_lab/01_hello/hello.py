"""Say hello from a compute node, then let all allocated CPUs estimate pi together.

    mkdir -p logs && sbatch hello.sbatch    as a job, on a compute node
    python3 hello.py                        without Slurm, on the machine you sit at

How do you get pi from random numbers? Throw 20,000,000 darts at a square with sides of
length 1. A quarter of a circle with radius 1 fits into it and covers pi/4 of the square, so
about pi/4 of the darts land inside. Count them, divide by all darts, multiply by 4.

The darts do not depend on each other, so every CPU throws its own share at the same time.
"""

import multiprocessing
import os
import platform
import random
import socket
import sys
import time

SAMPLES = 20_000_000  # darts: enough for about three correct digits, in a few seconds


def allocated_cpus():
    """Return how many CPUs this program may use, and a few words on who says so."""
    # Slurm puts the number from --cpus-per-task into this variable. Do not ask how many CPUs
    # the machine has: on a compute node most of them belong to other people's jobs.
    from_slurm = os.environ.get("SLURM_CPUS_PER_TASK")
    if from_slurm is not None:
        # 1024: no machine of the course has more, so a larger number must be a mistake.
        if not from_slurm.isdecimal() or not 1 <= int(from_slurm) <= 1024:
            sys.exit(
                f"SLURM_CPUS_PER_TASK is '{from_slurm}', but it must be a whole number from 1 to "
                "1024. In a job, Slurm sets it; elsewhere type: unset SLURM_CPUS_PER_TASK"
            )
        return int(from_slurm), "what Slurm allocated to me"
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)), "what the operating system lets me use"
    return os.cpu_count() or 1, "all that this machine has"  # a Mac cannot be asked more precisely


def share_out(samples, workers):
    """Divide the samples into one whole number for each worker; the sum is exact."""
    each, left_over = divmod(samples, workers)
    return [each + 1 if worker < left_over else each for worker in range(workers)]


def count_hits(seed, samples):
    """Throw this many darts and return how many of them land inside the circle."""
    # Each worker has a seed of its own. With the same seed for all of them, they would all
    # throw the same darts. With a fixed one, the digits are the same every time you run this.
    throw = random.Random(seed).random
    hits = 0
    for _ in range(samples):
        x = throw()
        y = throw()
        if x * x + y * y < 1.0:
            hits += 1
    return hits


def main():
    cpus, reason = allocated_cpus()
    print(f"Hello from        : {socket.gethostname()}")
    print(f"CPUs I may use    : {cpus}   <- {reason}")
    print(f"Slurm job         : {os.environ.get('SLURM_JOB_ID', 'none')}")
    print(f"Python            : {platform.python_version()}")

    start = time.perf_counter()
    # One process per CPU. Threads would not help: in Python only one of them computes at a time.
    with multiprocessing.Pool(processes=cpus) as pool:
        hits = pool.starmap(count_hits, enumerate(share_out(SAMPLES, cpus)), chunksize=1)
    seconds = time.perf_counter() - start

    pi = 4 * sum(hits) / SAMPLES
    print(f"pi ~ {pi:.6f}   ({SAMPLES:,} samples on {cpus} CPU(s) in {seconds:.2f} s)")


# The worker processes may load this file again: only the first process runs main().
if __name__ == "__main__":
    main()
