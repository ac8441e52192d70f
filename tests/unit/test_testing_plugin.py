"""The pytest plugin, in runs of its own: off until it is asked, its fixtures, marks, options and scopes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from plugin_runs import run_pytest, run_pytest_in_a_process

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
import boto3

CLIENT = boto3.client("dynamodb", region_name="us-east-1")

def names():
    return CLIENT.list_tables()["TableNames"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shared.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --strict-markers\n")
    return tmp_path


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"hashrange": "hashrange.testing.plugin"}


def test_it_is_off_until_it_is_asked(folder: Path) -> None:
    (folder / "test_off.py").write_text(
        """
import sys

def test_off():
    loaded = {name for name in sys.modules if name.startswith(("hashrange", "boto"))}
    assert loaded == {"hashrange", "hashrange.testing", "hashrange.testing.plugin"}
"""
    )
    assert "1 passed" in run_pytest_in_a_process(folder)


def test_each_test_has_a_database_of_its_own(folder: Path) -> None:
    (folder / "test_own.py").write_text(
        """
import pytest
from shared import names

@pytest.mark.parametrize("number", range(3))
def test_own(dynamodb, dynamodb_client, dynamodb_resource, dynamodb_streams_client, number):
    assert names() == []
    dynamodb.create_table("orders", "pk", stream="KEYS_ONLY")
    dynamodb_client.put_item(TableName="orders", Item={"pk": {"S": "a"}})
    assert dynamodb_resource.Table("orders").get_item(Key={"pk": "a"})["Item"] == {"pk": "a"}
    assert len(dynamodb_streams_client.list_streams(TableName="orders")["Streams"]) == 1
    assert names() == ["orders"]
"""
    )
    assert "3 passed" in run_pytest(folder)
    assert "3 passed" in run_pytest_in_a_process(folder, "-n", "2")


def test_marks_declare_tables(folder: Path) -> None:
    (folder / "items.csv").write_text("pk,n:N\\na,1\\n".replace("\\n", "\n"))
    (folder / "test_marks.py").write_text(
        """
import pytest
from shared import CLIENT, names

pytestmark = pytest.mark.dynamodb("everywhere", "pk")

@pytest.mark.dynamodb("orders", "pk", indexes={"by-n": "n:N"}, items="items.csv")
class TestClass:
    @pytest.mark.dynamodb("more", "pk", items=[{"pk": "x"}])
    def test_all(self):
        assert names() == ["everywhere", "more", "orders"]
        items = CLIENT.scan(TableName="orders", IndexName="by-n")["Items"]
        assert items == [{"pk": {"S": "a"}, "n": {"N": "1"}}]
        assert CLIENT.scan(TableName="more")["Count"] == 1

    def test_some(self, dynamodb):
        assert names() == ["everywhere", "orders"]

def test_one():
    assert names() == ["everywhere"]
"""
    )
    assert "3 passed" in run_pytest(folder)
    assert "@pytest.mark.dynamodb(" in run_pytest(folder, "--markers")


def test_marks_that_name_no_files_are_reported(folder: Path) -> None:
    (folder / "test_wrong.py").write_text(
        """
import pytest

@pytest.mark.dynamodb(tables=[{"name": "orders", "key": "pk"}])
def test_list():
    pass

@pytest.mark.dynamodb(tables={"orders": "pk"})
def test_mapping():
    pass

@pytest.mark.dynamodb(tables=1)
def test_number():
    pass
"""
    )
    output = run_pytest(folder, status=1)
    assert "3 errors" in output
    for given in ("[{'name': 'orders', 'key': 'pk'}]", "{'orders': 'pk'}", "1"):
        assert f"DeclarationError: {given} is neither a file nor a list of files; write" in output


def test_a_seed_is_called_once_and_every_test_starts_from_it(folder: Path) -> None:
    (folder / "test_seed.py").write_text(
        """
import pytest
from shared import CLIENT

seeded = []

@pytest.fixture(scope="module")
def dynamodb_seed():
    def seed(database):
        seeded.append(database)
        database.create_table("orders", "pk")
        CLIENT.put_item(TableName="orders", Item={"pk": {"S": "by a client"}})
        database.load("orders", [{"pk": str(n)} for n in range(100)])
    return seed

@pytest.mark.parametrize("number", range(4))
def test_starts_there(dynamodb, number):
    assert CLIENT.scan(TableName="orders")["Count"] == 101
    CLIENT.delete_table(TableName="orders")
    assert len(seeded) == 1
"""
    )
    assert "4 passed" in run_pytest(folder)


def test_options_of_the_ini_file(folder: Path) -> None:
    (folder / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\ndynamodb_scope = module\ndynamodb_region = eu-west-3\n"
        "dynamodb_account_id = 111122223333\ndynamodb_now = 2026-01-01\n"
        "dynamodb_other_services = allow\n"
    )
    (folder / "test_options.py").write_text(
        """
import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
import pytest

pytestmark = pytest.mark.dynamodb("Things", "id")

