"""What a table is.

    table        the definition of a table and of its indexes, as it is stored
    catalog      tables by name: create, open, change, remove
    states       how CREATING, UPDATING and DELETING end
    replicas     what one table is in each of its regions
"""
