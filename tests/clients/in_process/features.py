"""feast's online store in DynamoDB: features are written, and read back for some entities."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, ValueType
from feast.types import Int64

import hashrange

CONFIG = """
project: shop
provider: local
registry: registry.db
online_store: {type: dynamodb, region: us-east-1}
offline_store: {type: file}
entity_key_serialization_version: 3
"""

with tempfile.TemporaryDirectory() as folder, hashrange.local() as database:
    (Path(folder) / "feature_store.yaml").write_text(CONFIG)
    frame = pd.DataFrame({
        "customer": [1, 2],
        "orders": [7, 9],
        "event_timestamp": [datetime.now(UTC)] * 2,
    })
    frame.to_parquet(Path(folder) / "orders.parquet")
    customer = Entity(name="customer", join_keys=["customer"], value_type=ValueType.INT64)
    source = FileSource(path=str(Path(folder) / "orders.parquet"), timestamp_field="event_timestamp")
    view = FeatureView(
        name="orders", entities=[customer], schema=[Field(name="orders", dtype=Int64)], source=source
    )
    store = FeatureStore(repo_path=folder)
    store.apply([customer, view])
    tables = database.execute("ListTables", {})["TableNames"]
    store.write_to_online_store("orders", frame)
    read = store.get_online_features(["orders:orders"], [{"customer": n} for n in (1, 2, 3)]).to_dict()
    store.teardown()
    left = database.execute("ListTables", {})["TableNames"]

print(json.dumps({"tables": tables, "orders": read["orders"], "left": left}))
