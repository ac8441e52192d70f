"""IAM's policy language: documents and a request in, an explained decision out.

    documents   reads a policy document: `parse`
    patterns    wildcards and policy variables
    conditions  the condition operators
    requests    who asks for what: `Principal`, `Request`
    evaluation  decides: `evaluate`, `Attached`, `Decision`
    errors      the error of a document that is not a policy
    linting     what is wrong or has no effect in a document: `lint`
    suggesting  the smallest policy for what was recorded: `Uses`

Pure functions: no storage, no clock, no knowledge of DynamoDB except the names that `linting` knows.
Sources: IAM User Guide, "IAM JSON policy elements reference", "Policy evaluation logic", "Cross-account
policy evaluation logic", "Permissions boundaries for IAM entities", "Single-valued vs. multivalued context
keys".
"""
