// Editing an item: its forms, what a save would change, saving and deleting.

import { post, send, sure } from "./console.js";
import { itemForm } from "./items-form.js";

// How long the page waits after a key before it asks what would change: longer for large items.
const QUIET_MS = 300;
const QUIET_MS_MAX = 2000;

for (const form of document.querySelectorAll("form[data-edit]")) begin(form);

function begin(form) {
  const { table } = form.dataset;
  const area = form.elements.edited;
  const place = form.querySelector("[data-rows]");
  const changes = form.querySelector("[data-review]");
  const said = form.querySelector("[data-said]");
  const shown = form.elements.shown.value.trim();
  let mode = form.dataset.form;
  let rows = null;
  let reviewed = "";
  let count = 0;
  let timer = 0;

  const text = () => (mode === "form" ? rows.text() : area.value);
  const state = () => ({ table, shown, edited: text(), form: mode });
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(review, Math.min(QUIET_MS_MAX, QUIET_MS + shown.length / 200));
  };
  const use = (to, edited) => {
    mode = to;
    area.hidden = to === "form";
    place.hidden = to !== "form";
    area.value = to === "form" ? "" : edited;
    rows = to === "form" ? itemForm(place, edited, changed) : null;
    for (const button of form.querySelectorAll("[data-to]")) button.ariaPressed = String(button.dataset.to === to);
    for (const about of form.querySelectorAll("[data-about]")) about.hidden = about.dataset.about !== to;
  };
  async function review() {
    clearTimeout(timer);
    const body = state();
    const { read, problem } = await post("/console/review", body);
    if (body.form !== mode || body.edited !== text()) return;
    reviewed = problem ? "" : body.form + body.edited;
    count = read?.count ?? 0;
    said.textContent = problem || (count ? `${count} change${count === 1 ? "" : "s"}` : "");
    said.classList.toggle("wrong", Boolean(problem));
    changes.innerHTML = read?.html ?? "";
  }
  use(mode, area.value);
  let saved = text();
  area.addEventListener("input", changed);
  addEventListener("beforeunload", (event) => {
    if (text() !== saved) event.preventDefault();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target !== area) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  for (const button of form.querySelectorAll("[data-to]")) {
    button.addEventListener("click", async () => {
      const to = button.dataset.to;
      if (to === mode) return;
      const untouched = text() === saved;
      const done = await send("/console/convert", { ...state(), to });
      if (!done) return;
      use(to, done.edited);
      if (untouched) saved = text();
      else review();
    });
  }

  for (const button of form.querySelectorAll("[data-adds]")) {
    button.addEventListener("click", () => {
      const { adds, kind } = button.dataset;
      button.hidden = true;
      if (!rows.add(adds, kind)) rows.focus(adds);
    });
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (reviewed !== mode + text()) {
      await review();
      if (count) said.textContent += ": look at them, then save again.";
      changes.scrollIntoView({ block: "nearest" });
      return;
    }
    const done = await send("/console/save", state());
    if (!done) return;
    saved = text();
    keep({ href: done.href, table, before: shown, after: done.saved });
    location.assign(done.href);
  });

  form.querySelector("[data-delete]")?.addEventListener("click", async () => {
    const key = document.querySelector(".item-key").textContent.replaceAll(/\s+/g, " ").trim();
    if (!(await sure("Delete this item?", "Delete the item", { text: key }))) return;
    const done = await send("/console/delete", { table, shown });
    if (!done) return;
    saved = text();
    keep({ href: done.href, table, before: shown, after: "" });
    location.assign(done.href);
  });
  if (form.dataset.on !== undefined || mode === "form") rows?.focus(form.dataset.on);
}

// Note what was changed last, so that the next page can undo it.
function keep(change) {
  try {
    sessionStorage.setItem("last change", JSON.stringify(change));
  } catch {
    sessionStorage.removeItem("last change"); // there is no room for an item as large as this one
  }
}
