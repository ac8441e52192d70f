"""Judges DynamoDB's requests: which actions on which resources a request is, and whether policies allow them.

    act         one action on one resource, with its condition keys
    acts        those of a request
    statements  the same for PartiQL
    batches     a batch of statements, in which one that is not allowed fails by itself
    attributes  the names of the attributes that a request uses
    judge       decides an act in the transaction of its request, with the policies of the tables
    accounts    requests to the tables of another account
    known       the names of all actions
    judging     the observer that judges a database's requests
    gate        verifies who signs the requests of a server: off, soft or strict
"""
