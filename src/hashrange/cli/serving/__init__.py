"""`hashrange serve`, and `hashrange config`.

    serve            the command: it opens the store, connects the parts, and runs the server
    options          how its options are made and shown
    settings_file    the file of --config
    config           `config`: all settings and where they come from
    parts            what rings add to it
    tls              the options of TLS
    welcome          what the server says when it has started
    owners           warns of tables that no caller finds
"""
