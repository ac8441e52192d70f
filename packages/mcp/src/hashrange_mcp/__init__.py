"""Tools for agents, by the Model Context Protocol: `hashrange mcp`, and `python -m hashrange_mcp`.

    ring        what the package adds to Hashrange
    command     the command
    server      which tools there are, by what the endpoint is and whether it may be written to
    connection  the endpoint: requests of DynamoDB's API, and errors that say what to do next
    plane       what is asked of the admin plane of a Hashrange server: all paths are here
    values      attribute values as agents write and read them
    answers     answers that are bounded in bytes
    estimates   what a request costs, before it runs
    tools       the tools themselves

An endpoint is Amazon DynamoDB or any server of its API. A Hashrange server, which is known by its admin
plane, has more tools: the past, costs, advice, plans. Tools that write are listed with --write only."""
