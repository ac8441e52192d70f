"""The error of a document that is not a policy."""


class PolicyError(ValueError):
    """A document that is not a policy. The text names the policy, the statement and the fault."""
