"""Resource-based policies: documents attached to tables and streams. They are kept and shown here; `access`
decides by them what a request may do.

    resource_policies  GetResourcePolicy, PutResourcePolicy, DeleteResourcePolicy
    documents          checks a document, and gives it the form in which the service shows it
    operators          the condition operators, and the form of their values
"""
