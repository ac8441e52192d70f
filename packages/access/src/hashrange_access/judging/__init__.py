"""Judges DynamoDB's requests: which actions on which resources a request is, and whether policies allow them.

    acts        a request as actions on resources, each with its condition keys
    statements  the same for PartiQL
    batches     a batch of statements, in which one that is not allowed fails by itself
    attributes  the names of the attributes that a request uses
    judge       decides in the transaction of the request, with the policies of its tables
    accounts    requests to the tables of another account
    known       the names of all actions
    judging     the observer that judges a database's requests
    gate        verifies who signs the requests of a server: off, soft or strict
"""

from hashrange_access.judging.accounts import acting
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judge import Identified, judged
from hashrange_access.judging.judging import Judging, guard

__all__ = ["Gate", "Identified", "Judging", "acting", "guard", "judged"]
