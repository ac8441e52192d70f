"""The metrics of a running sync, in Prometheus' text format, over HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from hashrange.server.metrics import CONTENT_TYPE, Family, lines_of
from hashrange_sync.stored.status import PairStatus
from hashrange_sync.sync import Sync

_FAMILIES: Final = (
    ("lag_seconds", "gauge", "How old the newest change was when it was passed on.", "lag"),
    ("cycle_timestamp_seconds", "gauge", "When the pair was last looked at.", "at"),
    ("writes_to_cloud_total", "counter", "Items written to the cloud.", "to_cloud"),
    ("writes_to_edge_total", "counter", "Items written to the edge.", "to_edge"),
    ("conflicts_total", "counter", "Entries of the log of conflicts.", "conflicts"),
    ("records_total", "counter", "Stream records read.", "records"),
    ("gaps_total", "counter", "How often a stream no longer had all changes.", "gaps"),
    ("throttled_total", "counter", "Throttled requests to the cloud.", "throttled"),
    ("cloud_units_total", "counter", "Capacity units used in the cloud.", "units"),
)


def text_of(statuses: list[PairStatus]) -> str:
    """All metrics of pairs."""
    families: list[Family] = [
        (
            f"hashrange_sync_{name}",
            kind,
            about,
            [("", {"pair": status.name}, getattr(status, field)) for status in statuses],
        )
        for name, kind, about, field in _FAMILIES
    ]
    about = "1 while the pair cannot go on."
    families += [
        (
            "hashrange_sync_stopped",
            "gauge",
            about,
            [("", {"pair": status.name}, int(status.state == "stopped")) for status in statuses],
        )
    ]
    return "".join(f"{line}\n" for line in lines_of(families))


def serve(sync: Sync, port: int) -> ThreadingHTTPServer:
    """Serve the metrics on this machine, at /metrics. Raises OSError if the port is in use."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = text_of([pair.current() for pair in sync.pairs]).encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
            """Requests are not logged."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
