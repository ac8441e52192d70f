"""Deliveries: the changes of tables, sent to the Kinesis data streams that are their destinations.

    outboxes         the changes that wait for a destination, and how far it has got; the ends of its states
    messages         a change in the JSON form that DynamoDB sends to Kinesis
    delivery_runner  sends the changes, in the background

A change is appended to the table's outbox in the transaction of the item. Decision 25 says why deliveries use
neither the streams that clients read nor the triggers.
"""
