// ElectroDB, as its guide uses it: `node electro.mjs TABLE` prints what it saw as JSON.
import { randomUUID } from "node:crypto";
import { Entity, Service, createWriteTransaction } from "electrodb";
import { refusal } from "./refusal.mjs";
import { createSingleTable } from "./single_table.mjs";

const table = process.argv[2];
const client = await createSingleTable(table, {
  partition: { team: "S", status: "S" }, sort: { project: "S", points: "N" },
});
const configuration = { client, table };
const seen = {};

const Employee = new Entity({
  model: { entity: "employee", version: "1", service: "taskapp" },
  attributes: {
    employee: { type: "string", required: true },
    team: { type: "string", required: true },
    salary: { type: "number", default: 100 },
    tags: { type: "set", items: "string" },
  },
  indexes: {
    employee: { pk: { field: "pk", composite: ["employee"] }, sk: { field: "sk", composite: [] } },
    team: {
      index: "gsi1", collection: "assignments",
      pk: { field: "gsi1pk", composite: ["team"] }, sk: { field: "gsi1sk", composite: ["employee"] },
    },
  },
}, configuration);

const Task = new Entity({
  model: { entity: "task", version: "1", service: "taskapp" },
  attributes: {
    task: { type: "string", required: true },
    project: { type: "string", required: true },
    team: { type: "string", required: true },
    status: { type: ["open", "in-progress", "done"], default: "open" },
    points: { type: "number", default: 0 },
    comments: {
      type: "list",
      items: { type: "map", properties: { user: { type: "string" }, body: { type: "string" } } },
    },
  },
  indexes: {
    task: { pk: { field: "pk", composite: ["project"] }, sk: { field: "sk", composite: ["task"] } },
    team: {
      index: "gsi1", collection: "assignments",
      pk: { field: "gsi1pk", composite: ["team"] }, sk: { field: "gsi1sk", composite: ["status", "task"] },
    },
    effort: {
      index: "gsi2", type: "composite",
      pk: { composite: ["team", "status"] }, sk: { composite: ["project", "points"] },
    },
  },
}, configuration);

const taskApp = new Service({ employees: Employee, tasks: Task });
const key = { project: "backend", task: "45-662" };
const number = (n) => String(n).padStart(3, "0");

async function entities() {
  const created = await Task.create({ ...key, team: "core", status: "in-progress", comments: [] }).go();
  seen.created = created.data;
  seen.twice = [(await refusal(Task.create({ ...key, team: "core" }).go())).code];
  const patched = await Task.patch(key).set({ status: "open" }).add({ points: 5 })
    .append({ comments: [{ user: "janet", body: "This seems half-baked." }] })
    .composite({ team: "core" })
    .where(({ status }, { eq }) => eq(status, "in-progress")).go({ response: "all_new" });
  seen.patched = patched.data;
  await refusal(Task.patch(key).set({ points: 9 }).where(({ status }, { eq }) => eq(status, "done")).go());
  seen.absent = (await Task.get({ project: "backend", task: "none" }).go()).data;
  await Employee.put({ employee: "janet", team: "core", tags: ["a"] }).go();
  await Employee.update({ employee: "janet" }).add({ tags: ["b"], salary: 11 }).go();
  seen.employee = (await Employee.get({ employee: "janet" }).go()).data;
  const upserted = await Employee.upsert({ employee: "bob", team: "core", salary: 7 }).go({ response: "all_new" });
  seen.upserted = upserted.data.salary;
}

async function queries() {
  const { unprocessed } = await Task.put(Array.from({ length: 40 }, (_, n) => (
    { project: "web", task: number(n), team: n % 2 ? "core" : "site", points: n }
  ))).go();
  seen.unprocessed = unprocessed;
  const first = await Task.query.task({ project: "web" }).gte({ task: "010" }).go({ limit: 5 });
  seen.first = first.data.map((task) => task.task);
  const next = await Task.query.task({ project: "web" }).gte({ task: "010" }).go({ limit: 5, cursor: first.cursor });
  seen.next = next.data.map((task) => task.task);
  const all = await Task.query.task({ project: "web" })
    .where(({ points }, { between }) => between(points, 20, 29)).go({ pages: "all", order: "desc" });
  seen.filtered = all.data.map((task) => task.points);
  const open = await Task.query.team({ team: "site", status: "open" }).lt({ task: "006" }).go();
  seen.open = open.data.map((task) => task.task);
  const effort = Task.query.effort({ team: "site", status: "open", project: "web" });
  seen.effort = (await effort.between({ points: 30 }, { points: 34 }).go({ order: "desc" })).data.map((task) => task.points);
  seen.projects = (await Task.query.effort({ team: "core", status: "open" }).begins({ project: "b" }).go()).data.length;
  const together = await taskApp.collections.assignments({ team: "core" }).go({ pages: "all" });
  seen.collection = [together.data.employees.map((one) => one.employee).sort(), together.data.tasks.length];
  const several = await Task.get([key, { project: "web", task: "003" }]).go({ preserveOrder: true });
  seen.several = several.data.map((task) => task.task);
  seen.scanned = (await Task.scan.go({ pages: "all" })).data.length;
}

async function transactions() {
  const moved = await createWriteTransaction({ Employee, Task }, ({ Employee, Task }) => [
    Employee.patch({ employee: "janet" }).subtract({ salary: 1 }).commit(),
    Task.create({ project: "web", task: "new", team: "core" }).commit(),
    Task.delete({ project: "web", task: "000" }).commit(),
  ]).go({ token: randomUUID() });
  seen.moved = moved.canceled;
  const canceled = await taskApp.transaction.write(({ employees, tasks }) => [
    employees.patch({ employee: "janet" }).add({ salary: 1000 }).commit(),
    tasks.create({ ...key, team: "core" }).commit({ response: "all_old" }),
  ]).go();
  seen.canceled = [canceled.canceled, canceled.data.map((one) => one.code), canceled.data[1].item?.status];
  const read = await taskApp.transaction.get(({ employees, tasks }) => [
    employees.get({ employee: "janet" }).commit(), tasks.get({ project: "web", task: "000" }).commit(),
  ]).go();
  seen.read = read.data.map((one) => one.item && one.item.salary);
  const removed = await Task.remove(key).go({ response: "all_old" });
  seen.removed = removed.data.points;
}

for (const chapter of [entities, queries, transactions]) await chapter();
console.log(JSON.stringify(seen));
