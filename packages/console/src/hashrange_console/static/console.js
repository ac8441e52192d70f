// What every page does beyond links and forms: keys, filters of lists, copying; and what other scripts use.
// Items are never parsed here: their text goes to the server as it is, so that no number loses a digit.

const problem = document.getElementById("problem");

// Show a problem at the top of the page; "" hides it.
export function show(text) {
  if (!problem) return text && alert(text);
  problem.textContent = text;
  problem.hidden = !text;
  if (text) problem.scrollIntoView({ block: "nearest" });
}

// Post JSON, in the scope of the page. Returns the answer's value in `read`, or the text of a problem.
export async function post(path, body) {
  const scope = new URLSearchParams(location.search).get("scope");
  const url = new URL(path, location.origin);
  if (scope) url.searchParams.set("scope", scope);
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const read = await answer.json();
    return answer.ok ? { read, problem: "" } : { read: null, problem: read.error };
  } catch {
    return { read: null, problem: "The server does not answer. Is it running?" };
  }
}

// The same. Shows the problem and returns null if there is one.
export async function send(path, body) {
  show("");
  const { read, problem } = await post(path, body);
  if (problem) show(problem);
  return read;
}

// What was done is said on the page that is loaded after it.
const KEPT = "hashrange-done";
export const later = (text) => sessionStorage.setItem(KEPT, text);
const done = sessionStorage.getItem(KEPT);
sessionStorage.removeItem(KEPT);
if (done) {
  const said = Object.assign(document.createElement("p"), { className: "notice done", role: "status", textContent: done, tabIndex: -1 });
  (document.querySelector("main .tabs") ?? document.querySelector("main .head")).after(said);
  said.focus();
}

// On a phone the tabs scroll: the page's own is seen.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// Ask whether to do something: the button names it. What deletes is red, and never what Enter does.
export async function sure(title, act, { text = "", red = true } = {}) {
  const made = (tag, members) => Object.assign(document.createElement(tag), members);
  const dialog = made("dialog", { ariaLabel: title });
  const form = made("form", { method: "dialog", className: "actions" });
  const yes = made("button", { value: "yes", textContent: act, className: red ? "deletes" : "primary" });
  const no = made("button", { value: "", textContent: "Cancel" });
  (red ? no : yes).autofocus = true;
  form.append(yes, no);
  dialog.append(made("h2", { textContent: title }), ...(text ? [made("p", { textContent: text })] : []), form);
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  dialog.remove();
  return dialog.returnValue === "yes";
}

// What opens below a button closes by Escape, and by a click elsewhere.
const closeDrops = (but) => {
  for (const drop of document.querySelectorAll(".drop[open]")) drop.open = drop.contains(but);
};
document.addEventListener("click", (event) => closeDrops(event.target));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const summary = document.activeElement?.closest(".drop[open]")?.querySelector("summary");
  closeDrops(null);
  summary?.focus();
});

// A number of things: "1 item", "2 items".
export const counted = (number, noun) => `${number} ${noun}${Number(number) === 1 ? "" : "s"}`;

// Buttons that copy the text beside them are shown where the browser lets pages copy.
if (navigator.clipboard) document.documentElement.classList.add("copies");
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.closest(".copied, section").querySelector("pre").textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser refuses";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
});

for (const field of document.querySelectorAll("[data-submit-keys]")) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      field.form.requestSubmit();
    }
  });
}

// The section of a request as code.
export function snippet([language, text]) {
  const section = document.createElement("section");
  const title = document.createElement("h2");
  title.className = "language";
  const pre = document.createElement("pre");
  title.append(language, " ", Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Copy" }));
  title.lastChild.dataset.copy = "";
  pre.textContent = text;
  pre.tabIndex = 0;
  section.append(title, pre);
  return section;
}
