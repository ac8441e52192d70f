"""Who may do what: signatures, users, and the policies that permit and refuse requests.

    policies       IAM's policies as pure functions: documents and a request in, an explained decision out
    signatures     Signature Version 4
    roles          identities, and the roles that they may assume
    audit          the log of who did what
    rates          how many requests a key may make
    users          accounts, users, groups, roles and keys, from a file
    plain_yaml     YAML and JSON whose scalars all stay text
    keys           keys in the store, and the key file that encrypts them
    directory      all keys that a server knows at the moment
    sts            roles and sessions for programs: STS, as far as they need it
    judging        DynamoDB's requests as actions on resources, and the decision whether they are allowed
    admin          access keys on the admin plane
    pages          the page of the console about access
    commands       `audit`, `key`, `policy`, and the options of `serve`
    testing        policies in tests
    ring           what access adds to Hashrange
"""
