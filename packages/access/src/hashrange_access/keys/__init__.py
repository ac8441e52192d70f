"""Access keys that are kept in the store, and the key file that encrypts what must stay secret.

    sealing   the key file; encrypts the secrets of stored keys and the tokens of sessions
    records   the stored keys
    keyring   makes, lists, disables, rotates and deletes the stored keys of a server
"""
