"""Small changes of a genuine request. Each is a function of a source of chance, the request, and another
genuine request from which it may take something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from urllib.parse import quote_from_bytes, unquote_to_bytes

from forgeries.genuine import KEY, SESSION, Sent

Change = Callable[[Random, Sent, Sent], Sent]


def body(random: Random, sent: Sent, other: Sent) -> Sent:
    """One bit or byte of the body, or another body."""
    return replace(sent, body=random.choice((_bent(random, sent.body), _bent(random, sent.body), other.body)))


def method(random: Random, sent: Sent, other: Sent) -> Sent:
    return replace(sent, method=random.choice((b"GET", b"PUT", b"post", b"POST ", _bent(random, b"POST"))))


def header_value(random: Random, sent: Sent, other: Sent) -> Sent:
    name = random.choice(list(sent.headers))
    return _with(sent, name, _bent(random, sent.headers[name]))


def signed_header(random: Random, sent: Sent, other: Sent) -> Sent:
    """A header that matters most: the target, the host, the date, the token, the type."""
    name = random.choice((b"x-amz-target", b"host", b"x-amz-date", b"x-amz-security-token", b"content-type"))
    value = sent.headers.get(name, other.headers.get(name, b"x"))
    return _with(sent, name, random.choice((_bent(random, value), other.headers.get(name, b""))))


def lost_header(random: Random, sent: Sent, other: Sent) -> Sent:
    name = random.choice(list(sent.headers))
    return replace(sent, headers={kept: value for kept, value in sent.headers.items() if kept != name})


def more_header(random: Random, sent: Sent, other: Sent) -> Sent:
    name = random.choice((b"x-amz-security-token", b"date", b"x-other", b"x-amz-date", *other.headers))
    value = random.choice((other.headers.get(name, b"x"), SESSION.token.encode(), b"20260101T000000Z"))
    return _with(sent, name, value)


def white_space(random: Random, sent: Sent, other: Sent) -> Sent:
    """White space where there was some, or none; some of it is none to HTTP."""
    name = random.choice(list(sent.headers))
    value = sent.headers[name]
    space = random.choice((b" ", b"\t", b"  ", b"\n", b"\x0b", b"\xa0", b"\x85", b"\x1c", b"\x00"))
    place = random.choice((0, len(value), random.randrange(len(value) + 1)))
    made = value[:place] + space + value[place:]
    return _with(sent, name, random.choice((made, value.replace(b" ", space), value.replace(b" ", b""))))


def authorization(random: Random, sent: Sent, other: Sent) -> Sent:
    """One bit or byte of the Authorization header or of the query that stands for it."""
    if b"authorization" in sent.headers:
        return _with(sent, b"authorization", _bent(random, sent.headers[b"authorization"]))
    return replace(sent, target=_bent(random, sent.target))


def signature(random: Random, sent: Sent, other: Sent) -> Sent:
    """A signature with another bit, a shorter or longer one, one in capitals, or that of another request."""
    value = _part(sent, b"Signature")
    made = random.choice((
        *[_bent(random, value)] * 6, value[:-1], value + b"0", value.upper(), b"0" * 64,
        _part(other, b"Signature"),
    ))  # fmt: skip
    return _with_part(sent, b"Signature", made)


def credential(random: Random, sent: Sent, other: Sent) -> Sent:
    """The key, the date, the region, the service or the end of the credential's scope."""
    parts = _part(sent, b"Credential").replace(b"%2F", b"/").split(b"/")
    place = random.randrange(len(parts))
    others = (KEY.id.encode(), SESSION.id.encode(), b"eu-west-3", b"us-east-1", b"20260101", b"s3", b"")
    parts[place] = random.choice((_bent(random, parts[place]), random.choice(others)))
    return _with_part(sent, b"Credential", b"/".join(parts))


def signed_headers(random: Random, sent: Sent, other: Sent) -> Sent:
    """The list of the signed headers: shorter, longer, in another order, in capitals."""
    names = _part(sent, b"SignedHeaders").replace(b"%3B", b";").split(b";")
    kind = random.randrange(5)
    if kind == 0:
        del names[random.randrange(len(names))]
    elif kind == 1:
        names.insert(random.randrange(len(names) + 1), random.choice((*sent.headers, b"")))
    elif kind == 2:
        random.shuffle(names)
    elif kind == 3:
        names = [name.title() for name in names]
    else:
        names = [_bent(random, b";".join(names))]
    return _with_part(sent, b"SignedHeaders", b";".join(names))


