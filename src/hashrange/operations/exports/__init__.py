"""Exports: a table at a moment, or its changes between two moments, into the objects of a bucket.

    export_table        begin an export
    export_description  its state and progress; the exports of the last 90 days
    filters             which items, and which of their attributes, an export shows

The work itself is done in the background: `tables.jobs.exports`.

Source: API reference; Developer Guide, "DynamoDB data export to Amazon S3"; ack-api-quirks of October 2026,
DDB-EXPORT-001 to 026.
"""
