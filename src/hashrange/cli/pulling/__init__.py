"""Tables of an AWS account, or of another server, made here.

pull     the command `pull`
naming   which tables names, patterns and ARNs mean
masking  rules that hide values of items on the way
copying  one table: its definition, time to live, tags and items
"""
