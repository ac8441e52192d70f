"""Pages of feeds, newest first: merges many lists into one order, with cursors in both directions.

A feed is merged from lists that are sorted by post id: the posts that were written to the feed, the reader's
own posts, and the posts of authors whose posts are read rather than written. Each list gives its next posts
from the cursor on. If a list was not read to its end, posts of other lists beyond its last post wait for a
later page, because posts of this list may come before them.

A cursor is the id of a post that was shown. Ids never change, so new posts do not disturb a reader who
scrolls down: every post that existed at the beginning is shown once. A post that a late worker writes to a
feed is placed by its time; a reader sees it after starting at the top again.

Deleted and expired posts, and posts of authors whom the reader no longer follows, are left out, and other
posts fill the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hashrange_patterns.batches import get_all, query_all
from hashrange_patterns.cursors import Cursors
from hashrange_patterns.flows import Flow
from hashrange_patterns.identifiers import FIRST, LAST, just_below, parts
from hashrange_patterns.requests import Runtime
from hashrange_patterns.tables import Address, Item, Table

PAGE_POSTS_MAX: Final = 100
_OLDER: Final = "<"
_NEWER: Final = ">"
_FROM: Final = "="  # newer, or the post itself


@dataclass(frozen=True, slots=True)
class Post:
    """A post, as it reads now."""

    id: str
    author: str
    content: str
    edited_at: int | None = None

    @property
    def at(self) -> datetime:
        """When it was published, by the clock of the process that did; from its id."""
        return datetime.fromtimestamp(parts(self.id)[0] / 1_000, UTC)


@dataclass(frozen=True, slots=True)
class Page:
    """Posts, newest first, and the cursors of the next and the previous page.

    `older` is None if there are no older posts. There is always a `newer`, because newer posts may come.
    """

    posts: tuple[Post, ...]
    older: str | None
    newer: str


@dataclass(frozen=True, slots=True)
class Found:
    """A post in a list: the post itself, or only its author."""

    author: str
    post: Post | None


@dataclass(frozen=True, slots=True)
class FeedPages:
    """The logic of `Feeds` that reads pages; it writes nothing."""

    table: Table
    runtime: Runtime
    cursors: Cursors

    def posts(
        self, author: str, *, limit: int = 20, cursor: str | None = None, consistent: bool = False
    ) -> Flow[Page]:
        """A page of an author's posts, newest first; `cursor` comes from another page.

        Costs half a read unit for each 4 KB, or 1 if consistent. Raises `InvalidCursor`.
        """
        return (yield from self._page([f"POSTS#{author}"], None, limit, cursor, consistent))

    def home(
        self, reader: str, *, limit: int = 20, cursor: str | None = None, consistent: bool = False
    ) -> Flow[Page]:
        """A page of a reader's feed, newest first; `cursor` comes from another page.

        Costs half a read unit (1 if consistent) for each post that was written, each of their authors, and
        each list: the feed, the reader's own posts, and one list for each followed author whose posts are
        read. Raises `InvalidCursor`.
        """
        pulling = self.table.query(f"FOLLOWS#{reader}", sort="begins_with(#sk, :pull)", pull="PULL#")
        pulled = yield from query_all(self.runtime, {**pulling, "ConsistentRead": consistent})
        lists = [f"HOME#{reader}", f"POSTS#{reader}", *(f"POSTS#{item['author']['S']}" for item in pulled)]
        return (yield from self._page(lists, reader, limit, cursor, consistent))

    def _page(
        self, lists: list[str], reader: str | None, limit: int, cursor: str | None, consistent: bool
    ) -> Flow[Page]:
        """A page of posts from `lists`, the first of which gives the cursors their scope."""
        scope = lists[0]
        if not 1 <= limit <= PAGE_POSTS_MAX:
            raise ValueError(f"a page has from 1 to {PAGE_POSTS_MAX} posts, not {limit}")
        position = _OLDER + LAST if cursor is None else self.cursors.open(scope, cursor)
        forward, bound = position[0] != _OLDER, position[1:]
        if position[0] == _FROM:
            bound = just_below(bound)
        posts, more = yield from self._collect(lists, reader, bound, forward, limit, consistent)
        if forward:
            posts.reverse()
            # (the page that this cursor came from lies below, even if nothing was found above it)
            older: str | None = _OLDER + (posts[-1].id if posts else bound)
            newer = _NEWER + (posts[0].id if posts else bound)
        else:
            older = _OLDER + posts[-1].id if posts and more else None
            # Nothing is below the last page, so the previous page begins with the post that this cursor
            # names.
            newer = _NEWER + posts[0].id if posts else _FROM + (FIRST if cursor is None else bound)
        return Page(
            tuple(posts),
            None if older is None else self.cursors.seal(scope, older),
            self.cursors.seal(scope, newer),
        )

    def _collect(
        self, lists: list[str], reader: str | None, bound: str, forward: bool, limit: int, consistent: bool
    ) -> Flow[tuple[list[Post], bool]]:
        """The next posts from `bound` on, in the order of reading, and whether there may be more."""
        posts: list[Post] = []
        while True:
            found: dict[str, Found] = {}
            ends: list[str] = []
            for partition in lists:
                part, ended = yield from self._list(partition, bound, forward, limit + 1, consistent)
                found = {**found, **{key: one for key, one in part.items() if key not in found or one.post}}
                if not ended:
                    ends.append((max if forward else min)(part))
            if ends:
                end = min(ends) if forward else max(ends)
                found = {key: one for key, one in found.items() if (key <= end if forward else key >= end)}
            readable = yield from self._readable(found, reader, consistent)
            for identifier in sorted(found, reverse=not forward):
                if len(posts) == limit:
                    return posts, True
                if identifier in readable:
                    posts.append(readable[identifier])
            if not ends:
                return posts, False
            bound = end

    def _list(
        self, partition: str, bound: str, forward: bool, wanted: int, consistent: bool
    ) -> Flow[tuple[dict[str, Found], bool]]:
        """Up to `wanted` posts of a list, and whether it is known to end there."""
        sort = f"#sk {'>' if forward else '<'} :bound"
        parameters = {
            **self.table.query(partition, sort=sort, bound=bound),
            "ScanIndexForward": forward,
            "ConsistentRead": consistent,
        }
        items = yield from query_all(self.runtime, parameters, limit=wanted)
        return {self.table.address(item).sort: self._found(item) for item in items}, len(items) < wanted

    def _found(self, item: Item) -> Found:
        author = item["author"]["S"]
        expires_at = item.get(self.table.expires_at)
        if expires_at is not None and int(expires_at["N"]) <= self.runtime.now():
            return Found("", None)
        if "content" not in item:
            return Found(author, None)
        edited_at = int(item["edited_at"]["N"]) if "edited_at" in item else None
        return Found(author, Post(self.table.address(item).sort, author, item["content"]["S"], edited_at))

    def _readable(
        self, found: dict[str, Found], reader: str | None, consistent: bool
    ) -> Flow[dict[str, Post]]:
        """The posts that exist and that the reader may see, by their ids."""
        readable = {identifier: one.post for identifier, one in found.items() if one.post is not None}
        written = {identifier: one.author for identifier, one in found.items() if not one.post and one.author}
        if reader is None or not written:
            return readable
        addresses = [self.post_address(author, identifier) for identifier, author in written.items()]
        addresses += [self.follower_address(author, reader) for author in written.values()]
        items = yield from get_all(self.runtime, self.table, addresses, consistent=consistent)
        for identifier, author in written.items():
            item = items.get(self.post_address(author, identifier))
            if item is None or self.follower_address(author, reader) not in items:
                continue
            post = self._found(item).post
            if post is not None:
                readable[identifier] = post
        return readable

    def post_address(self, author: str, post_id: str) -> Address:
        """The address of a post."""
        return Address(f"POSTS#{author}", post_id)

    def following_address(self, reader: str, author: str, *, pushed: bool) -> Address:
        """The address of the item which says that a reader follows an author, and how the posts arrive."""
        return Address(f"FOLLOWS#{reader}", f"{'PUSH' if pushed else 'PULL'}#{author}")

    def follower_address(self, author: str, reader: str) -> Address:
        """The address of the item which says the same in the other direction."""
        return Address(f"FOLLOWERS#{author}", reader)
