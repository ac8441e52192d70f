"""Classes of tests whose tests run in blocks of `hashrange.local`, and their subclasses.

Each test has the database from before its `setUp`, `setup_method` or fixtures until after its clean-ups. What
`setUpClass` or `setup_class` puts into it is there for each test: the class has its own block, and each test
begins with that block's state as it was before the first test.

    unittest   `run` is wrapped, and `setUpClass`
    pytest     the class gets two fixtures with autouse; pytest calls `setup_class`,
               `setup_method` and `teardown_class` outside of them, so these are wrapped

Subclasses are wrapped when they are defined. A class that is not a `TestCase` may be a base or a mixin of
one.
"""

from __future__ import annotations

import inspect
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from hashrange.testing.database import LocalDatabase, Snapshot

_CLASS_BLOCK: Final = "_hashrange_class_block"
_WRAPPED: Final = "_hashrange_wrapped"
_CLASS_FIXTURE: Final = "_hashrange_class"
_TEST_FIXTURE: Final = "_hashrange_test"


class Block(Protocol):
    """A block of `testing.blocks`."""

    def __enter__(self) -> LocalDatabase: ...

    def __exit__(self, kind: Any, error: Any, traceback: Any, /) -> None: ...

    def again(self) -> Block: ...


class _ClassBlock:
    """The block of one class: its database, and the state that each of its tests begins with.

    `depth` counts the nested calls of `teardown_class`, which may call the one of its base class.
    """

    def __init__(self, block: Block) -> None:
        self._block = block.again()
        self._database = self._block.__enter__()
        self._beginning: Snapshot | None = None
        self._begun = False
        self.depth = 0

    def begin_test(self) -> None:
        """Begin a test with the state from before the first test. Only the first call for a test counts."""
        if self._begun:
            return
        self._begun = True
        if self._beginning is None:
            self._beginning = self._database.snapshot()
        else:
            self._database.restore(self._beginning)

    def end_test(self) -> None:
        """Note that the test is over."""
        self._begun = False

    def end(self) -> None:
        """End the block."""
        self._block.__exit__(None, None, None)


def decorate(decorated: type, block: Block) -> None:
    """Let the tests of `decorated`, and those of its subclasses, run in blocks like `block`.

    Raises TypeError for a class that is not a `TestCase` if pytest is not running.
    """
    pytest = sys.modules.get("pytest")
    collected: _Collected | None = None
    if issubclass(decorated, unittest.TestCase):
        _wrap_case(decorated, block)
    elif pytest is not None:
        collected = _Collected(block)
        collected.add_fixtures(decorated, pytest)
        collected.wrap(decorated)
    else:
        raise TypeError(
            f"hashrange.local decorates classes of unittest.TestCase, and classes that pytest collects. "
            f"{decorated.__name__} is neither: decorate its functions instead."
        )
    _follow_subclasses(decorated, block, collected)


def _follow_subclasses(decorated: Any, block: Block, collected: _Collected | None) -> None:
    """Wrap each subclass when it is defined: it may add methods, or derive from `TestCase`."""
    before = decorated.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: Any, /, **named: Any) -> None:  # noqa: N807
        if before is not None:
            before.__get__(None, cls)(**named)
        else:
            super(decorated, cls).__init_subclass__(**named)
        if issubclass(cls, unittest.TestCase):
            _wrap_case(cls, block)
        elif collected is not None:
            collected.wrap(cls)

    decorated.__init_subclass__ = classmethod(__init_subclass__)


def _wrap_case(case: Any, block: Block) -> None:
    """Wrap a class of unittest: only its own `setUpClass` if a base is already wrapped, otherwise
    everything."""
    if not getattr(case, _WRAPPED, False):
        setattr(case, _WRAPPED, True)
        case.run = _run_in_block(case.run, block)
        case.setUpClass = _set_up_in_block(case.__dict__.get("setUpClass"), case, block)
    elif "setUpClass" in case.__dict__:
        case.setUpClass = _set_up_in_block(case.__dict__["setUpClass"], case, block)


