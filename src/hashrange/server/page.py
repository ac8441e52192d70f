"""The page for people who open the data plane's address in a browser: what this server is, how programs
reach it, where to look into the data.

It loads nothing and runs nothing. It knows the admin plane's address, and of the request the name by which
the browser reached the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from hashrange import __version__
from hashrange.rings import rings

# A name or an address, and a port: what may stand in the examples of the page.
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_HOST_CHARACTERS_MAX: Final = 253

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hashrange</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; --text: #1d2530; --soft: #5b6675; --line: #dfe3e8; --back: #f7f8fa;
  --card: #fff; --accent: #0b6bcb; }}
@media (prefers-color-scheme: dark) {{ :root {{ --text: #e6e9ee; --soft: #9aa5b4; --line: #2c3440;
  --back: #12161c; --card: #1a2029; --accent: #6cb2ff; }} }}
body {{ margin: 0; padding: clamp(.75rem, 4vw, 3rem) clamp(.5rem, 3vw, 1.25rem);
  background: var(--back); color: var(--text);
  font: 1rem/1.6 system-ui, sans-serif; }}
main {{ max-width: 46rem; margin: 0 auto; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; padding: clamp(1rem, 4vw, 2.25rem); }}
h1 {{ margin: 0; font-size: 1.6rem; }}
h1 small {{ font-size: .9rem; font-weight: normal; color: var(--soft); }}
h2 {{ margin: 1.75rem 0 .25rem; font-size: 1rem; }}
p {{ margin: .25rem 0 0; }}
a {{ color: var(--accent); }}
code, pre {{ font: .875rem/1.5 ui-monospace, monospace; }}
details {{ margin: .5rem 0 0; }}
summary {{ cursor: pointer; color: var(--accent); }}
pre {{ margin: .75rem 0 0; padding: .75rem 1rem; overflow-x: auto; background: var(--back);
  border: 1px solid var(--line); border-radius: .5rem; }}
</style>
</head>
<body>
<main>
<h1>Hashrange <small>{version}</small></h1>
<p>A database that speaks DynamoDB's API. Programs with an AWS SDK and the AWS CLI use this address as their
endpoint; this is its only page.</p>
<h2>Connect</h2>
<p>Most SDKs and the CLI read these variables. Any region will do, and any credentials unless the server has
users (<code>--auth strict</code>).</p>
<pre>export AWS_ENDPOINT_URL_DYNAMODB={endpoint}
export AWS_ENDPOINT_URL_DYNAMODB_STREAMS={endpoint}
export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
aws dynamodb list-tables</pre>
<details><summary>Python</summary>
<pre>import boto3
boto3.client("dynamodb", endpoint_url="{endpoint}", region_name="us-east-1",
             aws_access_key_id="any", aws_secret_access_key="any")</pre></details>
<details><summary>JavaScript</summary>
<pre>new DynamoDBClient({{endpoint: "{endpoint}", region: "us-east-1",
                    credentials: {{accessKeyId: "any", secretAccessKey: "any"}}}})</pre></details>
<details><summary>Java</summary>
<pre>DynamoDbClient.builder().endpointOverride(URI.create("{endpoint}")).region(Region.US_EAST_1)
    .credentialsProvider(StaticCredentialsProvider.create(
        AwsBasicCredentials.create("any", "any"))).build()</pre></details>
<details><summary>Go</summary>
<pre>dynamodb.New(dynamodb.Options{{BaseEndpoint: aws.String("{endpoint}"), Region: "us-east-1",
    Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}})</pre></details>
<h2>Look into the data</h2>
{admin}
<h2>Documentation</h2>
<p><code>hashrange --help</code> lists the commands, <code>hashrange serve --help</code> the settings, and
<code>hashrange doctor</code> checks the installation and the server. The guides are in the folder
<code>docs</code> of the sources: <code>five-minutes.md</code>, <code>settings.md</code>,
<code>testing.md</code>,
<code>compatibility.md</code> and others; <code>make site</code> makes a site of them.</p>
</main>
</body>
</html>
"""
_NO_ADMIN: Final = "<p>This server was started without an admin plane (<code>--admin-port 0</code>).</p>"
_CONSOLE: Final = (
    '<p>Look at the data in the <a href="{url}/console">console</a>. The server printed a link that opens '
    "it, and <code>hashrange console</code> prints another.</p>\n"
)
_ADMIN: Final = (
    '<p>The admin plane answers at <a href="{url}/v1">{url}</a>: <a href="{url}/health">health</a>, '
    '<a href="{url}/v1/tables">tables</a>, <a href="{url}/metrics">metrics</a>. {who}</p>'
)
_LOCAL: Final = "Only programs on the server's own machine can reach it."
_GUARDED: Final = "It asks for the token of <code>--admin-token</code>."


def page(admin_url: str | None, *, guarded: bool = False) -> Callable[[bytes], bytes]:
    """A function from the Host header of a request to the page, as UTF-8. `guarded`: the admin plane, which
    is at `admin_url` if there is one, has a token."""

    def page_for(host: bytes) -> bytes:
        # Imported here, because it takes half a megabyte, and most servers never show the page.
        from html import escape

        admin = _NO_ADMIN
        if admin_url is not None:
            admin = _CONSOLE if "console" in rings().installed else ""
            admin = (admin + _ADMIN).format(url=escape(admin_url), who=_GUARDED if guarded else _LOCAL)
        name = host[: _HOST_CHARACTERS_MAX + 1].decode("latin-1")
        known = len(name) <= _HOST_CHARACTERS_MAX and _HOST.fullmatch(name) is not None
        endpoint = f"http://{name}" if known else "THE-ADDRESS-OF-THIS-PAGE"
        return _PAGE.format(version=escape(__version__), admin=admin, endpoint=endpoint).encode()

    return page_for
