"""Serves a built site as a web server does: compressed, and to be kept by the browser for a while.

python -m course.audit.server FOLDER PORT
"""

import functools
import gzip
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMPRESSED = (".html", ".css", ".js", ".json", ".svg", ".xml", ".txt")
LEVEL = 6  # what web servers usually take


class Server(ThreadingHTTPServer):
    """Remembers what it sent: paths with the bytes of their bodies, headers not counted."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0):
        super().__init__(("127.0.0.1", port), functools.partial(_Handler, directory=str(folder)))
        self.sent: list[tuple[str, int]] = []

    @property
    def address(self) -> str:
        """Without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(SimpleHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        found = path.is_file()
        if not found:
            path = Path(self.directory) / "404.html"
        body = path.read_bytes() if path.is_file() else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Cache-Control", "max-age=600")
        if path.suffix in COMPRESSED:
            body = gzip.compress(body, LEVEL)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.server.sent.append((self.path, len(body)))
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server of this folder, on a free port, as long as the block runs."""
    with Server(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


if __name__ == "__main__":
    with Server(Path(sys.argv[1]), int(sys.argv[2])) as server:
        print(f"{server.address}/")
        server.serve_forever()