def query(random: Random, sent: Sent, other: Sent) -> Sent:
    """A parameter more, less, twice, or changed."""
    path, _, text = sent.target.partition(b"?")
    pairs = text.split(b"&") if text else []
    kind = random.randrange(4)
    if kind == 0 or not pairs:
        more = random.choice((b"a=b", b"X-Amz-Expires=604800", b"X-Amz-Signature=00", b"=", b"&"))
        pairs.insert(random.randrange(len(pairs) + 1), more)
    elif kind == 1:
        del pairs[random.randrange(len(pairs))]
    elif kind == 2:
        pairs.insert(random.randrange(len(pairs) + 1), random.choice(pairs))
    else:
        place = random.randrange(len(pairs))
        pairs[place] = _bent(random, pairs[place])
    return replace(sent, target=path + b"?" + b"&".join(pairs))


def query_spelling(random: Random, sent: Sent, other: Sent) -> Sent:
    """The query in another order or in another encoding: most such changes have no meaning."""
    path, _, text = sent.target.partition(b"?")
    pairs = text.split(b"&")
    kind = random.randrange(4)
    if kind == 0:
        random.shuffle(pairs)
    elif kind == 1:
        pairs = [pair.replace(b"%20", b"+") for pair in pairs]
    elif kind == 2:
        pairs = [quote_from_bytes(unquote_to_bytes(pair), safe="=~" + random.choice(("", "/;!"))).encode()
                 for pair in pairs]  # fmt: skip
    else:
        escape = random.choice((b"%C3%A9", b"%C3", b"%E2%82%AC", b"%2B", b"%20"))
        pairs = [pair.replace(escape, random.choice((b"%FF", b"%FE", b"%EF%BF%BD", b"+"))) for pair in pairs]
    return replace(sent, target=path + (b"?" if text else b"") + b"&".join(pairs))


def path(random: Random, sent: Sent, other: Sent) -> Sent:
    _, mark, text = sent.target.partition(b"?")
    made = random.choice((b"//", b"/.", b"/a", b"/%2F", b"/..", b"/\xff", b"/%FF", b"", _bent(random, b"/")))
    return replace(sent, target=made + mark + text)


def elsewhere(random: Random, sent: Sent, other: Sent) -> Sent:
    """The headers or the query of another genuine request."""
    if random.random() < 0.5:
        return replace(sent, target=other.target)
    if b"authorization" in other.headers and random.random() < 0.5:
        return _with(sent, b"authorization", other.headers[b"authorization"])
    return replace(sent, headers=other.headers)


CHANGES: tuple[Change, ...] = (
    authorization,
    body,
    credential,
    elsewhere,
    header_value,
    lost_header,
    method,
    more_header,
    path,
    query,
    query_spelling,
    signature,
    signed_header,
    signed_headers,
    white_space,
)


def changed(random: Random, sent: Sent, other: Sent) -> tuple[str, Sent]:
    """A changed request, and the name of the change. Some have several changes."""
    while True:
        names, made = [], sent
        for change in random.choices(CHANGES, k=random.choice((1, 1, 1, 2))):
            names.append(change.__name__)
            made = change(random, made, other)
        if made != sent:
            return " + ".join(names), made


def _bent(random: Random, value: bytes) -> bytes:
    """The bytes with a bit turned, a byte lost, repeated or replaced."""
    if not value:
        return b"\x00"
    place = random.randrange(len(value))
    kind = random.randrange(8)
    if kind == 0:
        return value[:place] + value[place + 1 :]
    if kind == 1:
        return value[:place] + value[place : place + 1] * 2 + value[place + 1 :]
    if kind == 2:
        return value[:place] + random.randbytes(1) + value[place + 1 :]
    return value[:place] + bytes([value[place] ^ 1 << random.randrange(8)]) + value[place + 1 :]


def _with(sent: Sent, name: bytes, value: bytes) -> Sent:
    return replace(sent, headers=sent.headers | {name: value})


def _place(sent: Sent, name: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """The text that holds the authorization, and the parts before, in and behind the value of a parameter."""
    text = sent.headers.get(b"authorization", sent.target)
    start, mark, rest = text.partition(name + b"=")
    ends = [place for place in (rest.find(b"&"), rest.find(b","), rest.find(b" ")) if place >= 0]
    end = min(ends, default=len(rest))
    return text, start + mark, rest[:end], rest[end:]


def _part(sent: Sent, name: bytes) -> bytes:
    return _place(sent, name)[2]


def _with_part(sent: Sent, name: bytes, value: bytes) -> Sent:
    _, before, _, after = _place(sent, name)
    made = before + value + after
    if b"authorization" in sent.headers:
        return _with(sent, b"authorization", made)
    return replace(sent, target=made)
