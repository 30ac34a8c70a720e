"""A small hub for one language model: the part of the Hugging Face Hub that a download asks for.

    python3 -m course.hub FOLDER PORT

The folder is what scripts/make-model makes. Read-only, on the loopback address, and it knows
the model under its own name only. Whoever downloads from it sets HF_ENDPOINT to its address.

Standard library only: on the practice cluster the system's python3 runs it.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote, urlsplit

HUB = Path(__file__).resolve().parents[2] / "build/hub"
LISTING = "listing.json"


class File(TypedDict):
    """A file of the model; a large one has a sha256, as on the real hub."""

    size: int
    blob_id: str  # what git calls it
    sha256: str | None


class Listing(TypedDict):
    """What the hub offers."""

    model: str  # owner/name
    revision: str  # in place of a git commit
    files: dict[str, File]


def list_files(model: str, folder: Path) -> Listing:
    """List the files of a model's folder. The revision changes when any of them does."""
    files: dict[str, File] = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        large = path.suffix == ".safetensors"
        files[path.name] = {
            "size": len(content),
            "blob_id": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
            "sha256": hashlib.sha256(content).hexdigest() if large else None,
        }
    revision = hashlib.sha1(json.dumps([model, files], sort_keys=True).encode()).hexdigest()
    return {"model": model, "revision": revision, "files": files}


def make_model() -> None:
    """Make the model where it is not there yet. Raises OSError where that fails."""
    if subprocess.run([HUB.parents[1] / "scripts/make-model"]).returncode != 0:
        raise OSError("The language model of lab 06 could not be made: see above.")


def load_listing(hub: Path = HUB) -> Listing:
    """What the folder offers. Raises FileNotFoundError when there is no (whole) model."""
    return json.loads((hub / LISTING).read_text(encoding="utf-8"))


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of huggingface_hub.

    GET  /api/models/MODEL/revision/REVISION    which commit this is
    GET  /api/models/MODEL/tree/COMMIT          the files of it
    HEAD /MODEL/resolve/COMMIT/FILE             size and checksum
    GET  /MODEL/resolve/COMMIT/FILE             the content, or the rest of it after a break
    """

    protocol_version = "HTTP/1.1"
    server: "HubServer"

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        model = re.escape(self.server.listing["model"])
        if api := re.fullmatch(rf"/api/models/{model}/(revision|tree)/([^/]+)/?", path):
            self._answer_api(*api.groups())
        elif resolve := re.fullmatch(rf"/{model}/resolve/([^/]+)/(.+)", path):
            self._answer_file(*resolve.groups())
        else:
            self._not_found("RepoNotFound", "There is no such model here.")

    do_HEAD = do_GET

    def _answer_api(self, asked: str, revision: str) -> None:
        listing = self.server.listing
        if not self._knows(revision):
            return
        if asked == "revision":
            siblings = [{"rfilename": name} for name in listing["files"]]
            answer = {"id": listing["model"], "sha": listing["revision"], "siblings": siblings}
            self._send_json(answer)
            return
        self._send_json([_tree_entry(name, file) for name, file in listing["files"].items()])

    def _answer_file(self, revision: str, name: str) -> None:
        if not self._knows(revision):
            return
        file = self.server.listing["files"].get(name)
        if file is None:
            self._not_found("EntryNotFound", "There is no such file.")
            return
        first = self._first_byte()
        if first >= file["size"]:
            self._begin(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0)
            self.end_headers()
            return
        self._begin(HTTPStatus.PARTIAL_CONTENT if first else HTTPStatus.OK, file["size"] - first)
        self.send_header("ETag", f'"{file["sha256"] or file["blob_id"]}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Disposition", f'inline; filename="{name}";')
        if first:
            self.send_header("Content-Range", f"bytes {first}-{file['size'] - 1}/{file['size']}")
        self.end_headers()
        if self.command == "GET":
            self._send_content(name, first)

    def _send_content(self, name: str, first: int) -> None:
        """Send a file from its byte number `first` on."""
        with (self.server.folder / name).open("rb") as content:
            content.seek(first)
            shutil.copyfileobj(content, self.wfile)

    def _first_byte(self) -> int:
        """Where the answer begins: 0, or where a broken download goes on."""
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(wanted[1]) if wanted else 0

    def _knows(self, revision: str) -> bool:
        if revision in ("main", self.server.listing["revision"]):
            return True
        self._not_found("RevisionNotFound", "There is no such revision of the model.")
        return False

    def _begin(self, status: HTTPStatus, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("X-Repo-Commit", self.server.listing["revision"])

    def _send_json(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self._begin(HTTPStatus.OK, len(body))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _not_found(self, code: str, message: str) -> None:
        self._begin(HTTPStatus.NOT_FOUND, 0)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.end_headers()


def _tree_entry(name: str, file: File) -> dict[str, object]:
    entry = {"type": "file", "path": name, "size": file["size"], "oid": file["blob_id"]}
    if file["sha256"]:
        # On the real hub, git holds a pointer of this size in the place of a large file.
        entry["lfs"] = {"oid": file["sha256"], "size": file["size"], "pointerSize": 134}
    return entry


class HubServer(ThreadingHTTPServer):
    """Serves the hub's folder on a port of the loopback address; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, hub: Path = HUB, port: int = 0, handler: type[Handler] = Handler) -> None:
        self.listing = load_listing(hub)
        self.folder = hub / self.listing["model"]
        super().__init__(("127.0.0.1", port), handler)


if __name__ == "__main__":
    HubServer(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
