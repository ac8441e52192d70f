"""What the live pages of one server share. It is made when the first of them is opened."""

from __future__ import annotations

from hashrange.server.admin.application import subject_of
from hashrange.server.admin.port import Subject
from hashrange_console.live.events import EventSource, Stream, Streams
from hashrange_console.live.feed import Feed
from hashrange_console.reach import View, console, session_of


class Live:
    """The streams and the feed of requests of one server."""

    def __init__(self, subject: Subject) -> None:
        self.streams = Streams()
        self.feed = Feed(subject)


def live_of(view: View) -> Live:
    """What the live pages of the view's server share."""
    state = view.request.app.state
    if not hasattr(state, "live"):
        state.live = Live(subject_of(view.request))
    live: Live = state.live
    return live


def stream(view: View, source: EventSource) -> Stream:
    """The stream of a source, for the view's browser."""
    plane, entry = subject_of(view.request).plane, console(view.request).entry
    session = session_of(view.request)

    def is_over() -> bool:
        return plane.draining or not entry.knows(session, uses=False)

    return Stream(live_of(view).streams, session, source, is_over)
