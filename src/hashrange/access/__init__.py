"""Who may do what: signatures, users, and the policies that permit and refuse requests.

    policies    IAM's policies as pure functions: documents and a request in, an explained decision out
"""
