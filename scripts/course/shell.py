"""A bash login shell on a real pseudo terminal, driven as a person drives it.

The prompt is set to control characters around the last exit code. It is exported, so it stays
the same in a shell on a compute node that `srun … --pty bash -l` opens.
"""

import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pexpect

_PROMPT = re.compile("\x1e(\\d+)\x1f")
# TERM=dumb: no colors, no bracketed paste. HISTFILE: nothing of this lands in the home.
_PREPARE = (
    "export HISTFILE=/dev/null TERM=dumb "
    """PROMPT_COMMAND='PS1=$(printf "\\036%s\\037" "$?")'"""
)
_WIDTH = 1000  # columns: wide enough that no line is wrapped


class ShellError(Exception):
    """The shell did not do what was waited for. The text tells what it printed."""


def _hear_ctrl_c() -> None:
    """What is started in the background ignores Ctrl+C, and so would the shell and its programs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Shell:
    """One open terminal window. `recording` receives all that appears in it."""

    def __init__(self, argv: Sequence[str], recording: Path):
        self._file = recording.open("a", encoding="utf-8")
        self._child = pexpect.spawn(
            argv[0],
            list(argv[1:]),
            encoding="utf-8",
            dimensions=(50, _WIDTH),
            echo=False,
            preexec_fn=_hear_ctrl_c,
        )
        self._child.delaybeforesend = None
        self._child.logfile_read = self._file
        self.run(_PREPARE, timeout=60)

    def run(self, command: str, timeout: float) -> tuple[str, int]:
        """Type a command, and return its output and its exit code (timeout in seconds)."""
        self.type(command)
        return self.finish(timeout)

    def type(self, command: str) -> None:
        """Type a command and press Enter."""
        self._typed = command
        self._output = ""
        self._child.sendline(command)

    def finish(self, timeout: float) -> tuple[str, int]:
        """Wait for the prompt, and return the output and the exit code."""
        self.wait_until(lambda _: False, timeout, until_prompt=True)
        output, code = _PROMPT.split(self._output)[:2]
        return self._clean(output), int(code)

    def wait_until(
        self, enough: Callable[[str], bool], timeout: float, *, until_prompt: bool = False
    ) -> str:
        """Read until `enough` says so of the output, and return it.

        Raises ShellError where the command ends before that, or the time is over.
        """
        end = time.monotonic() + timeout
        while True:
            if _PROMPT.search(self._output):
                if until_prompt:
                    return self._output
                raise ShellError(f"'{self._typed}' ended by itself:\n{self._clean(self._output)}")
            if enough(self._clean(self._output)):
                return self._clean(self._output)
            if time.monotonic() > end:
                raise ShellError(
                    f"'{self._typed}' took longer than {timeout:.0f} s and had printed:\n"
                    f"{self._clean(self._output)}"
                )
            try:
                self._output += self._child.read_nonblocking(65536, timeout=0.5)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                raise ShellError(
                    f"The shell ended at '{self._typed}':\n{self._clean(self._output)}"
                ) from None

    def press_ctrl_c(self) -> None:
        """Press Ctrl+C and wait for the prompt."""
        self._child.sendcontrol("c")
        self.wait_until(lambda _: False, 60, until_prompt=True)

    def close(self) -> None:
        self._child.close(force=True)
        self._file.close()

    def _clean(self, output: str) -> str:
        """The output without the echo of what was typed, and with plain line ends."""
        text = output.replace("\r\n", "\n").lstrip("\r")
        return text.removeprefix(self._typed + "\n")
