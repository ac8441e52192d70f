// Pages of items: the form of the grid, the tree of an item, bringing back, undoing what was saved.

import { later, send, sure } from "./console.js";

for (const field of document.querySelectorAll("select[data-submits]")) {
  // The fields of the keys are those of another index, so their values do not go along.
  field.addEventListener("change", () => {
    for (const other of field.form.querySelectorAll("[name=pk], [name=sk], [name=sk2], [name=op]")) {
      other.disabled = true;
    }
    field.form.requestSubmit();
  });
}

for (const [place, field] of document.querySelectorAll("select[name=op]").entries()) {
  const second = field.form.querySelectorAll(".second")[place];
  const adapt = () => (second.hidden = field.value !== "between");
  field.addEventListener("change", adapt);
  adapt();
}

for (const button of document.querySelectorAll("[data-undo]")) {
  button.addEventListener("click", async () => {
    if (!(await sure(`Restore the item as of ${button.dataset.to}?`, "Restore", { red: false }))) return;
    // (a key holds its numbers as text, so parsing it is exact)
    const key = JSON.parse(button.dataset.key);
    const done = await send("/console/undo", { table: button.dataset.table, key, to: button.dataset.to });
    if (!done) return;
    later(`The item is as it was at ${button.dataset.to}.`);
    location.assign(done.href);
  });
}

for (const notice of document.querySelectorAll("[data-saved]")) {
  notice.querySelector("[data-undo-save]").addEventListener("click", async () => {
    const { table, saved } = notice.dataset;
    const key = JSON.parse(notice.dataset.key);
    const done = await send("/console/undo-save", { table, key, since: saved });
    if (!done) return;
    later("Undone: the item is as it was before.");
    location.assign(done.href);
  });
}

// What this tab saved or deleted last, for tables whose past is not kept.
function lastChange() {
  const kept = JSON.parse(sessionStorage.getItem("last change") ?? "null");
  return kept?.href === location.pathname + location.search ? kept : null;
}

const last = lastChange();
if (last && !document.querySelector("[data-saved]")) {
  const notice = document.createElement("p");
  notice.className = "notice done";
  notice.role = "status";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Undo";
  notice.append(last.after ? "Saved. " : "Deleted. ", button);
  document.querySelector(".head").after(notice);
  button.addEventListener("click", async () => {
    const { table, before, after } = last;
    const [path, body] = before
      ? ["/console/save", { table, shown: after, edited: before }]
      : ["/console/delete", { table, shown: after }];
    const done = await send(path, body);
    if (!done) return;
    sessionStorage.removeItem("last change");
    later(before ? "Undone: the item is as it was before." : "Undone: the item is deleted again.");
    location.assign(done.href);
  });
}

// In the tree, the arrow keys go from attribute to attribute, and typing goes to the one whose name begins so;
// Enter or "e" edits one.
const TYPING_MS = 900;
const tree = document.querySelector(".tree[data-edits]");
if (tree) {
  const rows = [...tree.children];
  for (const row of rows) row.tabIndex = row === rows[0] ? 0 : -1;
  let typed = "";
  let typedAt = -TYPING_MS;
  const nameOf = (row) => row?.querySelector(".name")?.textContent;
  const edit = (row) => {
    const name = nameOf(row);
    location.assign(tree.dataset.edits + (name ? `&on=${encodeURIComponent(name)}` : ""));
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows.includes(event.target) ? event.target : null;
    const isTyping = event.timeStamp - typedAt < TYPING_MS;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "e" && !isTyping) {
      edit(event.target.closest(".tree > li"));
    } else if (event.key.length === 1 && event.key !== "/" && event.key !== " ") {
      typed = isTyping ? typed + event.key : event.key;
      typedAt = event.timeStamp;
      rows.find((row) => nameOf(row).toLowerCase().startsWith(typed.toLowerCase()))?.focus();
    } else if (event.key === "Enter" && row) {
      edit(row);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const place = rows.indexOf(row);
      const next = row || document.activeElement === document.body
        ? rows[event.key === "ArrowDown" ? place + 1 : Math.max(0, place - 1)]
        : null;
      if (!next) return;
      event.preventDefault();
      next.focus();
    }
  });
}
