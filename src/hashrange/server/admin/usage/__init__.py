"""What programs use, on the admin plane.

insights  GET /v1/insights: the keys that are used most
"""
