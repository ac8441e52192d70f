"""The admin plane: what an operator, a test or a monitoring system asks of a server, as JSON over HTTP.

    port         the socket, and how the plane behind it is loaded when somebody first connects
    application  the plane: endpoints made one application, that describes itself, and its connections
    status       GET /health, /tables and /metrics
    clock        GET and POST /clock

`cli.admin` mounts the endpoints, so that nothing here has to know of all of them. Nothing is imported here:
only `port` is loaded with the server.
"""
