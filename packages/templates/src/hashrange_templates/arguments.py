"""The arguments of Terraform's resources of DynamoDB, in the forms of `forms`.

Source: the AWS provider's pages "aws_dynamodb_table" and, for each resource that adds to a table, its own.
"""

from __future__ import annotations

from typing import Final

from hashrange_templates.forms import Form, Idle

_COMPUTED: Final = Idle("the service makes it")
_RESTORED: Final = Idle("the table is not restored; it is empty", told=True)
_BESIDE: Final[Form] = {
    "arn": _COMPUTED,
    "id": _COMPUTED,
    "region": Idle("tables are made in the region of the database"),
    "timeouts": Idle("it concerns Terraform"),
}
_CEILING: Final = [{"max_read_request_units": int, "max_write_request_units": int}]
_WARM: Final = [{"read_units_per_second": int, "write_units_per_second": int}]
_KEY_SCHEMA: Final = [{"attribute_name": str, "key_type": str}]
_PROJECTION: Final = [{"projection_type": str, "non_key_attributes": [str]}]
_PROJECTED: Final = _PROJECTION[0]

TABLE: Final[Form] = _BESIDE | {
    "name": str,
    "attribute": [{"name": str, "type": str}],
    "billing_mode": str,
    "deletion_protection_enabled": bool,
    "global_secondary_index": [
        _PROJECTED
        | {
            "name": str,
            "hash_key": str,
            "range_key": str,
            "key_schema": _KEY_SCHEMA,
            "on_demand_throughput": _CEILING,
            "read_capacity": int,
            "write_capacity": int,
            "warm_throughput": _WARM,
        }
    ],
    "global_table_witness": [{"region_name": str}],
    "hash_key": str,
    "import_table": Idle("items are not imported; use load, or ImportTable", told=True),
    "key_schema": _KEY_SCHEMA,
    "local_secondary_index": [_PROJECTED | {"name": str, "range_key": str}],
    "on_demand_throughput": _CEILING,
    "point_in_time_recovery": [{"enabled": bool, "recovery_period_in_days": int}],
    "range_key": str,
    "read_capacity": int,
    "replica": [
        {
            "region_name": str,
            "kms_key_arn": str,
            "consistency_mode": str,
            "arn": _COMPUTED,
            "stream_arn": _COMPUTED,
            "stream_label": _COMPUTED,
            "deletion_protection_enabled": Idle("it concerns another region", told=True),
            "point_in_time_recovery": Idle("all replicas are one table here"),
            "propagate_tags": Idle("all replicas are one table here"),
        }
    ],
    "restore_backup_arn": _RESTORED,
    "restore_date_time": _RESTORED,
    "restore_source_name": _RESTORED,
    "restore_source_table_arn": _RESTORED,
    "restore_to_latest_time": _RESTORED,
    "server_side_encryption": [{"enabled": bool, "kms_key_arn": str}],
    "stream_arn": _COMPUTED,
    "stream_enabled": bool,
    "stream_label": _COMPUTED,
    "stream_view_type": str,
    "table_class": str,
    "tags": {str: str},
    "tags_all": {str: str},
    "ttl": [{"attribute_name": str, "enabled": bool}],
    "warm_throughput": _WARM,
    "write_capacity": int,
}

RESOURCES: Final[dict[str, Form]] = {
    "aws_dynamodb_table": TABLE,
    "aws_dynamodb_table_item": _BESIDE | {"table_name": str, "item": str, "hash_key": str, "range_key": str},
    "aws_dynamodb_global_secondary_index": _BESIDE
    | _PROJECTED
    | {
        "table_name": str,
        "index_name": str,
        "key_schema": [_KEY_SCHEMA[0] | {"attribute_type": str}],
        "projection": _PROJECTION,
        "on_demand_throughput": _CEILING,
        "provisioned_throughput": [{"read_capacity_units": int, "write_capacity_units": int}],
        "warm_throughput": _WARM,
    },
    "aws_dynamodb_vector_index": _BESIDE
    | {
        "table_name": str,
        "index_name": str,
        "dimensions": int,
        "distance_function": str,
        "projection": _PROJECTION,
        "search_schema": [{"attribute_name": str, "attribute_type": str, "type": str}],
        "vector_attribute": [{"attribute_name": str}],
    },
    "aws_dynamodb_tag": _BESIDE | {"resource_arn": str, "key": str, "value": str},
    "aws_dynamodb_contributor_insights": _BESIDE | {"table_name": str, "index_name": str, "mode": str},
    "aws_dynamodb_kinesis_streaming_destination": _BESIDE
    | {"table_name": str, "stream_arn": str, "approximate_creation_date_time_precision": str},
    "aws_dynamodb_resource_policy": _BESIDE
    | {
        "resource_arn": str,
        "policy": str,
        "confirm_remove_self_resource_access": Idle("nobody loses access here"),
        "revision_id": _COMPUTED,
    },
}
