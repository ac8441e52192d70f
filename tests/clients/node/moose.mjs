// Dynamoose, as its guide uses it: `node moose.mjs TABLE` prints what it saw as JSON.
import dynamoose from "dynamoose";
import { refusal } from "./refusal.mjs";

const name = process.argv[2];
const seen = {};

const schema = new dynamoose.Schema({
  author: { type: String, hashKey: true },
  title: { type: String, rangeKey: true },
  genre: { type: String, enum: ["fantasy", "poetry"], index: { name: "by-genre", type: "global", rangeKey: "published" } },
  published: { type: Date, required: true },
  pages: { type: Number, default: 0 },
  tags: { type: Set, schema: [String] },
  reviews: { type: Array, schema: [{ type: Object, schema: { by: String, stars: Number } }] },
  cover: Buffer,
}, { timestamps: true });

const Book = dynamoose.model("Book", schema);
// Created, waited for and given its TTL by `initialize`.
const options = {
  initialize: false, waitForActive: { enabled: true, check: { frequency: 100 } },
  expires: { ttl: 86_400_000, attribute: "expires" }, update: true, throughput: "ON_DEMAND",
};
const library = new dynamoose.Table(name, [Book], options);
const key = { author: "Le Guin", title: "Earthsea" };
const day = (n) => new Date(Date.UTC(1968, 0, n));

async function models() {
  const created = await Book.create({
    ...key, genre: "fantasy", published: day(1), pages: 183, tags: new Set(["wizards"]),
    reviews: [{ by: "ada", stars: 5 }], cover: Buffer.from([0, 255]),
  });
  seen.created = created.title;
  seen.twice = (await refusal(Book.create({ ...key, published: day(1) }))).name;
  const got = await Book.get(key);
  seen.got = [got.published.toISOString(), [...got.tags], got.reviews, [...got.cover], got.createdAt instanceof Date];
  const updated = await Book.update(key, { $ADD: { pages: 17 }, $SET: { genre: "poetry" }, $REMOVE: ["cover"] });
  seen.updated = [updated.pages, updated.genre, updated.cover ?? null];
  const conditional = new dynamoose.Condition().where("pages").lt(100);
  seen.refused = (await refusal(Book.update(key, { pages: 1 }, { condition: conditional }))).name;
  got.pages = 201;
  await got.save();
  seen.saved = (await Book.get(key, { attributes: ["pages"], consistent: true })).pages;
  seen.absent = (await Book.get({ author: "nobody", title: "nothing" })) ?? null;
}

async function queries() {
  const { unprocessedItems } = await Book.batchPut(Array.from({ length: 20 }, (_, n) => (
    { author: "Serial", title: `volume ${String(n).padStart(2, "0")}`, genre: "fantasy", published: day(n + 1), pages: n }
  )));
  seen.unprocessed = unprocessedItems;
  const several = await Book.batchGet([key, { author: "Serial", title: "volume 03" }]);
  seen.several = several.map((book) => book.title).sort();
  const first = await Book.query("author").eq("Serial").where("title").beginsWith("volume 1").limit(4).sort("descending").exec();
  seen.first = [first.map((book) => book.pages), first.lastKey.title];
  const rest = await Book.query("author").eq("Serial").where("title").beginsWith("volume 1").sort("descending")
    .startAt(first.lastKey).exec();
  seen.rest = rest.map((book) => book.pages);
  const index = await Book.query("genre").eq("fantasy").where("published").lt(day(3).getTime()).using("by-genre").exec();
  seen.index = index.map((book) => book.title);
  const filtered = await Book.query("author").eq("Serial").filter("pages").in([1, 5, 99]).exec();
  seen.filtered = filtered.map((book) => book.pages);
  seen.counted = (await Book.query("author").eq("Serial").count().exec()).count;
  const scanned = await Book.scan().filter("pages").between(5, 9).or().filter("title").contains("sea").all().exec();
  seen.scanned = scanned.map((book) => book.pages).sort((a, b) => a - b);
  seen.parallel = (await Book.scan().parallel(2).exec()).length;
}

async function transactions() {
  await dynamoose.transaction([
    Book.transaction.update({ author: "Serial", title: "volume 00" }, { $ADD: { pages: 500 } }),
    Book.transaction.create({ author: "New", title: "Book", published: day(9) }),
    Book.transaction.delete({ author: "Serial", title: "volume 01" }),
  ]);
  const got = await dynamoose.transaction([
    Book.transaction.get({ author: "Serial", title: "volume 00" }), Book.transaction.get({ author: "New", title: "Book" }),
  ]);
  seen.transacted = got.map((book) => book.pages);
  const canceled = await refusal(dynamoose.transaction([
    Book.transaction.create({ ...key, published: day(1) }), Book.transaction.delete({ author: "New", title: "Book" }),
  ]));
  seen.canceled = [canceled.name, canceled.CancellationReasons.map((reason) => reason.Code)];
  await Book.delete(key);
  seen.deleted = (await Book.get(key)) ?? null;
}

async function table() {
  // A later version of the program: another index, and tags. Dynamoose alters the table.
  const later = dynamoose.model("LaterBook", new dynamoose.Schema({
    author: { type: String, hashKey: true },
    title: { type: String, rangeKey: true },
    genre: { type: String, index: { name: "by-genre", type: "global", rangeKey: "published" } },
    published: Date,
    pages: { type: Number, index: { name: "by-pages", type: "global", project: false } },
  }));
  const tags = { team: "library" };
  await new dynamoose.Table(name, [later], { ...options, tags }).initialize();
  const client = dynamoose.aws.ddb();
  const { TimeToLiveDescription } = await client.describeTimeToLive({ TableName: name });
  seen.timeToLive = TimeToLiveDescription.AttributeName;
  const { Table } = await client.describeTable({ TableName: name });
  seen.indexes = Table.GlobalSecondaryIndexes.map((index) => [index.IndexName, index.Projection.ProjectionType]).sort();
  seen.tags = (await client.listTagsOfResource({ ResourceArn: Table.TableArn })).Tags;
}

await library.initialize();
for (const chapter of [models, queries, transactions, table]) await chapter();
console.log(JSON.stringify(seen));
