"""The server: DynamoDB's API over HTTP/1.1.

    settings  every limit and timeout, in one frozen value
    frames    answers as HTTP bytes
    http      one object per connection: parse, dispatch, answer in order, push back
    run       listen, serve, sweep, drain; `serve` for a process, `running` for a thread

The only package that knows sockets and asyncio. Refuses to know what an operation does.
"""

from hashrange.server.run import running, serve
from hashrange.server.settings import ServerSettings

__all__ = ["ServerSettings", "running", "serve"]
