// The form of an item: a row for each value, made of what the server sends and sent back as text. No value is
// parsed here: a number is the text that was typed. Members of large lists and maps are made when they are
// opened.

const NAMES = {
  S: "string", N: "number", B: "binary", BOOL: "boolean", NULL: "null", L: "list", M: "map",
  SS: "string set", NS: "number set", BS: "binary set",
};
const MEMBERS = { SS: "S", NS: "N", BS: "B" };
const SHOWN_MAX = 50;

// Shows the rows of `text` in `place`. `changed` is called after each change.
export function itemForm(place, text, changed) {
  const item = { kind: "M", name: "", rows: JSON.parse(text) };
  const [list, button] = membersOf(item, changed);
  place.replaceChildren(list, button);
  return {
    text: () => JSON.stringify(item.rows),
    // Adds an attribute, unless there is one of this name, and returns whether it did.
    add: (name, kind) => {
      if (item.rows.some((row) => row.name === name)) return false;
      const row = { kind, name, text: "" };
      item.rows.push(row);
      const made = rowOf(row, item, changed);
      list.append(made);
      made.querySelector("input.value, textarea.value").focus();
      changed();
      return true;
    },
    focus: (name) => {
      const all = [...place.querySelectorAll(":scope > .rows > .row")];
      const chosen = all.find((row) => row.dataset.name === name) ?? place;
      const fields = [...chosen.querySelectorAll("input.value, textarea.value, select.value, .add")];
      const field = fields.find((one) => !one.readOnly);
      field?.focus({ preventScroll: !name });
      if (name) field?.select?.();
      if (name) chosen.scrollIntoView({ block: "nearest" });
    },
  };
}

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const quiet = (text, label, clicked) =>
  element("button", { type: "button", className: "quiet", title: label, ariaLabel: label, onclick: clicked }, text);

const isContainer = (kind) => kind === "L" || kind === "M" || kind in MEMBERS;

// The list of the rows of a map, a list or a set, and the button that adds one.
function membersOf(parent, changed) {
  parent.rows ??= [];
  const list = element(parent.kind === "L" ? "ol" : "ul", { className: "rows" });
  list.append(...parent.rows.map((row) => rowOf(row, parent, changed)));
  const what = parent.kind === "M" ? "attribute" : "member";
  const label = parent.name ? `Add ${what} to ${parent.name}` : `Add ${what}`;
  const add = element("button", { type: "button", className: "quiet add", ariaLabel: label }, `Add ${what}`);
  add.addEventListener("click", () => {
    const last = parent.rows.at(-1);
    const row = { kind: MEMBERS[parent.kind] ?? (parent.kind === "L" && last?.kind) ?? "S", name: "", text: "" };
    row.kind ||= "S";
    parent.rows.push(row);
    const made = rowOf(row, parent, changed);
    list.append(made);
    made.querySelector("input, textarea, select").focus();
    changed();
  });
  return [list, add];
}

// The row of a value: its name, its type, its value, what moves and removes it, and its members below.
function rowOf(row, parent, changed) {
  const line = element("div", { className: "line" });
  const made = element("li", { className: "row" }, line);
  made.dataset.name = row.name ?? "";
  const named = () => (parent.kind === "M" ? row.name || "a new attribute" : `a member of ${parent.name}`);
  const draw = () => {
    line.replaceChildren();
    for (const old of made.querySelectorAll(":scope > :not(.line)")) old.remove();
    if (parent.kind === "M") line.append(nameField(row, changed));
    if (!(parent.kind in MEMBERS)) line.append(typeField(row, named(), redraw));
    const kind = MEMBERS[parent.kind] ?? row.kind;
    if (isContainer(kind)) line.append(...containerOf(made, row, named(), changed));
    else line.append(valueField(row, kind, named(), changed));
    if (row.escaped && kind === "S") line.append(element("span", { className: "soft" }, "with the escapes of JSON"));
    const buttons = element("span", { className: "moves" });
    if (parent.kind === "L") {
      buttons.append(
        quiet("↑", `Move ${named()} up`, () => move(-1)),
        quiet("↓", `Move ${named()} down`, () => move(1)),
      );
    }
    if (!row.key) buttons.append(quiet("✕", `Remove ${named()}`, remove));
    line.append(buttons);
  };
  const redraw = () => {
    draw();
    line.querySelector(".type").focus();
    changed();
  };
  const move = (steps) => {
    const place = parent.rows.indexOf(row);
    const other = place + steps;
    if (other < 0 || other >= parent.rows.length) return;
    parent.rows.splice(place, 1);
    parent.rows.splice(other, 0, row);
    const neighbour = steps < 0 ? made.previousElementSibling : made.nextElementSibling;
    const field = document.activeElement;
    if (steps < 0) neighbour.before(made);
    else neighbour.after(made);
    field.focus();
    changed();
  };
  const remove = () => {
    parent.rows.splice(parent.rows.indexOf(row), 1);
    const next = made.nextElementSibling ?? made.previousElementSibling;
    const focused = next?.querySelector(".moves button:last-child") ?? made.parentElement.nextElementSibling;
    made.remove();
    focused?.focus();
    changed();
  };
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
    } else if (event.altKey && parent.kind === "L" && ["ArrowUp", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      move(event.key === "ArrowUp" ? -1 : 1);
    }
  });
  draw();
  return made;
}

