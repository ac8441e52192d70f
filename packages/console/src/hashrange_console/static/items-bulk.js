// Changing many items, step by step: each request works for a second at most and says how far it has come.

import { counted, post, show, sure } from "./console.js";

const WAIT_MS = 1000;

const chosen = () => [...document.querySelectorAll("[data-grid] tbody th input:checked")];
const texts = [...document.querySelectorAll("[data-which]")].map((part) => [part, part.textContent]);

// The bar says what its buttons are for: the selected rows, or all that is found.
function adapt() {
  const count = chosen().length;
  for (const part of document.querySelectorAll(".acts [data-found]")) part.hidden = count > 0;
  for (const part of document.querySelectorAll(".acts [data-picked]")) part.hidden = !count;
  for (const [part, text] of texts) part.textContent = count ? `The ${counted(count, "selected item")}` : text;
  const said = document.querySelector(".acts b[data-picked]");
  if (said) said.textContent = `${count} selected`;
}
document.addEventListener("chosen", adapt);
adapt();

for (const form of document.querySelectorAll("[data-bulk]")) begin(form);

function begin(form) {
  const { table } = form.dataset;
  const { name, kind, text } = form.elements;
  const progress = document.querySelector("[data-progress]");
  const bar = progress.querySelector("progress");
  const said = progress.querySelector("[data-said]");
  const stop = progress.querySelector("[data-stop]");
  const failures = document.querySelector("[data-failures]");
  let stopped = false;

  // The address of the grid says what is found; its scope is added by `post`.
  const path = (where) => {
    const given = new URLSearchParams(location.search);
    for (const other of ["start", "back", "scope"]) given.delete(other);
    return `${where}?${given}`;
  };
  stop.addEventListener("click", () => (stopped = true));

  const ask = async (where, body) => {
    const { read, problem } = await post(path(where), body);
    if (problem) {
      show(problem);
      said.textContent = problem;
    }
    return read;
  };

  async function count() {
    let total = 0;
    let start = "";
    do {
      const step = await ask("/console/bulk/count", { table, start });
      if (!step) return null;
      total += step.count;
      start = step.start;
      said.textContent = `${total.toLocaleString("en")} found so far`;
    } while (start && !stopped);
    return stopped ? null : total;
  }

  // "Delete 15,252 items", "Set size of 2 items"
  const words = (action, total) => {
    const verbs = { delete: "Delete", set: `Set ${name.value} of`, remove: `Remove ${name.value} from` };
    return `${verbs[action]} ${total.toLocaleString("en")} item${total === 1 ? "" : "s"}`;
  };

  const counts = { done: 0, same: 0, left: 0, failed: 0 };
  const summary = (action) => {
    const words = {
      done: action === "delete" ? "deleted" : "changed",
      same: "were so already",
      left: "left alone, because they were changed meanwhile",
      failed: "failed",
    };
    return Object.entries(counts)
      .filter(([which, number]) => number || which === "done")
      .map(([which, number]) => `${number.toLocaleString("en")} ${words[which]}`)
      .join(", ");
  };

  async function work(action, rows, total) {
    const body = { table, action, name: name.value };
    if (action === "set") body.value = { kind: kind.value, text: text.value };
    let start = "";
    let more = true;
    while (more && !stopped) {
      const step = await ask("/console/bulk", rows ? { ...body, chosen: rows } : { ...body, start });
      if (!step) return false;
      for (const which of Object.keys(counts)) counts[which] += step[which];
      for (const { key, why } of step.failures) {
        if (failures.childElementCount >= 100) break;
        const row = document.createElement("li");
        row.append(Object.assign(document.createElement("b"), { textContent: key }), ` ${why}`);
        failures.append(row);
      }
      rows = rows?.slice(step.taken);
      start = step.start;
      more = rows ? rows.length > 0 : Boolean(start) || step.is_slow;
      bar.max = total || 1;
      bar.value = Object.values(counts).reduce((sum, number) => sum + number, 0);
      said.textContent = summary(action) + (step.is_slow ? " (the table takes no more writes now; waiting)" : "");
      if (step.is_slow) await new Promise((over) => setTimeout(over, WAIT_MS));
    }
    return true;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    show("");
    stopped = false;
    failures.replaceChildren();
    for (const which of Object.keys(counts)) counts[which] = 0;
    const action = event.submitter.value;
    const boxes = chosen();
    const rows = boxes.length ? boxes.map((box) => ({ key: box.value, seen: box.dataset.seen })) : null;
    if (form.parentElement.open) form.parentElement.open = false;
    progress.hidden = stop.hidden = false;
    bar.removeAttribute("value");
    said.textContent = "";
    const total = rows ? rows.length : await count();
    const title = total === null ? "" : words(action, total);
    const about = "An item that someone changes meanwhile is skipped.";
    if (total === null || !(await sure(`${title}?`, title, { text: about, red: action === "delete" }))) {
      progress.hidden = true;
      return;
    }
    await work(action, rows, total);
    stop.hidden = true;
    const reload = Object.assign(document.createElement("a"), { href: location.href, textContent: "Show the items again" });
    said.textContent = `${stopped ? "Stopped" : "Done"}: ${summary(action)}. `;
    said.append(reload);
  });
}
