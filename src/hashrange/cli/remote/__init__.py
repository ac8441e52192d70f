"""What commands share that speak to a running server.

    asking    finds the server of a command, and asks its admin plane
    batches   puts items in batches
    progress  how far a command, or work of a running server, is
"""
