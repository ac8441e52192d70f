"""Destinations: where a table's changes are sent as they are made.

    kinesis_destinations  Enable-, Disable-, Update- and DescribeKinesisStreamingDestination
"""
