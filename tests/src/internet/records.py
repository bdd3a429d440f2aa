"""What the world has seen, as lines of JSON that the test reads."""

import itertools
import json
import threading
import time


class Records:
    """The file of one side. Threads write to it, each line as a whole."""

    def __init__(self, path):
        self._file = open(path, "w", buffering=1)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.last = time.monotonic()

    def number(self):
        """A number by which later lines name the same connection."""
        return next(self._numbers)

    def write(self, seen, **fields):
        with self._lock:
            self._file.write(json.dumps({"seen": seen, **fields}) + "\n")
            self.last = time.monotonic()


def place(address):
    """An address and port as Rust reads it."""
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
