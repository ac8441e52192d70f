"""IAM's policy language: documents and a request in, an explained decision out.

    documents   reads a policy document: `parse`
    patterns    wildcards and policy variables
    conditions  the condition operators
    requests    who asks for what: `Principal`, `Request`
    evaluation  decides: `evaluate`, `Attached`, `Decision`
    errors      the error of a document that is no policy
    linting     what is wrong or has no effect in a document: `lint`
    suggesting  the smallest policy for what was recorded: `Uses`

Pure functions: no storage, no clock, no knowledge of DynamoDB except the names that `linting` knows.
Sources: IAM User Guide, "IAM JSON policy elements reference", "Policy evaluation logic", "Cross-account
policy evaluation logic", "Permissions boundaries for IAM entities", "Single-valued vs. multivalued context
keys".
"""

from hashrange_access.policies.documents import Policy, PolicyError, Statement, parse
from hashrange_access.policies.evaluation import Attached, Decision, evaluate
from hashrange_access.policies.linting import Finding, lint
from hashrange_access.policies.requests import Principal, Request
from hashrange_access.policies.suggesting import Uses

__all__ = [
    "Attached",
    "Decision",
    "Finding",
    "Policy",
    "PolicyError",
    "Principal",
    "Request",
    "Statement",
    "Uses",
    "evaluate",
    "lint",
    "parse",
]
