"""What the workspace commands of the practice cluster share.

They are stand-ins for the hpc-workspace tools, with the interface that ZIH documents. A workspace
is a folder of its user; what was asked for it is kept in a JSON file beside it. Nothing expires.
"""

import argparse
import getpass
import json
import re
import sys
import time
from pathlib import Path

FILESYSTEM = "@FILESYSTEM@"
TOP = Path("/data/@FILESYSTEM@/ws")
RECORDS = TOP / ".records"
DAY = 24 * 3600
MAX_DAYS = 100
EXTENSIONS = 10


def parser(usage: str, does: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        usage=usage,
        description=f"{does} This is a stand-in of the practice cluster for the real command.",
        add_help=False,
    )
    made.add_argument("-h", "--help", action="help", help="show this text")
    made.add_argument("-F", "--filesystem", metavar="FS", default=FILESYSTEM, help="filesystem")
    return made


def check_filesystem(name: str) -> None:
    if name != FILESYSTEM:
        fail(f"no such filesystem: {name}. To see which there are: ws_list -l")


def fail(text: str) -> None:
    print(f"Error: {text}", file=sys.stderr)
    sys.exit(1)


def folder(name: str) -> Path:
    return TOP / f"{getpass.getuser()}-{name}"


def record_file(name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        fail("a workspace name has only letters, digits, - . and _")
    return RECORDS / f"{folder(name).name}.json"


def load(name: str) -> dict:
    """The record of a workspace: creation, expiration (seconds), extensions, comment, reminder."""
    file = record_file(name)
    if not file.exists():
        fail(f"no such workspace: {name}")
    return json.loads(file.read_text())


def save(name: str, record: dict) -> None:
    record_file(name).write_text(json.dumps(record))


def capped(days: int) -> int:
    """The duration in days, cut to what is allowed, with a message."""
    if 0 < days <= MAX_DAYS:
        return days
    print("Error: duration longer than allowed for this workspace.", file=sys.stderr)
    print(f"       setting to allowed maximum of {MAX_DAYS}", file=sys.stderr)
    return MAX_DAYS


def extend(name: str, days: int) -> None:
    """Let the workspace end `days` from now, and print what the real command prints."""
    record = load(name)
    expiration = time.time() + capped(days) * DAY
    if expiration > record["expiration"]:
        if record["extensions"] == 0:
            fail("no more extensions.")
        record["extensions"] -= 1
    record["expiration"] = expiration
    save(name, record)
    print("Info: extending workspace.", file=sys.stderr)
    show(name, record)


def show(name: str, record: dict) -> None:
    """The path on stdout, for path=$(ws_allocate ...); all else on stderr."""
    days = round((record["expiration"] - time.time()) / DAY)
    print(folder(name), flush=True)
    print(f"remaining extensions  : {record['extensions']}", file=sys.stderr)
    print(f"remaining time in days: {days}", file=sys.stderr)
