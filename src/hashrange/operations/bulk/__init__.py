"""Bulk operations: put the objects of a bucket into an existing table.

    start_bulk_put_items   begin a bulk operation
    bulk_description       its state and progress; the bulk operations of the last 90 days
    cancel_bulk_operation  end a bulk operation early
    rows                   the write of a row

The work itself is done in the background: `tables.jobs.bulk`.

Source: API reference; Developer Guide, "Bulk put items", as far as its pages were available. Other facts are
marked [assumed]; docs/bulk.md lists them.
"""
