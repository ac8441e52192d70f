"""Resource-based policies: documents attached to tables and streams. They are kept and shown; they permit and
refuse nothing yet.

    resource_policies  GetResourcePolicy, PutResourcePolicy, DeleteResourcePolicy
    documents          checks a document, and gives it the form in which the service shows it
"""
