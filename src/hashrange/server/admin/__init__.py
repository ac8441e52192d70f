"""The admin plane: JSON over HTTP for operators, tests and monitoring systems.

    port         the socket; loads the rest of the plane at the first connection
    application  the application made of the endpoints, its description of itself, and its connections
    guard        who may use the admin plane
    roles        who may do what on the admin plane
    aside        work of endpoints that may take long, on a thread
    status       GET /health and /metrics
    tables       GET /v1/tables
    attention    whether somebody looks at what is counted
    insights     GET /v1/insights: the keys that are used most
    clock        GET and POST /v1/clock
    faults       GET, POST and DELETE /v1/faults
    travel       the past of tables
    backups      backups, for `hashrange backup` and `hashrange restore`
    data         DynamoDB's operations
    destinations  the Kinesis destinations of the tables
    checkpoints  checkpoints, for `hashrange copy`

`cli.admin` mounts the endpoints, so that no module here has to know all of them. This file imports nothing,
because only `port` is loaded with the server.
"""
