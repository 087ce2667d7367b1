"""A shop to try the example with: `python3 examples/support-desk/shop.py` listens on 127.0.0.1:8010 and keeps nothing."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

ORDERS = {
    "10017": {"state": "delivered", "total": 42.5, "days": 3},
    "10018": {"state": "delivered", "total": 19.9, "days": 90},
    "10019": {"state": "sent", "total": 30.0, "days": 0},
}
EMAIL = "ana@example.com"


class Shop(BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        address = urlparse(self.path)
        order = ORDERS.get(address.path.removeprefix("/orders/"))
        if order and parse_qs(address.query).get("email") == [EMAIL]:
            self.answer(200, order)
        else:
            self.answer(404, {"error": "no such order"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        print(self.path, body.decode())
        self.answer(200, {"ok": True})


HTTPServer(("127.0.0.1", 8010), Shop).serve_forever()
