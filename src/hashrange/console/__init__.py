"""The console: web pages on the admin plane for looking into the data, and for changing items.

    routes    the addresses of the pages, and who may open them
    tables    the list of tables
    table     a grid of a table's items
    requests  the requests that a grid's form asks for
    item      one item: its attributes, its versions, and their differences
    changes   saving, deleting and bringing back an item
    ask       PartiQL statements
    shown     values of attributes, as the pages show them
    code      requests as code for boto3, the AWS CLI and the JavaScript SDK
    reach     how pages reach the data
    looks     templates, style sheets and the headers of pages

Pages are rendered here and work without JavaScript, except for changes. They reach the data only as the admin
plane's JSON API does, through `server.admin.data` and time travel. `cli.admin` mounts the console; Jinja is
imported for the first page. docs/decisions/0020-console.md says why.
"""
