"""The console: web pages on the admin plane for looking into the data, and for changing it.

    tables       the list of tables
    items        a grid of a table's items, one item, its versions, its changes
    ask          the query bar, the builder, PartiQL statements, saved queries
    entities     the single-table view: a table's entities, their graph, their access patterns
    live         what happens now: requests, streams; fault rules and the clock
    past         a table as of a moment, and what has changed since

    routes       the addresses of the pages, and who may open them
    entry        which browsers may use the pages: links and sessions
    pages        what the packages of pages declare, and those of other rings
    reach        how pages reach the data
    stored       what the users of the console save
    looks        templates, static files and the headers of pages
    values       values of attributes, as the pages show them
    code         requests as code for boto3, the AWS CLI and the JavaScript SDK
    differences  the differences between two states of an item
    serving      its options of `serve`
    command      `console`
    ring         what the console adds to Hashrange

A package of pages has its pages, templates/NAME and static/NAME.js and .css where it needs them. Pages are
rendered here; reading works without JavaScript. They reach the data only as the admin plane's JSON API does,
through `server.admin.data` and the functions of its other endpoints. `cli.admin` mounts the console; Jinja is
imported for the first page. docs/decisions/0020-console.md says why.
"""
