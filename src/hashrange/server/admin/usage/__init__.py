"""What programs use, on the admin plane.

    insights  GET /insights: the keys that are used most
"""