function nameField(row, changed) {
  const field = element("input", {
    className: "name", value: row.name ?? "", ariaLabel: "Name", placeholder: "name", spellcheck: false,
    autocomplete: "off", readOnly: Boolean(row.key),
  });
  field.setAttribute("data-submit-keys", "");
  field.addEventListener("input", () => {
    row.name = field.value;
    changed();
  });
  return field;
}

function typeField(row, named, drawn) {
  if (row.key) return element("span", { className: "kind", title: "key" }, row.kind);
  const field = element("select", { className: "type", ariaLabel: `Type of ${named}` });
  for (const [kind, name] of Object.entries(NAMES)) {
    field.append(element("option", { value: kind, selected: kind === row.kind }, name));
  }
  field.addEventListener("change", () => {
    row.kind = field.value;
    drawn();
  });
  return field;
}

function valueField(row, kind, named, changed) {
  const label = `Value of ${named}`;
  if (kind === "NULL") return element("span", { className: "v-NULL value" }, "null");
  let field;
  if (kind === "BOOL") {
    if (row.text !== "false") row.text = "true";
    field = element("select", { className: "value", ariaLabel: label });
    for (const word of ["true", "false"]) {
      field.append(element("option", { value: word, selected: word === row.text }, word));
    }
  } else if (kind === "N") {
    field = element("input", { className: "value v-N", value: row.text ?? "", ariaLabel: label, inputMode: "decimal", autocomplete: "off" });
  } else {
    field = element("textarea", { className: `value v-${kind}`, rows: 1, ariaLabel: label, spellcheck: false });
    field.value = row.text ?? "";
    if (kind === "B") field.placeholder = "base64";
    const fit = () => (field.rows = Math.min(12, field.value.split("\n").length));
    fit();
    field.addEventListener("input", fit);
  }
  if (row.key && row.text) field.readOnly = true;
  const event = field.tagName === "SELECT" ? "change" : "input";
  field.addEventListener(event, () => {
    row.text = field.value;
    changed();
  });
  return field;
}

// What opens and closes the members of a container; they are made when they are first shown.
function containerOf(made, row, named, changed) {
  row.rows ??= [];
  let parts = null;
  const count = () => `${row.rows.length} member${row.rows.length === 1 ? "" : "s"}`;
  const note = element("span", { className: "soft value" }, count());
  const counted = () => {
    note.textContent = count();
    changed();
  };
  const toggle = quiet("", "", () => open(toggle.ariaExpanded !== "true"));
  const open = (isOpen) => {
    toggle.ariaExpanded = String(isOpen);
    toggle.textContent = isOpen ? "▾" : "▸";
    toggle.ariaLabel = toggle.title = `Members of ${named}`;
    if (isOpen && !parts) {
      parts = membersOf(row, counted);
      made.append(...parts);
    }
    for (const part of parts ?? []) part.hidden = !isOpen;
  };
  open(row.rows.length <= SHOWN_MAX);
  return [toggle, note];
}
