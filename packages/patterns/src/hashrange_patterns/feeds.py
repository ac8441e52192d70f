"""Feeds: posts, followers, and the feed of each reader, newest first.

    POSTS#alice       <id>          author, content, edited_at, expires_at
    AUTHOR#alice      AUTHOR        latest: the newest post's id; followers; mode
    POSTED#alice      <key>         post: the id of the post that was published with the caller's key
    FOLLOWS#bob       PUSH#alice    bob follows alice, and her posts are written to his feed
    FOLLOWS#bob       PULL#carol    bob follows carol, and her posts are read for his feed
    FOLLOWERS#alice   bob           the other direction
    HOME#bob          <id>          author, expires_at: a post that was written to his feed

A post is one transaction of three writes: the post itself, the author's `latest`, and a job. `latest` makes
an author's posts sort in the order of their commits, even if the clocks of the processes differ. Workers do
the jobs (`work`): they write the post's id to the feed of each follower. A feed holds ids and no contents,
so an edit or a deletion of a post is one write, and all feeds show it at once.

Posts of an author with more than `pull_above` followers are not written to feeds (PUSH); readers read them
together with their feed (PULL). A job switches an author from one to the other. During the switch, posts are
written *and* may be read, and a feed shows each post once.

`feed_pages` reads feeds. Refuses to know more about users than their names, and more about contents than
their text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from hashrange_patterns.batches import put_all, query_all
from hashrange_patterns.cursors import Cursors
from hashrange_patterns.feed_pages import PAGE_POSTS_MAX, FeedPages, Post
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.identifiers import FIRST, Identifiers, parts
from hashrange_patterns.jobs import Job, JobFlows
from hashrange_patterns.once import WEEK_SECONDS
from hashrange_patterns.requests import Runtime, check_seconds, get, is_met, is_passing, request, unmet
from hashrange_patterns.tables import Address, Item, Table, number, table_of

JOB_QUEUE: Final = "FEEDS"
JOB_ATTEMPTS_MAX: Final = 10
_PUSH: Final = "push"
_SWITCHING: Final = "switching"
_PULL: Final = "pull"


class Switching(Exception):
    """Following failed: the author was switched between writing and reading during each attempt."""


@dataclass(frozen=True, slots=True)
class Author:
    """An author's item: the newest post's id, the number of followers, and how posts reach them."""

    latest: str = FIRST
    followers: int = 0
    mode: str = _PUSH


@dataclass(frozen=True, slots=True)
class FeedFlows(FeedPages):
    """The logic of `Feeds`."""

    jobs: JobFlows
    pull_above: int
    backfilled: int
    kept_seconds: int | None
    identifiers: Identifiers

    def __post_init__(self) -> None:
        check_seconds("kept_seconds", self.kept_seconds)
        if not 1 <= self.backfilled <= PAGE_POSTS_MAX:
            raise ValueError(
                f"from 1 to {PAGE_POSTS_MAX} posts are brought to a new follower, not {self.backfilled}"
            )

    def post(self, author: str, content: str, *, key: str | None = None) -> Flow[Post]:
        """Publish a post: in the author's list and own feed at once, in other feeds by a worker.

        With the `key` of the caller, who gives the same for the same post, a repeat publishes nothing, and
        returns the first post, for a week. Without a key the post may have been published if this raises:
        check before you repeat. Costs 6 write units for a small post, 8 with a key; then 1 for each follower,
        in `work`.
        """
        seen = FIRST
        while True:
            post = Post(self.identifiers.next(after=seen), author, content)
            members = self._publication(post)
            if key is not None:
                members.append({"Put": self._posted(post, key)})
            failed = yield from unmet(self.runtime, members)
            if not failed:
                return post
            if len(members) - 1 in failed and key is not None:
                earlier = yield from get(self.runtime, self.table, self._posted_address(author, key))
                if earlier is not None:
                    return Post(earlier["post"]["S"], author, content)
            # Another process was later, at least by its clock: use an id above its post's.
            seen = (yield from self.author(author)).latest

    def edit(self, author: str, post_id: str, content: str) -> Flow[bool]:
        """Change a post's content, for all readers; False if there is no such post. Costs 1 write unit."""
        update = self.table.at(
            self.post_address(author, post_id),
            update="SET #content = :content, #edited_at = :now",
            condition="attribute_exists(#pk)",
            content=content,
            now=self.runtime.now(),
        )
        return (yield from is_met(self.runtime, "update_item", update))

    def delete(self, author: str, post_id: str) -> Flow[None]:
        """Delete a post, for all readers. Costs 1 write unit. Safe to repeat."""
        delete = self.table.at(self.post_address(author, post_id))
        yield from request(self.runtime, "delete_item", delete, repeatable=True)

    def follow(self, reader: str, author: str) -> Flow[bool]:
        """Let `reader` follow `author`; False if that was already so. Safe to repeat.

        Costs 8 write units and a read unit. A worker adds the author's newest posts.
        """
        for attempt in range(self.runtime.attempts_max):
            mode = (yield from self.author(author)).mode
            following = self.following_address(reader, author, pushed=mode == _PUSH)
            follower = self.follower_address(author, reader)
            members: list[Item] = [
                {"Put": self._put(follower, {"reader": {"S": reader}}, "attribute_not_exists(#pk)")},
                {"Update": self._count_followers(author, 1, mode)},
                {"Put": self._put(following, {"author": {"S": author}})},
                self.jobs.member(_payload("followed", author, reader)),
            ]
            failed = yield from unmet(self.runtime, members)
            if not failed or 0 in failed:
                return not failed
            yield self.runtime.pause(attempt)  # the author was switched since it was read
        raise Switching(f"{author!r} was switched during each of {self.runtime.attempts_max} attempts")

    def unfollow(self, reader: str, author: str) -> Flow[bool]:
        """Let `reader` unfollow `author`; False if that was already so. Safe to repeat.

        The author's posts disappear from the feed at once. Costs 8 write units.
        """
        follower = self.follower_address(author, reader)
        both = [self.following_address(reader, author, pushed=pushed) for pushed in (True, False)]
        members: list[Item] = [
            {"Delete": self.table.at(follower, condition="attribute_exists(#pk)")},
            {"Update": self._count_followers(author, -1, None)},
            *({"Delete": self.table.at(address)} for address in both),
        ]
        return not (yield from unmet(self.runtime, members))

    def following(self, reader: str) -> Flow[list[str]]:
        """Whom a reader follows. Costs half a read unit for each 4 KB, which is about 40 authors."""
        items = yield from self._all(f"FOLLOWS#{reader}")
        return sorted(item["author"]["S"] for item in items)

    def followers(self, author: str, *, consistent: bool = False) -> Flow[list[str]]:
        """Who follows an author.

        Costs half a read unit (1 if consistent) for each 4 KB, which is about 40 readers.
        """
        items = yield from self._all(f"FOLLOWERS#{author}", consistent=consistent)
        return [item["reader"]["S"] for item in items]

    def work(self) -> Flow[bool]:
        """Do a job, if one is due: bring a post to followers, or an author's posts to a new follower.

        False if none was due: wait a while. Any number of workers may do this; a worker that dies loses
        nothing. While the table is throttled or cannot be reached, the worker waits, and the attempt does not
        count; if that does not end, the error is raised. A job that keeps failing is put aside:
        `Jobs(client, table, "FEEDS")` shows and replays such jobs.
        """
        job = yield from self.jobs.take()
        if job is None:
            return False
        for attempt in range(self.runtime.attempts_max):
            try:
                if attempt and not (yield from self.jobs.extend(job)):
                    return True  # (the lease was over, and another worker has the job)
                yield from self._do(job)
                yield from self.jobs.done(job)
                return True
            except Exception as error:
                if not is_passing(error):
                    yield from self.jobs.retry(job, repr(error), delay_seconds=float(job.attempts))
                    return True
                passing = error
            yield self.runtime.pause(attempt)
        yield from self.jobs.give_back(job)
        raise passing

    def author(self, author: str) -> Flow[Author]:
        """What is known about an author."""
        item = (yield from get(self.runtime, self.table, self._author_address(author))) or {}
        return Author(
            item.get("latest", {}).get("S", FIRST),
            int(item.get("followers", {}).get("N", "0")),
            item.get("mode", {}).get("S", _PUSH),
        )

    @staticmethod
    def _posted_address(author: str, key: str) -> Address:
        return Address(f"POSTED#{author}", key)

    def _posted(self, post: Post, key: str) -> dict[str, Any]:
        """The parameters of the write that lets a post with this key be published once."""
        attributes = {
            "post": {"S": post.id},
            self.table.expires_at: number(self.runtime.now() + WEEK_SECONDS),
        }
        return self._put(self._posted_address(post.author, key), attributes, "attribute_not_exists(#pk)")

    def _publication(self, post: Post) -> list[Item]:
        """The members of the transaction that publishes `post`."""
        content = {"author": {"S": post.author}, "content": {"S": post.content}, **self._expiry(post.id)}
        latest = self.table.at(
            self._author_address(post.author),
            update="SET #latest = :id",
            condition="attribute_not_exists(#latest) OR #latest < :id",
            id=post.id,
        )
        return [
            {"Put": self._put(self.post_address(post.author, post.id), content)},
            {"Update": latest},
            self.jobs.member(_payload("posted", post.author, post.id)),
        ]

    def _do(self, job: Job) -> Flow[None]:
        kind, author, what = (unquote(part) for part in job.payload.split(" "))
        mode = (yield from self.author(author)).mode
        if kind == "posted" and mode != _PULL:
            # (a follower who is missing here would miss the post)
            followers = yield from self.followers(author, consistent=True)
            yield from put_all(
                self.runtime, self.table, [self._entry(reader, author, what) for reader in followers]
            )
        elif kind == "followed":
            yield from self._backfill(what, author)
            yield from self._switch_if_large(author)
        elif kind == "switch":
            yield from self._switch(job, author)

    def _backfill(self, reader: str, author: str) -> Flow[None]:
        """Write the author's newest posts to the feed of a new follower."""
        page = yield from self.posts(author, limit=self.backfilled, consistent=True)
        entries = [self._entry(reader, author, post.id) for post in page.posts]
        yield from put_all(self.runtime, self.table, entries)

    def _switch_if_large(self, author: str) -> Flow[None]:
        known = yield from self.author(author)
        if known.mode != _PUSH or known.followers <= self.pull_above:
            return
        change = self._change_mode(author, _PUSH, _SWITCHING)
        # (if the author no longer writes, somebody else did it)
        yield from unmet(self.runtime, [{"Update": change}, self.jobs.member(_payload("switch", author, ""))])

    def _switch(self, job: Job, author: str) -> Flow[None]:
        """Let all followers read the author's posts; then stop writing them.

        Readers who begin to follow meanwhile read them.
        """
        for reader in (yield from self.followers(author, consistent=True)):
            pushed, pulled = (
                self.following_address(reader, author, pushed=pushed) for pushed in (True, False)
            )
            delete = self.table.at(pushed, condition="attribute_exists(#pk)")
            put = self._put(pulled, {"author": {"S": author}})
            # (if there is nothing to delete, the follower has been switched, or no longer follows)
            yield from unmet(self.runtime, [{"Delete": delete}, {"Put": put}])
            if not (yield from self.jobs.extend(job)):
                return
        yield from is_met(self.runtime, "update_item", self._change_mode(author, _SWITCHING, _PULL))

    def _change_mode(self, author: str, old: str, new: str) -> dict[str, Any]:
        address = self._author_address(author)
        return self.table.at(address, update="SET #mode = :new", condition=_mode_is(old), new=new, mode=old)

    def _count_followers(self, author: str, by: int, mode: str | None) -> dict[str, Any]:
        """An update of the number of followers; with `mode`, only if the author still has that mode."""
        condition, values = ("", {}) if mode is None else (_mode_is(mode), {"mode": mode})
        address = self._author_address(author)
        return self.table.at(address, update="ADD #followers :by", condition=condition, by=by, **values)

    def _entry(self, reader: str, author: str, post_id: str) -> Item:
        """A post in a reader's feed."""
        key = self.table.key(Address(f"HOME#{reader}", post_id))
        return {**key, "author": {"S": author}, **self._expiry(post_id)}

    def _expiry(self, post_id: str) -> Item:
        if self.kept_seconds is None:
            return {}
        return {self.table.expires_at: number(parts(post_id)[0] // 1_000 + self.kept_seconds)}

    def _author_address(self, author: str) -> Address:
        return Address(f"AUTHOR#{author}", "AUTHOR")

    def _all(self, partition: str, *, consistent: bool = False) -> Flow[list[Item]]:
        parameters = {**self.table.query(partition), "ConsistentRead": consistent}
        return (yield from query_all(self.runtime, parameters))

    def _put(self, address: Address, attributes: Item, condition: str = "") -> dict[str, Any]:
        return self.table.put({**self.table.key(address), **attributes}, condition=condition)


def _payload(*parts_of_job: str) -> str:
    return " ".join(quote(part, safe="") for part in parts_of_job)


def _mode_is(mode: str) -> str:
    return "attribute_not_exists(#mode) OR #mode = :mode" if mode == _PUSH else "#mode = :mode"


class _Feeds(Performing[FeedFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        secret: bytes,
        *,
        pull_above: int = 1_000,
        backfilled: int = 20,
        kept_seconds: int | None = None,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        table = table_of(table)
        identifiers = Identifiers(runtime.now)
        jobs = JobFlows(table, JOB_QUEUE, 60.0, JOB_ATTEMPTS_MAX, 1, runtime, identifiers)
        cursors = Cursors(secret)
        super().__init__(
            client,
            FeedFlows(table, runtime, cursors, jobs, pull_above, backfilled, kept_seconds, identifiers),
        )

    post = performed(FeedFlows.post)
    edit = performed(FeedFlows.edit)
    delete = performed(FeedFlows.delete)
    follow = performed(FeedFlows.follow)
    unfollow = performed(FeedFlows.unfollow)
    posts = performed(FeedFlows.posts)
    home = performed(FeedFlows.home)
    following = performed(FeedFlows.following)
    followers = performed(FeedFlows.followers)
    work = performed(FeedFlows.work)


class Feeds(_Feeds[Client], Blocking[FeedFlows]):
    """Feeds of posts, with a boto3 client.

    `secret` signs cursors; all servers share it. The posts of authors with more than `pull_above` followers
    are read, not written. A new follower gets the newest `backfilled` posts at once. Posts, and their places
    in feeds, expire after `kept_seconds` (None: never).
    """


class AsyncFeeds(_Feeds[AsyncClient], Awaiting[FeedFlows]):
    """`Feeds` with an aiobotocore client."""
