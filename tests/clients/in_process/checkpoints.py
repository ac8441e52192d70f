"""langgraph-checkpoint-aws: a graph that remembers its threads in DynamoDB."""

import json
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph_checkpoint_aws import DynamoDBSaver

import hashrange


def joined(one: list[str], other: list[str]) -> list[str]:
    return one + other


class State(TypedDict):
    said: Annotated[list[str], joined]


def answer(state: State) -> State:
    return {"said": [f"answer {len(state['said'])}"]}


with hashrange.local(region="us-west-2") as database:
    database.create_table("checkpoints", "PK, SK", ttl="ttl")
    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    compiled = graph.compile(checkpointer=DynamoDBSaver("checkpoints", region_name="us-west-2"))
    one, other = ({"configurable": {"thread_id": name}} for name in ("one", "other"))
    compiled.invoke({"said": ["a"]}, one)
    last = compiled.invoke({"said": ["b"]}, one)
    compiled.invoke({"said": ["c"]}, other)
    history = [len(state.values["said"]) for state in compiled.get_state_history(one) if state.values]
    seen = {"said": last["said"], "other": compiled.get_state(other).values["said"], "history": history[:3]}

print(json.dumps(seen))
