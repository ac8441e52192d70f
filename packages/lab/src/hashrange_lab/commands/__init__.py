"""The commands of the lab, and its options of `hashrange serve`.

costs      `costs`: what the requests to a running server cost
reports    its reports
serving    the options of the server: --costs, --record and those that belong to them
record     `record`: recordings of a running server
replay     `replay`: a recorded load again, on any endpoint
load       `load`: a load of a named mix
lab        `lab`: throttling and late reads of a running server
top        `top`: the busiest keys of a running server, live
signing    whose signature, and a question before AWS, of replay and load
tables     tables for people, and numbers in few characters
"""
