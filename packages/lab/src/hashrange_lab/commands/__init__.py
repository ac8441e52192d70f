"""`hashrange costs`: what the requests of a running server cost.

costs    the commands
reports  their texts, and the same as JSON
serving  what --costs and --prices of the server mean
"""
