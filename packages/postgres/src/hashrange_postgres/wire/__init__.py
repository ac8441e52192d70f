"""How the engine speaks to PostgreSQL.

    opening           the first connection: each reason why there is none has its own message
    probe             whether a server has what the engine needs
    connections       connections, and the types and errors of the driver
    loop_connections  connections on which the event loop waits for answers
    statements        the statements of the schema, and their arguments
    arrays            arrays in PostgreSQL's binary form
"""