def test_first(dynamodb_client, dynamodb_clock):
    table = dynamodb_client.describe_table(TableName="Things")["Table"]
    assert table["TableArn"] == "arn:aws:dynamodb:eu-west-3:111122223333:table/Things"
    assert table["CreationDateTime"].isoformat()[:10] in ("2026-01-01", "2025-12-31")
    assert dynamodb_clock.frozen
    dynamodb_client.put_item(TableName="Things", Item={"id": {"S": "kept"}})

def test_second(dynamodb_client):
    assert dynamodb_client.scan(TableName="Things")["Count"] == 1
    unsigned = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    s3 = boto3.client("s3", region_name="eu-west-3", config=unsigned, endpoint_url="http://nowhere.test.invalid")
    with pytest.raises(EndpointConnectionError):
        s3.list_buckets()
"""
    )
    assert "2 passed" in run_pytest(folder)


def test_a_server_for_code_in_other_processes(folder: Path) -> None:
    (folder / "test_server.py").write_text(
        """
import os
import subprocess
import sys
import pytest

PROGRAM = '''
import boto3
client = boto3.client("dynamodb")
client.put_item(TableName="orders", Item={"pk": {"S": "from outside"}})
print(client.meta.endpoint_url)
'''

endpoints = set()

@pytest.mark.parametrize("number", range(2))
def test_server(dynamodb, dynamodb_server, number):
    assert dynamodb_server.client().list_tables()["TableNames"] == []
    dynamodb_server.database.create_table("orders", "pk")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | dynamodb_server.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    endpoints.add(done.stdout.strip())
    assert endpoints == {dynamodb_server.endpoint_url}
    assert dynamodb_server.client().scan(TableName="orders")["Count"] == 1
    assert dynamodb.execute("ListTables", {})["TableNames"] == []
"""
    )
    assert "2 passed" in run_pytest(folder)


def test_marks_reach_the_server(folder: Path) -> None:
    (folder / "test_marks.py").write_text(
        """
import pytest

pytestmark = pytest.mark.dynamodb("of-module", "pk")

@pytest.mark.parametrize("number", range(2))
@pytest.mark.dynamodb("orders", "pk", items=[{"pk": "a"}])
def test_marked(dynamodb_server, number):
    client = dynamodb_server.client()
    assert client.list_tables()["TableNames"] == ["of-module", "orders"]
    assert client.scan(TableName="orders")["Count"] == 1
    client.delete_table(TableName="orders")

def test_unmarked(dynamodb_server):
    assert dynamodb_server.client().list_tables()["TableNames"] == ["of-module"]
"""
    )
    assert "3 passed" in run_pytest(folder)


def test_a_misspelt_argument_of_a_mark_is_refused(folder: Path) -> None:
    (folder / "test_marks.py").write_text(
        """
import pytest

@pytest.mark.dynamodb("orders", "pk", itmes=[{"pk": "a"}])
def test_items(dynamodb):
    pass

@pytest.mark.dynamodb(table="template.yaml")
def test_tables(dynamodb_server):
    pass
"""
    )
    output = run_pytest(folder, status=1)
    assert "2 errors" in output
    assert "'itmes'; did you mean 'items'?" in output
    assert "'table'; did you mean 'tables'?" in output


def test_a_mark_and_the_ini_file_make_a_database_as_strict_as_aws(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\ndynamodb_like_aws = fast\n")
    (folder / "test_strict.py").write_text("""
import pytest

TABLE = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def status(client):
    client.create_table(**TABLE)
    return client.describe_table(TableName="orders")["Table"]["TableStatus"]


def test_ini(dynamodb_client):
    assert status(dynamodb_client) == "CREATING"
    dynamodb_client.get_waiter("table_exists").wait(TableName="orders")


@pytest.mark.dynamodb_like_aws("no")
def test_off(dynamodb_client):
    assert status(dynamodb_client) == "ACTIVE"


@pytest.mark.dynamodb_like_aws("real")
def test_real(dynamodb_client):
    assert status(dynamodb_client) == "CREATING"


@pytest.mark.dynamodb_like_aws("often")
def test_wrong(dynamodb_client):
    pass
""")
    told = run_pytest(folder, status=1)
    assert "dynamodb_like_aws is 'often': write fast, real or no." in told
    assert "3 passed, 1 error" in told


def test_the_short_name_is_left_to_another_plugin_that_has_it(folder: Path) -> None:
    (folder / "others.py").write_text("""
import pytest


@pytest.fixture
def dynamodb():
    return "of the other plugin"
""")
    (folder / "test_names.py").write_text("""
def test_both(dynamodb, dynamodb_local, dynamodb_client):
    assert dynamodb == "of the other plugin"
    dynamodb_local.create_table("orders", "pk")
    assert dynamodb_client.list_tables()["TableNames"] == ["orders"]
""")
    told = run_pytest_in_a_process(folder, "-p", "others", environment={"PYTHONPATH": str(folder)})
    assert "1 passed" in told


def test_the_short_name_is_the_same_database(folder: Path) -> None:
    (folder / "test_same.py").write_text("""
def test_same(dynamodb, dynamodb_local):
    assert dynamodb is dynamodb_local
""")
    assert "1 passed" in run_pytest(folder)
