"""Changes genuine signed requests in small ways, and looks whether a server takes one that nobody has signed.

    genuine   requests that botocore has signed
    changes   small changes of a request
    meaning   what of a request a signature covers, read a second time and independently of the package
    attack    sends the changed requests, and counts

`python -m forgeries --help` has more.
"""
