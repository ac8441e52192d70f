"""Decorated classes of tests: a database for each test, also in subclasses, mixins and base classes."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import boto3
import pytest

import hashrange
from worlds import table_of

CLIENT = boto3.client(
    "dynamodb", region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
)


def create(name: str) -> None:
    CLIENT.create_table(**table_of(name, "pk"))


def names() -> list[str]:
    return list(CLIENT.list_tables()["TableNames"])


@hashrange.local
class TestOfPytest:
    def setup_method(self) -> None:
        create("for-the-test")

    def test_one(self) -> None:
        assert names() == ["for-the-test"]
        create("one")

    def test_two(self) -> None:
        assert names() == ["for-the-test"]
        create("two")

    def teardown_method(self) -> None:
        assert len(names()) == 2


class TestOfASubclass(TestOfPytest):
    @classmethod
    def setup_class(cls) -> None:
        create("for-the-class")

    def setup_method(self) -> None:
        assert names() == ["for-the-class"]
        create("of-the-subclass")

    def test_one(self) -> None:
        assert names() == ["for-the-class", "of-the-subclass"]

    def test_two(self) -> None:
        CLIENT.delete_table(TableName="for-the-class")
        assert names() == ["of-the-subclass"]

    def teardown_method(self) -> None:
        pass

    @classmethod
    def teardown_class(cls) -> None:
        assert "of-the-subclass" in names()


CASES = '''
import asyncio, unittest
from typing import Any
import boto3
import hashrange

CLIENT = boto3.client("dynamodb", region_name="us-east-1")

def create(name):
    CLIENT.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

def names():
    return CLIENT.list_tables()["TableNames"]

@hashrange.local
class Base(unittest.TestCase):
    def setUp(self):
        create("base")
        self.addCleanup(lambda: CLIENT.delete_table(TableName="base"))

class PlainTest(Base):
    def test_one(self):
        self.assertEqual(names(), ["base"])
        create("one")

    def test_two(self):
        self.assertEqual(names(), ["base"])

    def tearDown(self):
        self.assertIn("base", names())

class ClassTest(Base):
    @classmethod
    def setUpClass(cls):
        create("class")
        super().setUpClass()

    def test_one(self):
        self.assertEqual(names(), ["base", "class"])
        CLIENT.delete_table(TableName="class")

    def test_two(self):
        self.assertEqual(names(), ["base", "class"])
        CLIENT.delete_table(TableName="class")

class NoSuperTest(ClassTest):
    @classmethod
    def setUpClass(cls):
        create("mine")

    def test_one(self):
        self.assertEqual(names(), ["base", "mine"])

    test_two = test_one

@hashrange.local
class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        await asyncio.to_thread(create, "awaited")

    async def test_one(self):
        self.assertEqual(await asyncio.to_thread(names), ["awaited"])

del Base

if __name__ == "__main__":
    unittest.main()
'''


@pytest.mark.parametrize("runner", [["unittest", "-v"], ["pytest", "-q", "-p", "no:cacheprovider"]])
def test_cases_of_unittest_by_both_runners(tmp_path: Path, runner: list[str]) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    done = subprocess.run(
        [sys.executable, "-m", *runner, "test_cases.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 7 tests" in done.stderr or "7 passed" in done.stdout


def run(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def test_a_mixin_that_is_no_case_itself() -> None:
    @hashrange.local
    class Mixin:
        def setUp(self) -> None:
            create("mixed")

    class Case(Mixin, unittest.TestCase):
        def test_one(self) -> None:
            assert names() == ["mixed"]
            create("one")

        def test_two(self) -> None:
            assert names() == ["mixed"]

    result = run(Case)
    assert (result.testsRun, result.failures, result.errors) == (2, [], [])


def test_a_class_that_fails_to_set_up_ends_its_block() -> None:
    @hashrange.local
    class Case(unittest.TestCase):
        @classmethod
        def setUpClass(cls) -> None:
            raise RuntimeError("on purpose")

        def test_one(self) -> None: ...

    assert len(run(Case).errors) == 1
    from hashrange.testing import scopes

    assert scopes.innermost() is None


def test_init_subclass_of_the_class_itself_is_called() -> None:
    made: list[tuple[str, Any]] = []

    @hashrange.local
    class Base(unittest.TestCase):
        def __init_subclass__(cls, flavour: str = "", **named: Any) -> None:
            super().__init_subclass__(**named)
            made.append((cls.__name__, flavour))

    class Sub(Base, flavour="sweet"): ...

    assert made == [("Sub", "sweet")]
    assert Sub.run is Base.run


def test_without_pytest_only_cases_can_be_decorated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pytest")
    with pytest.raises(TypeError, match="Plain is neither"):

        @hashrange.local
        class Plain: ...
