"""Watches `/readyz` from outside: how long after a process was started does the service take requests?"""

import threading
import time

import raw_http

POLL = 0.01
LIMIT = 30.0


class Readiness:
    def __init__(self, address):
        self._address = address
        self._ready = threading.Event()
        self.times = []

    def starting(self, counts=True):
        """Waits until the process that is being started is ready; yields the seconds, or None after the limit."""
        self._ready.clear()
        began = time.monotonic()
        while time.monotonic() - began < LIMIT:
            if self._answers():
                taken = time.monotonic() - began
                if counts:
                    self.times.append(taken)
                self._ready.set()
                return taken
            time.sleep(POLL)
        return None

    def wait(self, limit):
        """For a client that lost its connection: until the service is ready again, as far as we know."""
        time.sleep(POLL)
        return self._ready.wait(limit)

    def _answers(self):
        try:
            # Until everything is up the port may be open without anybody behind it.
            response = raw_http.send(self._address, "GET", "/readyz", timeout=1.0)
        except (raw_http.NotSent, raw_http.Broken):
            return False
        response.close()
        return response.status == 200

    def summary(self):
        ordered = sorted(self.times)
        if not ordered:
            return {"starts": 0}
        rank = max(0, -(-len(ordered) * 99 // 100) - 1)
        return {
            "starts": len(ordered),
            "median": round(ordered[len(ordered) // 2], 3),
            "p99": round(ordered[rank], 3),
            "max": round(ordered[-1], 3),
        }
