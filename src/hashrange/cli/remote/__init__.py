"""What commands share that speak to a running server.

    asking    finds the server of a command, and asks its admin plane
    waiting   waits for work of a running server
    batches   puts items in batches
    progress  how far a command is
"""
