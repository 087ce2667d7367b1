"""HTTP/1.1 by hand, because a test of crashes has to tell a body that ended from one that was interrupted."""

import json
import socket


class NotSent(Exception):
    """Nobody listened: the request cannot have had an effect."""


class Broken(Exception):
    """The connection broke: what was asked may or may not have happened."""


class Response:
    def __init__(self, sock):
        self._sock = sock
        self._buffer = b""
        head = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.status = int(head[0].split(" ")[1])
        pairs = (line.split(":", 1) for line in head[1:] if line)
        self.headers = {name.strip().lower(): value.strip() for name, value in pairs}

    def _more(self):
        try:
            data = self._sock.recv(65536)
        except OSError as error:
            raise Broken(repr(error)) from error
        if not data:
            raise Broken("the connection was closed")
        self._buffer += data

    def _until(self, mark):
        while mark not in self._buffer:
            self._more()
        text, self._buffer = self._buffer.split(mark, 1)
        return text

    def _exactly(self, length):
        while len(self._buffer) < length:
            self._more()
        data, self._buffer = self._buffer[:length], self._buffer[length:]
        return data

    def pieces(self):
        """The body as it comes. Ends only where the service ended it; anything else is `Broken`."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(self._until(b"\r\n").split(b";")[0], 16)
                data = self._exactly(size)
                self._exactly(2)
                if size == 0:
                    return
                yield data
        elif self.status != 204:
            yield self._exactly(int(self.headers.get("content-length", "0")))

    def json(self):
        return json.loads(b"".join(self.pieces()) or b"null")

    def close(self):
        self._sock.close()


def send(address, method, path, headers=(), body=None, timeout=30.0):
    """Sends one request over a connection of its own and reads the answer's head."""
    try:
        sock = socket.create_connection(address, timeout=timeout)
    except OSError as error:
        raise NotSent(repr(error)) from error
    try:
        sock.settimeout(timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {address[0]}:{address[1]}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        payload = b"" if body is None else body
        if body is not None or method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
        try:
            sock.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + payload)
        except OSError as error:
            raise Broken(repr(error)) from error
        return Response(sock)
    except BaseException:
        sock.close()
        raise
