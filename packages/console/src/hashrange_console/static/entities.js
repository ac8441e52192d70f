// The single-table view: the entities that a user corrects.

import { send, sure } from "./console.js";

for (const button of document.querySelectorAll("[data-records]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const done = await send("/console/uses", { table: button.dataset.records, on: button.dataset.on === "yes" });
    if (done) location.reload();
  });
}

for (const form of document.querySelectorAll("[data-entities]")) {
  const table = form.dataset.entities;
  const acts = form.querySelector("[data-acts]");
  if (!acts) continue;
  acts.hidden = false;
  const keep = async (rules) => {
    const kept = await send("/console/entities", { table, rules });
    if (kept) location.assign(kept.href);
  };
  const rule = (row) => {
    const text = (name) => row.querySelector(`[name=${name}]`)?.value ?? "";
    const { attribute, value, has } = row.dataset;
    const given = { name: text("name"), partition: text("partition"), sort: text("sort") };
    return { ...given, attribute, value, has: JSON.parse(has) };
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const rules = [...form.querySelectorAll("[data-rule]")].map(rule);
    keep(rules.filter((rule) => rule.name.trim()));
  });
  form.querySelector("[data-add]").addEventListener("click", () => {
    const first = form.querySelector("[data-rule]");
    const row = first.cloneNode(true);
    for (const part of row.querySelectorAll(".facts, details")) part.remove();
    for (const field of row.querySelectorAll("input")) field.value = "";
    Object.assign(row.dataset, { attribute: "", value: "", has: "[]" });
    row.className = "entity";
    row.querySelector("legend").textContent = "New";
    row.querySelector("legend").className = "tag";
    first.before(row);
    row.querySelector("input").focus();
  });
  form.querySelector("[data-forget]")?.addEventListener("click", async () => {
    if (await sure("Discard the corrections?", "Propose again")) keep([]);
  });
}
