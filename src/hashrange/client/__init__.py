"""boto3 clients and resources over a `Database` of this process, without a socket.

connecting  `connect` and `resource`, which make clients and keep them with their database
transport   answers botocore's prepared requests in the place of a connection
"""

from hashrange.client.connecting import ENDPOINT_URL, connect, new_session, resource

__all__ = ["ENDPOINT_URL", "connect", "new_session", "resource"]
