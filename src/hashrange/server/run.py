"""Listening, serving and draining: `serve` for a process, `running` for a thread.

One event loop (uvloop if it is installed) runs all connections and the bodies of their operations. The
storage engine commits on its own thread and delivers outcomes through the loop, once per batch. Background
work runs on threads beside the loop (`server.sweeping`), so that no request waits for it. The admin plane, if
there is one, runs on the same loop (`server.admin.port`).

A database is served by one server at a time, because its engine delivers outcomes to one loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from hashrange import operations
from hashrange.clock import SystemClock
from hashrange.database import Caller, Database
from hashrange.files import descriptors
from hashrange.operations import REGISTRY
from hashrange.pace import garbage
from hashrange.protocol import Wire
from hashrange.rings import Audit
from hashrange.server import hangups, trace
from hashrange.server.access import Access
from hashrange.server.admin.port import Admin, AdminPort, Subject
from hashrange.server.frames import Frames
from hashrange.server.http import Connection
from hashrange.server.listening import Guests, Listener, bind, url_of
from hashrange.server.page import page
from hashrange.server.plane import Plane
from hashrange.server.settings import ServerSettings
from hashrange.server.sweeping import Sweeper
from hashrange.server.tls import Certificates

_ANYONE: Final = Caller()

_TICK_SECONDS: Final = 0.25
_SWITCH_SECONDS: Final = 0.001
# A bite sleeps this long between two of its parts, so that other threads get the interpreter's lock.
_SWEEP_PAUSE_SECONDS: Final = 0.00005
# The server's end waits this long for a job that waits for a bucket.
_JOBS_END_SECONDS_MAX: Final = 2.0
_DRAIN_POLL_SECONDS: Final = 0.01

_log = logging.getLogger(__name__)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A uvloop event loop, or asyncio's own if uvloop does not exist (Windows)."""
    if sys.platform != "win32":
        try:
            import uvloop
        except ImportError:  # pragma: no cover (a platform without uvloop's wheels)
            pass
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


class Broken(Exception):
    """A part of the server has ended that it cannot do without."""


