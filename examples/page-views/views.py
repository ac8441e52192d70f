"""Views of pages: taken in at once, counted by workers, exactly once each."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from hashrange_patterns import (
    Counters,
    Entities,
    Entity,
    Event,
    Table,
    TableEvents,
    TimedEvent,
    WindowedCounters,
    Worker,
)

TABLE = Table("page-views")
MINUTES_SHOWN = 30


class Page(Entity[str], pk="PAGE#{path}", sk="PAGE"):
    """A page; its counts are further attributes of the same item, which the counters keep."""

    path: str
    title: str
    text: str
    views: int = 0
    readers: int = 0


PAGES = [
    Page("tides", "How tides work", "The moon pulls, the water follows, and the harbour waits twice a day."),
    Page("bread", "Bread without a machine", "Flour, water, salt, time. Mostly time."),
    Page("lighthouses", "Living in a lighthouse", "Nobody visits by accident."),
    Page("maps", "Maps that lie", "Every flat map is wrong in its own way; choose the way."),
]


class Views:
    """Takes views in, counts them, and says how many there were."""

    def __init__(self, client: Any) -> None:
        item = ("PAGE#{name}", "PAGE")
        self.pages = Entities(client, TABLE)
        self.queue = TableEvents(client, TABLE, "views", waiting_max=20_000, shards=2)
        self._views = Counters(client, TABLE, item=item, attribute="views")
        # (a reader counts once, as long as the page exists)
        self._readers = Counters(client, TABLE, item=item, attribute="readers", remember_seconds=None)
        self._minutes = WindowedCounters(client, TABLE)

    def take_in(self, views: list[dict[str, str]]) -> None:
        """Put views into the queue. Raises QueueFull."""
        self.queue.put([json.dumps(view) for view in views])

    def count(self, bodies: list[str]) -> None:
        """Count views; a view that was counted before, by its id, is not counted again."""
        views = [json.loads(body) for body in bodies]
        self._views.count([Event(view["id"], {view["page"]: 1}) for view in views])
        self._readers.count([Event(f"{view['page']}#{view['reader']}", {view["page"]: 1}) for view in views])
        self._minutes.count(
            [TimedEvent(view["id"], datetime.fromisoformat(view["at"]), {view["page"]: 1}) for view in views]
        )

    def worker(self) -> Worker:
        """A worker that counts what is in the queue."""
        return Worker(self.queue, self.count, batch_max=30, wait_seconds=0.5)

    def statistics(self) -> list[dict[str, Any]]:
        """For each page its counts, and its views in each of the last minutes."""
        end = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        start = end - timedelta(minutes=MINUTES_SHOWN)
        found = self.pages.get_all([Page.key(page.path) for page in PAGES])
        return [
            {
                "path": page.path,
                "title": page.title,
                "text": page.text,
                "views": page.views,
                "readers": page.readers,
                "minutes": [bucket.count for bucket in self._minutes.series(page.path, start, end, "minute")],
            }
            for page in found.values()
        ]


class Workers:
    """Threads that count, until they are stopped."""

    def __init__(self, views: Views, number: int = 2) -> None:
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=views.worker().run, args=(self._stop,)) for _ in range(number)
        ]

    def __enter__(self) -> Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
