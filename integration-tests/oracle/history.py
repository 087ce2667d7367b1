"""The oracle's log: one JSON object a line, handed to the kernel before the client takes its next step.

The line number is the order of everything that was observed: what stands in an earlier line happened before what a
later line says was sent.
"""

import json
import os
import threading
import time


class History:
    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.violations = 0

    def write(self, what, **fields):
        with self._lock:
            if what == "violation":
                self.violations += 1
            at = round(time.monotonic() - self._began, 4)
            line = json.dumps({"what": what, "at": at, **fields}, ensure_ascii=False, separators=(",", ":"))
            data = line.encode() + b"\n"
            # A write to a file is whole or fails; without a buffer nothing of ours can get lost.
            if os.write(self._file, data) != len(data):
                raise OSError("the log could not be written")

    def violation(self, kind, **fields):
        self.write("violation", kind=kind, **fields)


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
