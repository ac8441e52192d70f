"""The server: DynamoDB's API over HTTP/1.1, and the admin plane beside it.

    settings  every limit and timeout, in one frozen value
    frames    answers as HTTP bytes
    page      what a browser shows that opens the data plane's address
    access    refuses requests of web pages, by their Host and Origin headers
    tls       the certificate of the server
    listening  accepts connections, up to a limit
    http      one object per connection: parse, dispatch, answer in order, stop reading when too much waits
    plane     what all connections share, and one request with its answer
    trace     a log line for each request, if logging of requests is on
    metrics   counters, and their text for Prometheus
    admin     the admin plane: its port, and what is loaded behind it when somebody connects
    allocation  the memory that the C library keeps for later
    sweeping  the threads of the background work
    hangups   SIGHUP: files are read again, or the terminal is gone
    run       listen, serve, drain; `serve` for a process, `running` for a thread

The only package that knows sockets and asyncio. Refuses to know what an operation does.
"""

from hashrange.server.admin.port import Admin
from hashrange.server.run import Broken, running, serve
from hashrange.server.settings import ServerSettings
from hashrange.server.trace import LOGGER as REQUESTS_LOGGER

__all__ = ["REQUESTS_LOGGER", "Admin", "Broken", "ServerSettings", "running", "serve"]