class Server:
    """A listening server on an event loop: `start`, then `stop`, both on that loop.

    `owns_process`: the process does nothing else, so the server decides when the garbage collector runs.
    `certificates`: the data plane speaks TLS with them. `audit` is the log of who did what.
    """

    def __init__(
        self,
        database: Database,
        settings: ServerSettings,
        wire: Wire,
        loop: asyncio.AbstractEventLoop,
        admin: Admin | None = None,
        *,
        owns_process: bool = False,
        certificates: Certificates | None = None,
        audit: Audit | None = None,
    ) -> None:
        operations.load()
        connections_max = descriptors.connections_max(settings.connections_max)
        settings = replace(settings, connections_max=connections_max)
        self._loop = loop
        self._database = database
        self._owns_process = owns_process
        self._certificates = certificates
        self._settings = settings
        # The Date header shows the machine's time, even if the database has another clock, because clients
        # compare it with their own clock to correct the time in their signatures.
        self._clock = SystemClock()
        self._frames = Frames(self._clock.now())
        self._plane = Plane(database, wire, self._frames, settings, self._loop.call_soon)
        self._plane.trace_with(trace.tracer(database.observers.failed, audit))
        database.observers.number_connections(self._plane.number_connections)
        self._listener: Listener | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._stopping = asyncio.Event()
        self._tables = Sweeper("sweep", database.sweep_tables, _nothing, self._stopping)
        self._aside = [
            Sweeper(of, partial(database.sweep_aside, of), partial(database.release, of), self._stopping)
            for of in database.jobs.lanes
        ]
        self._sweepers = (self._tables, *self._aside)
        self._pausing = threading.Event()  # never set
        subject = Subject(database, self._plane, self.settle)
        self._admin = AdminPort(admin, subject, loop) if admin is not None else None

    async def start(self, host: str, port: int) -> str:
        """Listen, and return the endpoint's URL. Raises OSError if it cannot listen on the address."""
        plane = self._plane
        sockets = await bind(self._loop, host, port, self._settings.backlog_max)
        guests = Guests(
            "data",
            lambda: Connection(plane),
            lambda: len(plane.connections),
            self._settings.connections_max,
            self._refusal,
            self._certificates,
            self._settings.write_seconds_max,
        )
        self._listener = Listener(sockets, guests, self._loop)
        listening = [socket_.getsockname()[0] for socket_ in sockets]
        self._plane.access = Access(self._settings, listening=listening, host=host)
        self._database.deliver_on(self._deliver, self._loop.call_soon, self._loop.call_later, self._watch)
        self._database.background.pause = self._pause
        self._tick()
        for sweeper in self._sweepers:
            sweeper.start()
        if self._admin is not None:
            self._admin.open()
        self._listener.open()
        address, bound_port = sockets[0].getsockname()[:2]
        plane.endpoint_url = url_of(address, bound_port, secure=self._certificates is not None)
        return plane.endpoint_url

    async def stop(self) -> None:
        """Stop accepting connections, let running requests finish (for up to `drain_seconds_max`), and
        end."""
        self._stopping.set()
        self._plane.drain()
        if self._listener is not None:
            await self._listener.close()
        give_up = self._loop.time() + self._settings.drain_seconds_max
        while self._plane.connections and self._loop.time() < give_up:
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        self.abort()
        if self._admin is not None:
            await self._admin.close()
        if self._ticking is not None:
            self._ticking.cancel()
        await self._tables.end(None)
        await asyncio.gather(*(lane.end(_JOBS_END_SECONDS_MAX) for lane in self._aside))
        self._database.deliver_on(_call)

    def abort(self) -> None:
        """Cut off all connections."""
        self._plane.abort()

    def _refusal(self) -> bytes:
        self._plane.metrics.responded(503)
        return self._frames.refusal(503)

    def _deliver(self, callback: Callable[[], None]) -> None:
        self._plane.metrics.deliveries += 1
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed, so no client waits for an answer, but the outcomes still have to be handled.
            callback()

    def _watch(self, descriptor: int, callback: Callable[[], None] | None) -> None:
        if callback is None:
            self._loop.remove_reader(descriptor)
        else:
            self._loop.add_reader(descriptor, callback)

    def _tick(self) -> None:
        # This comes first, because an error below must not end the ticking, and all timeouts with it.
        self._ticking = self._loop.call_later(_TICK_SECONDS, self._tick)
        try:
            self._frames.tick(self._clock.now())
            self._plane.sweep(self._loop.time())
            if self._certificates is not None:
                self._certificates.look(self._loop.time())
            if self._owns_process and not self._database.works_aside():
                garbage.look_if_due()
        except Exception:
            self._plane.metrics.internal_errors += 1
            _log.exception("a periodic check failed")

    def _pause(self) -> None:
        """Let the event loop run in the middle of a bite."""
        self._pausing.wait(_SWEEP_PAUSE_SECONDS)

    async def settle(self) -> None:
        """Do all background work that is due, unless the server stops meanwhile."""
        while not self._stopping.is_set():
            if min([await sweeper.once() for sweeper in self._sweepers]) > 0:
                return


def _wire(database: Database, region: str, account_id: str, admin: Admin | None) -> Wire:
    guarded = admin is not None and bool(admin.door.token)
    return Wire(
        region=region,
        account_id=account_id,
        operations=REGISTRY,
        observers=database.observers,
        admin_url=admin.announced_url if admin is not None else None,
        page=page(admin.url if admin is not None else None, guarded=guarded),
    )


