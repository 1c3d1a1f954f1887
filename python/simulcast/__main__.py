"""The command `simulcast`, which is also `python -m simulcast`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from ._simulcast import _clean_up_command, _run_command


def main() -> int:
    """Runs the command on `sys.argv` and returns its exit code."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # A signal that the caller ignores (nohup) stays ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # Python runs its handlers on the main thread, which therefore waits while another one works.
    codes: list[int] = []
    words = ["simulcast", *sys.argv[1:]]
    worker = threading.Thread(target=lambda: codes.append(_run_command(words)), daemon=True)
    worker.start()
    worker.join()
    return codes[0] if codes else 2


def _end(number: int, _frame: FrameType | None) -> None:
    _clean_up_command()
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
