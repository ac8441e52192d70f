"""The page for people who open the data plane's address in a browser: it says what this server is.

It loads nothing. Knows the admin plane's address, and nothing of the request.
"""

from __future__ import annotations

from html import escape
from typing import Final

from hashrange import __version__

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
body {{ margin: 0; padding: 3rem 1.25rem; background: var(--back); color: var(--text);
  font: 1rem/1.6 system-ui, sans-serif; }}
main {{ max-width: 42rem; margin: 0 auto; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; padding: 2rem 2.25rem; }}
h1 {{ margin: 0; font-size: 1.6rem; }}
h1 small {{ font-size: .9rem; font-weight: normal; color: var(--soft); }}
h2 {{ margin: 1.75rem 0 .25rem; font-size: 1rem; }}
p {{ margin: .25rem 0 0; }}
a {{ color: var(--accent); }}
code, pre {{ font: .875rem/1.5 ui-monospace, monospace; }}
pre {{ margin: .75rem 0 0; padding: .75rem 1rem; overflow-x: auto; background: var(--back);
  border: 1px solid var(--line); border-radius: .5rem; }}
</style>
</head>
<body>
<main>
<h1>Hashrange <small>{version}</small></h1>
<p>A database that speaks DynamoDB's API. This address is for programs with an AWS SDK and for the AWS CLI;
this is its only page.</p>
<h2>Programs</h2>
<p>Set their endpoint to the address of this page, with any credentials:</p>
<pre>export AWS_ENDPOINT_URL_DYNAMODB=<i>the address of this page</i>
aws dynamodb list-tables</pre>
<h2>The console, health, metrics, tables, the clock</h2>
{admin}
<h2>Documentation</h2>
<p><code>hashrange --help</code> lists the commands, and <code>hashrange serve --help</code> the settings. The
guides are in the folder <code>docs</code> of the sources: <code>settings.md</code>, <code>testing.md</code>,
<code>compatibility.md</code> and others.</p>
</main>
</body>
</html>
"""
_NO_ADMIN: Final = "<p>This server was started without an admin plane (<code>--admin-port 0</code>).</p>"
_ADMIN: Final = (
    '<p>Look at the data in the <a href="{url}/console">console</a>. The server printed a link that opens '
    "it, and <code>hashrange console</code> prints another.</p>\n"
    '<p>The admin plane answers at <a href="{url}/">{url}</a>: <a href="{url}/health">health</a>, '
    '<a href="{url}/tables">tables</a>, <a href="{url}/metrics">metrics</a>. {who}</p>'
)
_LOCAL: Final = "Only programs on the server's own machine can reach it."
_GUARDED: Final = "It asks for the token of <code>--admin-token</code>."


def page(admin_url: str | None, *, guarded: bool = False) -> bytes:
    """The page as UTF-8. `guarded`: the admin plane, which is at `admin_url` if there is one, has a token."""
    admin = _NO_ADMIN
    if admin_url is not None:
        admin = _ADMIN.format(url=escape(admin_url), who=_GUARDED if guarded else _LOCAL)
    return _PAGE.format(version=escape(__version__), admin=admin).encode()
