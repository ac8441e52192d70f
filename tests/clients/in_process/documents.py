"""langchain-aws: a store of documents in a vector index, whole and by tenant."""

import json

import boto3
from langchain_aws.vectorstores import DynamoDBVectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

import hashrange


class Letters(Embeddings):
    """How often each of eight letters occurs."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(text.count(letter)) for letter in "abcdefgh"]


def contents(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


with hashrange.local() as database:
    words = DynamoDBVectorStore.from_texts(
        ["bead", "cafe", "gaff"],
        Letters(),
        metadatas=[{"n": 1.5}, {"n": 2}, {"n": [1, {"x": None}]}],
        ids=["1", "2", "3"],
        table_name="words",
    )
    found, distance = words.similarity_search_with_score("face", k=1)[0]
    seen = {
        "near": contents(words.similarity_search("face", k=2)),
        "nearest": [found.page_content, found.metadata, distance],
        "got": [document.metadata for document in words.get_by_ids(["3", "1"])],
        "deleted": words.delete(["2"]),
        "left": contents(words.similarity_search("face", k=3)),
    }
    tenants = DynamoDBVectorStore(
        table_name="tenants",
        embedding=Letters(),
        partition_attribute="tenant",
        distance_function="EUCLIDEAN",
    )
    tenants.add_documents([Document(text, metadata={"tenant": text[0]}) for text in ("bead", "cafe")])
    retriever = tenants.as_retriever(search_kwargs={"k": 1, "filter": {"tenant": "c"}})
    seen["tenants"] = contents(retriever.invoke("bead"))

    # The index is added to a table that is already there.
    database.create_table("older", "id")
    older = DynamoDBVectorStore(table_name="older", embedding=Letters(), distance_function="DOT_PRODUCT")
    older.add_texts(["bead", "cafe"])
    seen["older"] = contents(older.similarity_search("bead", k=1))
    seen["tables"] = boto3.client("dynamodb").list_tables()["TableNames"]

print(json.dumps(seen))