def _run_in_block(run: Callable[..., Any], block: Block) -> Callable[..., Any]:
    def run_in_block(self: Any, result: Any = None) -> Any:
        shared: _ClassBlock | None = type(self).__dict__.get(_CLASS_BLOCK)
        if shared is None:
            with block.again():
                return run(self, result)
        shared.begin_test()
        try:
            return run(self, result)
        finally:
            shared.end_test()

    return run_in_block


def _set_up_in_block(own: Any, case: Any, block: Block) -> classmethod[Any, ..., None]:
    """`setUpClass` in a block that ends after the class's clean-ups; `own` is the class's own, if any."""

    def set_up(cls: Any) -> None:
        if _CLASS_BLOCK not in cls.__dict__:
            setattr(cls, _CLASS_BLOCK, _ClassBlock(block))
            cls.addClassCleanup(_end, cls)
        if own is not None:
            own.__get__(None, cls)()
        else:
            super(case, cls).setUpClass()

    return classmethod(set_up)


def _begin(cls: Any, block: Block) -> _ClassBlock:
    """The block of `cls`, entered if necessary."""
    shared: _ClassBlock | None = cls.__dict__.get(_CLASS_BLOCK)
    if shared is None:
        shared = _ClassBlock(block)
        setattr(cls, _CLASS_BLOCK, shared)
    return shared


def _end(cls: Any) -> None:
    shared: _ClassBlock = cls.__dict__[_CLASS_BLOCK]
    delattr(cls, _CLASS_BLOCK)
    shared.end()


class _Collected:
    """Makes the tests of classes that pytest collects run in blocks.

    pytest calls `setup_class` and `setup_method` before it sets up the fixtures of a class, and
    `teardown_class` after it tears them down. So the first of them enters the block, and `teardown_class`
    ends it if there is one.
    """

    def __init__(self, block: Block) -> None:
        self._block = block

    def add_fixtures(self, decorated: type, pytest: Any) -> None:
        """Give the class a fixture for the class and one for each test."""

        def for_class(given: Any) -> Iterator[None]:
            cls = given if isinstance(given, type) else type(given)
            _begin(cls, self._block)
            yield
            if getattr(cls, "teardown_class", None) is None:
                _end(cls)

        def for_test(instance: object) -> Iterator[None]:
            shared = _begin(type(instance), self._block)
            shared.begin_test()
            yield
            shared.end_test()

        # A fixture of a class is a class method from pytest 9 on, and a method before.
        of_class: Any = classmethod(for_class) if pytest.version_tuple >= (9,) else for_class
        for name, fixture in (
            (_CLASS_FIXTURE, pytest.fixture(autouse=True, scope="class", name=_CLASS_FIXTURE)(of_class)),
            (_TEST_FIXTURE, pytest.fixture(autouse=True, name=_TEST_FIXTURE)(for_test)),
        ):
            setattr(decorated, name, fixture)

    def wrap(self, cls: Any) -> None:
        """Wrap those methods of `cls` itself that pytest calls outside of the fixtures."""
        for name, wrapper in (
            ("setup_class", self._set_up_class),
            ("setup_method", self._set_up_method),
            ("teardown_class", self._tear_down_class),
        ):
            if name in cls.__dict__:
                setattr(cls, name, wrapper(cls.__dict__[name]))

    def _set_up_class(self, own: Any) -> Any:
        def setup_class(cls: Any) -> None:
            _begin(cls, self._block)
            _call(own.__get__(None, cls), cls)

        return classmethod(setup_class)

    def _set_up_method(self, own: Any) -> Any:
        def setup_method(instance: Any, method: Any = None) -> None:
            _begin(type(instance), self._block).begin_test()
            _call(own.__get__(instance), method)

        return setup_method

    def _tear_down_class(self, own: Any) -> Any:
        def teardown_class(cls: Any) -> None:
            shared = _begin(cls, self._block)
            shared.depth += 1
            try:
                _call(own.__get__(None, cls), cls)
            finally:
                shared.depth -= 1
                if shared.depth == 0:
                    _end(cls)

        return classmethod(teardown_class)


def _call(function: Callable[..., object], argument: object) -> None:
    """Call `function`, with `argument` if it takes one: pytest allows both."""
    if inspect.signature(function).parameters:
        function(argument)
    else:
        function()
