"""STS, as far as programs need it before they use DynamoDB: AssumeRole, GetSessionToken, GetCallerIdentity.

    service     answers requests: reads the form, finds out who asks, and calls the operation
    operations  the three operations
    parameters  the parameters of a form, with STS's limits
    tokens      credentials of sessions, which no server stores: the token holds all that is needed
    answers     answers and errors as XML

It is loaded at the first request that is a form: see `protocol.Wire`.
"""
