"""The parts of the command line that concern access.

    serving  the gate of a server, from --auth and --users
    policy   `hashrange policy`: examine policies without a server
    audit    `hashrange audit`: check the log of who did what
    tls      `hashrange tls`: certificates
"""
