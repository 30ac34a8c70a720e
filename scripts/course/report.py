"""The reports of rehearsals: which take was played where and when, on which Slurm.

One JSON file a cluster in lab_code/scenes/reports/. A take's entry counts as long as the take and
its lab's files are what was played: a digest of them stands in the entry.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from course.bundle import lab_files
from course.scenes import LAB, ROOT, Session, TranscriptFile

REPORTS = ROOT / "lab_code/scenes/reports"


@dataclass(frozen=True)
class Played:
    """A take as it was last played on one cluster."""

    cluster: str  # "practice cluster" or the cluster's name, as the page shows it
    slurm: str  # its version
    day: date
    gpu: str  # "" where the take needs none, "none" where there was none, else the GPU's name
    digest: str


def digest(scene: TranscriptFile, take: Session, lab: Path = LAB) -> str:
    """Of all that decides what a take shows: what is typed and told, and the lab's files."""
    prose = {"intro", "why", "title", "went_wrong", "rule", "message", "also", "symptom"}
    prose |= {"cause", "remedy"}
    told = take.model_dump(mode="json", exclude=prose | {"not_played"})
    for terminal in told["terminals"]:
        del terminal["intro"]
    whole = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for file in lab_files(lab):
        if file.relative_to(lab).parts[0] in scene.labs:
            whole.update(f"\0{file.relative_to(lab)}\0".encode() + file.read_bytes())
    return whole.hexdigest()[:16]


def load_reports(folder: Path = REPORTS) -> dict[str, list[Played]]:
    """All entries by their take, such as "1/no-log-folder", one for each cluster."""
    played: dict[str, list[Played]] = {}
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        for name, entry in report["takes"].items():
            day = date.fromisoformat(entry["day"])
            played.setdefault(name, []).append(
                Played(report["cluster"], entry["slurm"], day, entry["gpu"], entry["digest"])
            )
    return played


def write_report(path: Path, cluster: str, takes: dict[str, Played]) -> None:
    """Write the entries of one cluster, and keep those of takes that were not played now."""
    entries = {}
    if path.exists():
        entries = json.loads(path.read_text(encoding="utf-8"))["takes"]
    for name, played in takes.items():
        entries[name] = {
            "day": played.day.isoformat(),
            "slurm": played.slurm,
            "gpu": played.gpu,
            "digest": played.digest,
        }
    report = {"cluster": cluster, "takes": dict(sorted(entries.items()))}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
