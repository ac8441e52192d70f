"""Imports: new tables from the objects of a bucket.

    import_table        begin an import
    import_description  its state and progress; the imports of the last 90 days

The work itself is done in the background: `tables.jobs.imports`.

Source: API reference; Developer Guide, "DynamoDB data import from Amazon S3"; ack-api-quirks of October 2026,
DDB-IMPORT-001 to 020.
"""
