// What the console's pages do beyond links and forms: keys, the filter of the list, and changes.
// Items are never parsed here: their text goes to the server as it is, so that no number loses a digit.

const problem = document.getElementById("problem");

function show(text) {
  problem.textContent = text;
  problem.hidden = !text;
  if (text) problem.scrollIntoView({ block: "nearest" });
}

async function send(path, body) {
  const scope = new URLSearchParams(location.search).get("scope");
  const url = scope ? `${path}?${new URLSearchParams({ scope })}` : path;
  show("");
  let answer, read;
  try {
    answer = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    read = await answer.json();
  } catch {
    show("The server does not answer. Is it running?");
    return null;
  }
  if (!answer.ok) {
    show(read.error);
    return null;
  }
  return read;
}

// "/" goes to the search, as long as the user does not type.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const field = document.querySelector("[data-slash]");
  if (field) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

for (const field of document.querySelectorAll("[data-filters]")) {
  field.addEventListener("input", () => {
    const search = field.value.toLowerCase();
    for (const row of document.querySelectorAll(`#${field.dataset.filters} tbody tr`)) {
      row.hidden = !row.dataset.name.toLowerCase().includes(search);
    }
  });
}

for (const button of document.querySelectorAll("[data-copy]")) revealCopy(button);

function revealCopy(button) {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.closest("section").querySelector("pre").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

for (const field of document.querySelectorAll("select[data-submits]")) {
  // The fields of the keys are those of another index, so their values do not go along.
  field.addEventListener("change", () => {
    for (const other of field.form.querySelectorAll("[name=pk], [name=sk], [name=sk2], [name=op]")) {
      other.disabled = true;
    }
    field.form.requestSubmit();
  });
}

for (const field of document.querySelectorAll("select[name=op]")) {
  const second = field.form.querySelector(".second");
  const adapt = () => (second.hidden = field.value !== "between");
  field.addEventListener("change", adapt);
  adapt();
}

for (const field of document.querySelectorAll("[data-submit-keys], form[data-edit] textarea")) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      field.form.requestSubmit();
    }
  });
}

for (const form of document.querySelectorAll("form[data-edit]")) {
  const table = form.dataset.table;
  const edited = form.elements.edited;
  const shown = form.elements.shown ? form.elements.shown.value : "";
  let saved = edited.value;
  addEventListener("beforeunload", (event) => {
    if (edited.value !== saved) event.preventDefault();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const done = await send("/console/save", { table, shown, edited: edited.value });
    if (done) {
      saved = edited.value;
      location.assign(done.href);
    }
  });
  form.querySelector("[data-preview]").addEventListener("click", async () => {
    const done = await send("/console/save", { table, shown, edited: edited.value, preview: true });
    if (done) form.querySelector("[data-code]").replaceChildren(...done.code.map(snippet));
  });
  const sure = document.getElementById("sure");
  if (!sure) continue;
  form.querySelector("[data-delete]").addEventListener("click", () => sure.showModal());
  sure.querySelector("[data-cancel]").addEventListener("click", () => sure.close());
  sure.querySelector("[data-sure]").addEventListener("click", async () => {
    sure.close();
    const done = await send("/console/delete", { table, shown });
    if (done) {
      saved = edited.value;
      location.assign(done.href);
    }
  });
}

function snippet([language, text]) {
  const section = document.createElement("section");
  const title = document.createElement("h2");
  title.className = "language";
  const pre = document.createElement("pre");
  title.textContent = language;
  pre.textContent = text;
  pre.tabIndex = 0;
  section.append(title, pre);
  return section;
}

for (const button of document.querySelectorAll("[data-undo]")) {
  button.addEventListener("click", async () => {
    if (!confirm(`Bring back the item as it was at ${button.dataset.to}?`)) return;
    // (a key holds its numbers as text, so parsing it is exact)
    const key = JSON.parse(button.dataset.key);
    const done = await send("/console/undo", { table: button.dataset.table, key, to: button.dataset.to });
    if (done) location.assign(done.href);
  });
}

for (const button of document.querySelectorAll("[data-run-change]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    const statement = document.getElementById("statement").defaultValue;
    const done = await send("/console/run", { statement });
    if (done) {
      const units = done.units === null ? "" : ` It cost ${done.units} capacity units.`;
      document.querySelector("[data-done]").textContent = `Done.${units}`;
    } else {
      button.disabled = false;
    }
  });
}
