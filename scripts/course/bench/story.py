"""How long the whole story takes on the practice cluster, without the installation in scene 0.

The environment is installed first, and that is not counted.
"""

import sys
import time

from course.cluster import Cluster
from course.play import SceneRehearsal
from course.rehearse import chosen, rehearse
from course.scenes import load_scenes
from course.sites import Practice

INSTALLING = ("pip-in-home", "srun-and-source")


def main(argv: list[str]) -> int:
    """Plays the story once; gives the exit code."""
    if argv:
        print("Usage: scripts/bench story", file=sys.stderr)
        return 2
    Cluster().start(print)
    scenes = load_scenes()
    with SceneRehearsal(Practice(), scenes[0]) as rehearsal:
        rehearsal.play(scenes[0].take("bash-not-source"))
    takes = [
        (scene, [take for take in takes if take.id not in INSTALLING])
        for scene, takes in chosen(scenes, [])
    ]
    begin = time.perf_counter()
    entries, failures = rehearse(Practice(), takes)
    seconds = time.perf_counter() - begin
    print(f"{len(entries)} takes in {seconds:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
