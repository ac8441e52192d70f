"""What programs use, on the admin plane.

    costs     GET and POST /costs: what requests consumed, for `hashrange costs`
    insights  GET /insights: the keys that are used most
"""
