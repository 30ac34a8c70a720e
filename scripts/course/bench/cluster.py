"""How long the practice cluster takes from its start to the first finished job, and to stop.

The packages are there already; they are fetched once.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from course.cluster import Cluster, ClusterError
from course.cluster.control import CHECKOUT
from course.cluster.packages import unpack
from course.values import COURSE_ENV, LAB, load_values

ROUNDS = 3
MEASURED = ("start", "start to first finished job", "stop")
JOB = "srun --account={account} --nodes=1 --ntasks=1 --time=00:01:00 hostname"


def main(argv: list[str]) -> int:
    """Measures ROUNDS starts; gives the exit code. Ends a cluster of this checkout that runs."""
    if argv:
        print("Usage: scripts/bench cluster", file=sys.stderr)
        return 2
    cluster = Cluster()
    try:
        cluster.stop()
        unpack(Path(CHECKOUT, "build/cluster/packages"), print)
        rounds = [measure(cluster) for _ in range(ROUNDS)]
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    for name, seconds in zip(MEASURED, zip(*rounds, strict=True), strict=True):
        print(f"{name}: {statistics.median(seconds):.1f} s (median of {ROUNDS})")
    return 0


def measure(cluster: Cluster) -> tuple[float, float, float]:
    """The seconds of the start, from the start to the end of the first job, and of the stop."""
    start = timed(cluster.start)
    account = load_values(LAB / COURSE_ENV)["ACCOUNT"]
    job = timed(lambda: cluster.run("marie", JOB.format(account=account)).check_returncode())
    return start, start + job, timed(cluster.stop)


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
