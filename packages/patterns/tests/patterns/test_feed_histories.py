"""Feeds by histories: authors, readers and workers at once, an author who is switched to reading, deaths."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hashrange_patterns import Page, Post, Switching
from hashrange_patterns.feeds import FeedFlows, Feeds
from hashrange_patterns.flows import Flow
from hashrange_patterns.identifiers import Identifiers
from patterns.steps import Histories, Outcome, check

SECRET: Final = b"0123456789abcdef"
AUTHORS: Final = ["alice", "carol"]
READERS: Final = ["bob", "dave", "alice"]
PROCESSES: Final = st.integers(0, 1)


class Feeding(Histories):
    """Two processes whose clocks differ by half a minute."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.processes = [self.make(0.0), self.make(-30.0)]
        self.posted: dict[str, Post] = {}
        self.keyed: dict[tuple[str, str], str] = {}
        self.deleted: set[str] = set()
        """Posts that somebody meant to delete; `gone` has those that are."""
        self.gone: set[str] = set()
        self.follows: dict[tuple[str, str], bool | None] = {}
        """Whether a reader follows an author; None where nobody knows."""
        self.begun: Counter[tuple[str, str]] = Counter()

    def make(self, skew_seconds: float) -> FeedFlows:
        runtime = self.steps.runtime(skew_seconds)
        feeds = Feeds(self.steps.client, self.table, SECRET, pull_above=1, backfilled=100, runtime=runtime)
        flows = feeds._flows
        identifiers = Identifiers(runtime.now, self.steps.chance.getrandbits)
        object.__setattr__(flows, "identifiers", identifiers)
        object.__setattr__(flows.jobs, "identifiers", identifiers)
        return flows

    @rule(process=PROCESSES, author=st.sampled_from(AUTHORS), key=st.none() | st.sampled_from("kl"))
    def post(self, process: int, author: str, key: str | None) -> None:
        newest = max((post.id for post in self.posted.values() if post.author == author), default="")

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                # Above all that were published before it was begun, whatever the clocks say.
                # (With a key it may be the post of an earlier call.)
                assert outcome.result.id > newest or key is not None
                self.posted[outcome.result.id] = outcome.result
                if key is not None:
                    assert self.keyed.setdefault((author, key), outcome.result.id) == outcome.result.id

        self.start(self.processes[process].post(author, "hello", key=key), then)

    @precondition(lambda self: self.posted)
    @rule(place=st.integers(0, 9))
    def delete(self, place: int) -> None:
        post = list(self.posted.values())[place % len(self.posted)]
        self.deleted.add(post.id)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.gone.add(post.id)

        self.start(self.processes[0].delete(post.author, post.id), then)

    @rule(reader=st.sampled_from(READERS), author=st.sampled_from(AUTHORS), follow=st.booleans())
    def follow(self, reader: str, author: str, follow: bool) -> None:
        pair = reader, author
        alone = self.follows.get(pair, False) is not None
        self.follows[pair] = None
        self.begun[pair] += 1
        begun = self.begun[pair]

        def then(outcome: Outcome) -> None:
            # (of two calls at once nobody knows which was the later, and a late request may still come)
            if outcome.returned and not outcome.unknown and alone and begun == self.begun[pair]:
                self.follows[pair] = follow

        flows = self.processes[0]
        flow = flows.follow(reader, author) if follow else flows.unfollow(reader, author)
        self.start(flow, then, Switching)

    @rule(process=PROCESSES)
    def work(self, process: int) -> None:
        self.start(self.processes[process].work())

    @rule(author=st.sampled_from(AUTHORS), limit=st.integers(1, 3))
    def scroll(self, author: str, limit: int) -> None:
        """From the top to the end, page by page, while posts come and go."""
        before = {post.id for post in self.posted.values() if post.author == author} - self.deleted
        gone = set(self.gone)
        flows = self.processes[0]

        def flow() -> Flow[list[str]]:
            page = yield from flows.posts(author, limit=limit, consistent=True)
            seen = [post.id for post in page.posts]
            while page.older is not None:
                page = yield from flows.posts(author, limit=limit, cursor=page.older, consistent=True)
                seen += [post.id for post in page.posts]
            return seen

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                seen = outcome.result
                assert seen == sorted(set(seen), reverse=True)
                assert before - self.deleted <= set(seen)
                assert not gone & set(seen)

        self.start(flow(), then)

    @rule(reader=st.sampled_from(READERS))
    def look(self, reader: str) -> None:
        gone = set(self.gone)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                seen = [post.id for post in outcome.result.posts]
                assert seen == sorted(set(seen), reverse=True)
                assert not gone & set(seen)

        self.start(self.processes[1].home(reader, limit=10, consistent=True), then)

    def feed(self, reader: str, limit: int) -> list[Post]:
        """A reader's feed from the top to the end, and back up by the other cursors: the same."""
        home = self.processes[0].home
        pages: list[Page] = [self.alone(home(reader, limit=limit, consistent=True))]
        while (cursor := pages[-1].older) is not None:
            pages.append(self.alone(home(reader, limit=limit, cursor=cursor, consistent=True)))
        posts = [post for page in pages for post in page.posts]
        back = list(pages[-1].posts)
        page = pages[-1]
        while (page := self.alone(home(reader, limit=limit, cursor=page.newer, consistent=True))).posts:
            back[:0] = page.posts
        assert back == posts
        return posts

    def verdict(self) -> None:
        flows = self.processes[0]
        for (reader, author), known in self.follows.items():
            if known is None:
                self.alone(flows.follow(reader, author))
                self.follows[reader, author] = True
        idle = 0
        while idle < 3:
            idle = 0 if self.alone(flows.work()) else idle + 1
            self.steps.time += 70.0 if idle else 0.0
        assert self.alone(flows.jobs.dead()) == []
        for reader in READERS:
            authors = {author for (who, author), follows in self.follows.items() if who == reader and follows}
            assert self.alone(flows.following(reader)) == sorted(authors)
            feed = self.feed(reader, 2)
            shown = [post.id for post in feed]
            assert shown == sorted(set(shown), reverse=True)
            expected = {post.id for post in self.posted.values() if post.author in authors | {reader}}
            # (a post whose publishing failed for its author may be there all the same)
            assert expected - self.deleted <= set(shown)
            assert {post.author for post in feed} <= authors | {reader}
            assert not set(shown) & self.gone


def test_every_follower_has_every_post_once_in_order_whatever_fails(in_process_client: Any) -> None:
    check(Feeding, in_process_client)
