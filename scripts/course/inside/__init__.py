"""What the pages "inside the model" show, as files in docs/assets/model/data."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "docs/assets/model/data"


class RecordingError(Exception):
    """Something cannot be recorded. The message says what, and what to do next."""
