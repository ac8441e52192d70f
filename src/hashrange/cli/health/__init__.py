"""Commands that check the health of this machine's installation and of its server.

    doctor       the command `doctor`: all checks, one line each
    healthcheck  the command `healthcheck`: whether the server of this machine serves
    findings     what a check found
    installed    Python, libraries, the form of the hot path
    reachable    the environment of SDKs, the server, its port
    disk         the data directory, its file system, how fast the disk syncs
"""
