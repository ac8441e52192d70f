"""What commands share that speak to a running server.

    asking      finds the server of a command, and asks its admin plane
    past        the past of tables
    signing     signs requests to an admin plane
    connecting  clients of a server's API: the options that name it, errors in a line
    clients     boto3 clients of a server, or of AWS
    batches     puts items in batches
    progress    how far a command, or work of a running server, is
"""
