"""The command scripts/rehearse: plays takes on a real Slurm and keeps the report."""

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path

from course.cluster import ClusterError
from course.play import RECORDINGS, Edit, Failure, SceneRehearsal
from course.report import REPORTS, Played, digest, write_report
from course.scenes import (
    SceneError,
    Session,
    TranscriptFile,
    load_pages,
    load_scenes,
)
from course.shell import ShellError
from course.sites import Here, Practice
from course.values import ValuesError


def chosen(
    scenes: Iterable[TranscriptFile], names: Sequence[str]
) -> list[tuple[TranscriptFile, list[Session]]]:
    """The takes named ("1" or "1/no-log-folder"; none: all), with those on which they build.

    Raises KeyError with the name that there is not.
    """
    scenes = list(scenes)
    known = {scene.name for scene in scenes}
    known |= {f"{scene.name}/{take.id}" for scene in scenes for take in scene.takes}
    for name in names:
        if name not in known:
            raise KeyError(name)
    result = []
    for scene in scenes:
        wanted: list[Session] = []
        for take in reversed(scene.takes):
            asked = not names or {scene.name, f"{scene.name}/{take.id}"} & set(names)
            if asked or any(take.id == later.after for later in wanted):
                wanted.insert(0, take)
        if wanted:
            result.append((scene, wanted))
    return result


def cannot_be_played(take: Session, played: Sequence[str], site: Practice | Here) -> str:
    """Why a take cannot be played on this site; empty where it can."""
    if take.not_played:
        return take.not_played
    if take.after and take.after not in played:
        return f"it goes on from '{take.after}', which was not played"
    users = {line.user for terminal in take.terminals for line in terminal.lines if line.user}
    if missing := users - set(site.helpers):
        return f"it needs a second user, {', '.join(missing)}"
    return ""


def rehearse(
    site: Practice | Here,
    scenes: Sequence[tuple[TranscriptFile, list[Session]]],
    say: Callable[[str], None] = print,
    *,
    update: bool = False,
    recordings: Path = RECORDINGS,
) -> tuple[dict[str, Played], list[str]]:
    """Play the takes; return the entries for the report, and the failures as texts."""
    slurm = site.run(site.user, "sinfo --version").stdout.removeprefix("slurm-wlm ").strip()
    slurm = slurm.removeprefix("slurm ")
    entries: dict[str, Played] = {}
    failures: list[str] = []
    for scene, takes in scenes:
        done: list[str] = []
        told = len(failures)
        with SceneRehearsal(site, scene, recordings) as rehearsal:
            for take in takes:
                name = f"{scene.name}/{take.id}"
                if reason := cannot_be_played(take, done, site):
                    say(f"not played  {name}: {reason}")
                    continue
                try:
                    gpu = rehearsal.play(take)
                except Failure as failure:
                    failures.append(str(failure))
                    say(f"DIFFERENT   {failure}")
                    continue
                done.append(take.id)
                entries[name] = Played(site.name, slurm, date.today(), gpu, digest(scene, take))
                say(f"as told     {name}" + (" (without a GPU)" if gpu == "none" else ""))
        if update and rehearsal.edits:
            _apply(scene.path, rehearsal.edits)
            say(f"Updated {scene.path}. Look at it, and play again.")
        elif update and len(failures) > told:
            say(
                f"Nothing was written into {scene.path}: a line with a stage direction or with a "
                "new number is changed by hand."
            )
    return entries, failures


def _apply(path: Path, edits: Sequence[Edit]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    # From the bottom up: an edit may change how many lines there are.
    for edit in sorted(edits, key=lambda edit: edit.first, reverse=True):
        lines[edit.first - 1 : edit.last] = edit.lines
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/rehearse", description="Play takes on a real Slurm and compare."
    )
    parser.add_argument("takes", nargs="*", metavar="SCENE[/TAKE]", help="default: all")
    parser.add_argument("--on", choices=["practice", "here"], default="practice")
    parser.add_argument("--report", action="store_true", help="keep what was seen in reports/")
    parser.add_argument("--update", action="store_true", help="write new output into the scene")
    parser.add_argument("--yes", action="store_true", help="submit jobs on this machine's Slurm")
    options = parser.parse_args(arguments)
    try:
        takes = chosen([*load_scenes(), *load_pages()], options.takes)
    except (SceneError, ValuesError) as error:
        sys.exit(str(error))
    except KeyError as error:
        sys.exit(f"There is no take {error}. lab_code/scenes/ has their names.")
    if options.on == "here" and not options.yes:
        count = sum(len(takes) for _, takes in takes)
        sys.exit(f"This submits the jobs of {count} takes on this machine's Slurm. Add --yes.")
    try:
        with contextlib.closing(Practice() if options.on == "practice" else Here()) as site:
            entries, failures = rehearse(site, takes, update=options.update)
    except ClusterError as error:
        sys.exit(str(error))
    except (subprocess.SubprocessError, ShellError) as error:
        sys.exit(f"The cluster does not answer any more: {error}\nStart it anew, and play again.")
    if options.report and entries:
        name = "practice" if options.on == "practice" else site.values["CLUSTER"]
        write_report(REPORTS / f"{name}.json", site.name, entries)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
