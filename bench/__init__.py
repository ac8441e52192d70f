"""The load harness: sends Hashrange and its peers the same requests in one run, and checks the answers.

    python -m bench            run workloads, print the tables                     __main__.py
    python -m bench.install    fetch the peers into bench/peers/, each optional    install.py
    python -m bench.bystander  how long others wait while one client sends the worst   bystander.py, worst/
    python -m bench.large      a store of ten million items against a small one
    python -m bench.profiling  Hashrange's CPU us per request by function, for one workload
    python -m bench.vectors    vector searches, beside numpy alone
    python -m bench.sync       two tables kept equal over a slow network   sync.py, delaying.py
    python -m bench.copies     what `hashrange copy` and `serve --copy-to` take
    python -m bench.background a large table's background work, and gets beside it   background.py

The parts, from the top one down:

    __main__   the command line: which servers, workloads, connections
    profiling  the same load with a sampling profiler attached
    report     results -> markdown tables and ratios
    suite      one server after the other: load the tables, check, run, check again
    install    npm and pip installs of the peers
    workloads  the tables, the requests, and the checks of answers
    load       wrk: the request file, the Lua script, the parsed outcome
    servers    how each server is started and stopped; CPU time and peak memory of processes
    connection a kept-alive connection for requests that wrk cannot send, and the filling of tables
    signing    true signatures, for servers with --auth
    wire       one HTTP request: bytes for wrk, and a blocking call for set-up and checks

The harness speaks only HTTP and imports nothing of hashrange: every server is a black box.
"""
