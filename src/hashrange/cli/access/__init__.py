"""The parts of the command line that concern access.

    serving  the gate of a server, from --auth and --users
    policy   `hashrange policy`: examine policies without a server
    tls      `hashrange tls`: certificates
"""
