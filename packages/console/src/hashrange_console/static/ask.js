// Pages that ask for data: the builder, statements that change something, saved queries.

import { counted, send, sure } from "./console.js";

for (const form of document.querySelectorAll(".builder")) {
  // The attributes and indexes are those of the table, so another one needs another page.
  // So are the conditions on a key, which a chosen index offers.
  for (const field of [form.elements.table, form.elements.source]) {
    field?.addEventListener("change", () => form.requestSubmit());
  }
  const adapt = (row) => {
    const operator = row.querySelector("[name=op]").value;
    const bare = operator.startsWith("attribute_") && operator !== "attribute_type";
    const kind = row.querySelector("[name=type]").value;
    row.querySelector(".second").hidden = operator !== "between";
    row.querySelector(".type").hidden = bare || operator === "attribute_type" || operator.startsWith("size ");
    row.querySelector("[name=value]").closest("label").hidden = bare || kind === "NULL";
  };
  const rows = () => form.querySelectorAll(".condition");
  form.addEventListener("change", () => rows().forEach(adapt));
  rows().forEach(adapt);
  const add = form.querySelector("[data-add]");
  if (!add) continue;
  add.hidden = false;
  add.addEventListener("click", () => {
    const last = [...rows()].at(-1);
    const row = last.cloneNode(true);
    for (const field of row.querySelectorAll("input")) field.value = "";
    for (const field of row.querySelectorAll("select")) field.selectedIndex = 0;
    row.querySelector("legend").textContent = `Condition ${rows().length + 1}`;
    last.after(row);
    adapt(row);
    row.querySelector("input").focus();
  });
}

for (const button of document.querySelectorAll("[data-run-change]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    const statement = document.getElementById("statement").defaultValue;
    const done = await send("/console/run", { statement });
    if (done) {
      const units = done.units === null ? "" : ` It cost ${counted(done.units, "capacity unit")}.`;
      document.querySelector("[data-done]").textContent = `Done.${units}`;
    } else {
      button.disabled = false;
    }
  });
}

for (const form of document.querySelectorAll("[data-keeps]")) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // What was written since the page was opened counts as well.
    const asked = new URLSearchParams(new FormData(document.querySelector("[data-plans]")));
    const saved = { name: form.elements.name.value, address: `${form.dataset.keeps.split("?")[0]}?${asked}` };
    if (await send("/console/saved", saved)) location.reload();
  });
}

for (const row of document.querySelectorAll("[data-saved]")) {
  const { saved: before, address } = row.dataset;
  const on = (selector, act) => {
    for (const button of row.querySelectorAll(selector)) {
      button.hidden = false;
      button.addEventListener("click", act);
    }
  };
  on("[data-rename]", async () => {
    const name = prompt("New name of this query", before);
    if (name !== null && (await send("/console/saved", { name, address, before }))) location.reload();
  });
  on("[data-forget]", async () => {
    if (!(await sure(`Delete the saved query ${before}?`, "Delete the query"))) return;
    if (await send("/console/saved/delete", { name: before })) location.reload();
  });
}
