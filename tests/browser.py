"""A browser for tests: headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
WAIT = 60.0


def program() -> str | None:
    """Find the browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page in the browser: what it says can be read, and it can be pointed at and clicked."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, keep what happens meanwhile, and give the answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        kind, given = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(given["exceptionDetails"]))
        elif kind == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.problems.append(given["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file in a window of a given size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def ask(self, expression: str) -> Any:
        """Evaluate JavaScript, and give its value."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until JavaScript says true."""
        end = time.monotonic() + WAIT
        while self.ask(expression) is not True:
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def point_at(self, selector: str) -> None:
        """Move the mouse to the middle of the first element that a selector finds."""
        self._mouse("mouseMoved", selector)

    def click(self, selector: str) -> None:
        """Click the first element that a selector finds."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._mouse(kind, selector)

    def _mouse(self, kind: str, selector: str) -> None:
        # The page hears of its scrolling a frame later, and must not do so after the mouse has moved.
        place = self.ask(
            f"(async () => {{ const found = document.querySelector({json.dumps(selector)});"
            "found.scrollIntoView({block: 'center'});"
            "for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);"
            "const box = found.getBoundingClientRect();"
            "return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **button)


@contextmanager
def opened(profile: Path) -> Iterator[Page]:
    """Start a browser with a new profile, and end it afterwards."""
    import websocket

    found = program()
    assert found is not None
    command = [found, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            socket = websocket.create_connection(
                _address(profile, process), timeout=WAIT, suppress_origin=True
            )
            try:
                yield Page(socket)
            finally:
                socket.close()
        finally:
            process.terminate()
            process.wait(timeout=WAIT)


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until the browser says where it listens, and give the address of its first page."""
    file, end = profile / "DevToolsActivePort", time.monotonic() + WAIT
    while not file.exists() or not file.read_text().strip():
        assert process.poll() is None, f"the browser ended with code {process.returncode}"
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.05)
    port = file.read_text().split()[0]
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT) as answer:
            pages = [target for target in json.load(answer) if target["type"] == "page"]
        if pages:
            return str(pages[0]["webSocketDebuggerUrl"])
        assert time.monotonic() < end, "the browser opened no page"
        time.sleep(0.05)
