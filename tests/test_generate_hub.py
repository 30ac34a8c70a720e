"""The local hub: it offers one model, under its own name, and only for reading."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from course.hub import HubServer, list_files, load_listing, make_model


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    make_model()
    with HubServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(hub: HubServer, path: str, method: str = "GET", **headers: str):
    request = urllib.request.Request(f"http://127.0.0.1:{hub.server_port}{path}", method=method)
    for name, value in headers.items():
        request.add_header(name, value)
    return urllib.request.urlopen(request, timeout=30)


def file_path(hub: HubServer, name: str) -> str:
    return f"/{hub.listing['model']}/resolve/{hub.listing['revision']}/{name}"


def test_the_listing_is_of_the_files_that_are_there(hub):
    assert list_files(hub.listing["model"], hub.folder) == load_listing()


def test_a_file_is_served_whole_and_from_a_byte_on(hub):
    content = (hub.folder / "config.json").read_bytes()
    whole = ask(hub, file_path(hub, "config.json"))
    assert (whole.status, whole.read()) == (200, content)
    rest = ask(hub, file_path(hub, "config.json"), Range="bytes=100-")
    assert (rest.status, rest.read()) == (206, content[100:])
    assert rest.headers["Content-Range"] == f"bytes 100-{len(content) - 1}/{len(content)}"


def test_it_listens_on_the_loopback_address_only(hub):
    assert hub.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "path",
    [
        "/Qwen/Qwen2.5-0.5B-Instruct/resolve/main/config.json",
        "/api/models/Qwen/Qwen2.5-0.5B-Instruct/revision/main",
        "/HuggingFaceTB/SmolLM2-135M-Instruct/resolve/main/../../../listing.json",
        "/HuggingFaceTB/SmolLM2-135M-Instruct/resolve/main/%2e%2e/%2e%2e/listing.json",
        "/HuggingFaceTB/SmolLM2-135M-Instruct/resolve/other/config.json",
        "/",
    ],
)
def test_what_it_does_not_offer_is_not_found(hub, path):
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(hub, path)
    assert error.value.code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(hub, method):
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(hub, file_path(hub, "config.json"), method)
    assert error.value.code == 501