def serve(
    database: Database,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    region: str = _ANYONE.region,
    account_id: str = _ANYONE.account_id,
    settings: ServerSettings | None = None,
    admin: Admin | None = None,
    started: Callable[[str], None] | None = None,
    stopping: Callable[[str], None] | None = None,
    certificates: Certificates | None = None,
    audit: Audit | None = None,
    reload: Callable[[], None] | None = None,
) -> None:
    """Serve `database` until SIGTERM or SIGINT; must run on the main thread.

    `started` is called with the endpoint's URL, `stopping` with the signal's name. A second signal cuts off
    the requests that are still running. The caller closes the database. Raises OSError if it cannot listen on
    the address, and Broken when a thread of the server has ended with an error. `region` and `account_id` are
    for callers whose credentials name none. `admin` is the admin plane, whose socket is closed at the end.
    With `certificates` the data plane speaks TLS; `audit` is the log of who did what. SIGHUP calls `reload`,
    if there is something to read again; from a terminal that is gone it ends the server as SIGTERM does.
    """
    loop = new_event_loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        server = Server(
            database,
            settings or ServerSettings(),
            _wire(database, region, account_id, admin),
            loop,
            admin,
            owns_process=True,
            certificates=certificates,
            audit=audit,
        )
        runner.run(_serve(server, host, port, started, stopping, reload))


async def _serve(
    server: Server,
    host: str,
    port: int,
    started: Callable[[str], None] | None,
    stopping: Callable[[str], None] | None,
    reload: Callable[[], None] | None,
) -> None:
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()

    def on_signal(name: str) -> None:
        if stop.done():
            server.abort()
        else:
            stop.set_result(name)

    def on_hangup(name: str) -> None:
        """Unlike a second SIGTERM, a second SIGHUP cuts nothing off: a shell sends one after the kernel's."""
        if not stop.done():
            stop.set_result(name)

    for number in (signal.SIGTERM, signal.SIGINT):
        _on_signal(loop, number, on_signal)
    hangups.watch(loop, on_hangup, reload)
    ended: list[str] = []
    former = threading.excepthook

    def on_thread_ended(end: threading.ExceptHookArgs) -> None:
        """A thread of ours ends by an error, which nothing foresees. Without the one that commits, say, no
        write would ever end: so the server ends."""
        former(end)
        name = end.thread.name if end.thread is not None else ""
        if name.startswith("hashrange-"):
            ended.append(f"its thread {name} has ended by {end.exc_value!r}")
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(on_signal, ended[0])

    threading.excepthook = on_thread_ended
    try:
        endpoint_url = await server.start(host, port)
        garbage.arrange()
        # The event loop waits at most this long for a thread to release the interpreter's lock.
        sys.setswitchinterval(_SWITCH_SECONDS)
        if started is not None:
            started(endpoint_url)
        reason = await stop
        if stopping is not None:
            stopping(reason)
    finally:
        threading.excepthook = former
        await server.stop()
    if ended:
        raise Broken(f"The server has stopped, because {ended[0]}. The log has more; start it again.")


def _on_signal(
    loop: asyncio.AbstractEventLoop, number: signal.Signals, callback: Callable[[str], None]
) -> None:
    try:
        loop.add_signal_handler(number, callback, number.name)
    except NotImplementedError:  # pragma: no cover (Windows)
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(callback, number.name))


@contextlib.contextmanager
def running(
    database: Database,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    region: str = _ANYONE.region,
    account_id: str = _ANYONE.account_id,
    settings: ServerSettings | None = None,
    admin: Admin | None = None,
    certificates: Certificates | None = None,
    audit: Audit | None = None,
) -> Iterator[str]:
    """Serve `database` on a background thread for as long as the block runs; yields the endpoint's URL.

    Port 0 takes a free port. The caller closes the database. `admin`, `certificates` and `audit` are
    as in `serve`.
    """
    loop = new_event_loop()
    outcome: list[str | BaseException] = []
    server = Server(
        database,
        settings or ServerSettings(),
        _wire(database, region, account_id, admin),
        loop,
        admin,
        certificates=certificates,
        audit=audit,
    )
    ready = threading.Event()
    stop = asyncio.Event()

    async def run() -> None:
        try:
            try:
                outcome.append(await server.start(host, port))
            except BaseException as error:
                outcome.append(error)
                return
            finally:
                ready.set()
            await stop.wait()
        finally:
            await server.stop()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run())

    thread = threading.Thread(target=work, name="hashrange-server", daemon=True)
    thread.start()
    ready.wait()
    started = outcome[0]
    try:
        if isinstance(started, BaseException):
            raise started
        yield started
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)
        thread.join()


def _call(callback: Callable[[], None]) -> None:
    callback()


def _nothing() -> None:
    pass
