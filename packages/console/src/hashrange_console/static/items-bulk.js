// Changing many items, step by step: each request works for a second at most and says how far it has come.

import { post, show } from "./console.js";

const WAIT_MS = 1000;

const part = document.querySelector("[data-bulk]");
const selected = document.querySelector("[data-selected]");
if (selected) {
  const showCount = (count) => {
    selected.textContent = count ? `${count} selected` : "none is selected";
    const option = part?.querySelector("option[value=chosen]");
    if (!option) return;
    option.textContent = `the selected items (${count})`;
    option.disabled = !count;
    if (count) option.selected = true;
    else part.querySelector("option[value=found]").selected = true;
  };
  document.addEventListener("chosen", (event) => showCount(event.detail));
  showCount(document.querySelectorAll("[data-grid] tbody th input:checked").length);
}
if (part) begin(part);

function begin(part) {
  const { table } = part.dataset;
  const form = part.querySelector("form");
  const { which, action, name, kind, text } = form.elements;
  const progress = part.querySelector("[data-progress]");
  const bar = progress.querySelector("progress");
  const said = part.querySelector("[data-said]");
  const stop = part.querySelector("[data-stop]");
  const failures = part.querySelector("[data-failures]");
  const sure = document.getElementById("bulk-sure");
  let stopped = false;

  // The address of the grid says what is found; its scope is added by `post`.
  const path = (where) => {
    const given = new URLSearchParams(location.search);
    for (const other of ["start", "back", "scope"]) given.delete(other);
    return `${where}?${given}`;
  };
  const chosen = () => [...document.querySelectorAll("[data-grid] tbody th input:checked")].map(
    (box) => ({ key: box.value, seen: box.dataset.seen }),
  );
  const adapt = () => {
    for (const label of form.querySelectorAll("[data-for]")) {
      label.hidden = !label.dataset.for.split(" ").includes(action.value);
    }
  };
  action.addEventListener("change", adapt);
  adapt();
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

  async function confirmed(total) {
    const verbs = { delete: "Delete", set: `Set ${name.value} of`, remove: `Remove ${name.value} from` };
    sure.querySelector("h2").textContent =
      `${verbs[action.value]} ${total.toLocaleString("en")} item${total === 1 ? "" : "s"}?`;
    sure.returnValue = "";
    sure.showModal();
    await new Promise((closed) => sure.addEventListener("close", closed, { once: true }));
    return sure.returnValue === "yes";
  }
  sure.querySelector("[data-sure]").addEventListener("click", () => sure.close("yes"));
  sure.querySelector("[data-cancel]").addEventListener("click", () => sure.close(""));

  const counts = { done: 0, same: 0, left: 0, failed: 0 };
  const summary = () => {
    const words = {
      done: action.value === "delete" ? "deleted" : "changed",
      same: "were so already",
      left: "left alone, because they were changed meanwhile",
      failed: "failed",
    };
    return Object.entries(counts)
      .filter(([which, number]) => number || which === "done")
      .map(([which, number]) => `${number.toLocaleString("en")} ${words[which]}`)
      .join(", ");
  };

  async function work(rows, total) {
    const body = { table, action: action.value, name: name.value };
    if (action.value === "set") body.value = { kind: kind.value, text: text.value };
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
      said.textContent = summary() + (step.is_slow ? " (the table takes no more writes now; waiting)" : "");
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
    if (which.value === "chosen" && !chosen().length) {
      show("Select items first: by the boxes of their rows, or by Space.");
      return;
    }
    const rows = which.value === "chosen" ? chosen() : null;
    progress.hidden = stop.hidden = false;
    bar.removeAttribute("value");
    const total = rows ? rows.length : await count();
    if (total === null || !(await confirmed(total))) {
      progress.hidden = true;
      return;
    }
    const button = form.querySelector("button");
    button.disabled = true;
    await work(rows, total);
    button.disabled = false;
    stop.hidden = true;
    const reload = Object.assign(document.createElement("a"), { href: location.href, textContent: "Show the items again" });
    said.textContent = `${stopped ? "Stopped" : "Done"}: ${summary()}. `;
    said.append(reload);
  });
}
