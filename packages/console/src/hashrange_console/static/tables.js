// Pages about tables: their forms, the demo table, and what changes by itself.

import { counted, later, send, snippet, sure } from "./console.js";

const problem = document.getElementById("problem");
function goOn(said, href) {
  later(said);
  if (href) location.assign(href);
  else location.reload();
}

// What a form sends. A field with data-flag is true or false. The fields of each fieldset with data-list are an
// object in the list of that name, of the form or of the fieldset around it.
function gathered(form) {
  const body = {};
  const places = new Map();
  for (const list of form.querySelectorAll("fieldset[data-list]")) {
    const place = {};
    places.set(list, place);
    const around = places.get(list.parentElement.closest("fieldset[data-list]")) ?? body;
    (around[list.dataset.list] ??= []).push(place);
  }
  for (const field of form.elements) {
    if (!field.name || field.disabled) continue;
    const place = places.get(field.closest("fieldset[data-list]")) ?? body;
    if (field.type === "checkbox") place[field.name] = field.checked;
    else place[field.name] = "flag" in field.dataset ? field.value !== "" : field.value;
  }
  return body;
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  const preview = event.submitter !== null && "preview" in event.submitter.dataset;
  if (!preview && form.dataset.sure && !(await sure(form.dataset.sure, form.dataset.sure.replace("?", "")))) return;
  const code = form.querySelector("[data-code]");
  if (code) {
    code.before(problem); // a problem is shown at the form that has it
    code.replaceChildren();
  }
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  const answer = await send(form.dataset.post, preview ? { ...gathered(form), preview } : gathered(form));
  for (const button of buttons) button.disabled = false;
  if (answer?.code) code.replaceChildren(...answer.code.map(snippet));
  else if (answer) goOn(answer.said, answer.href);
});

// A field or button with data-for="name=value" is shown only if the field of that name beside it has that value.
function adapt(form) {
  for (const field of form.querySelectorAll("[data-for]")) {
    const [name, value] = field.dataset.for.split("=");
    const place = field.closest("fieldset[data-list]") ?? form;
    const other = place.querySelector(`[name="${name}"]`) ?? form.querySelector(`[name="${name}"]`);
    const fits = !other || other.value === value;
    (field.closest("label") ?? field).hidden = !fits;
    field.disabled = !fits;
  }
}
document.addEventListener("input", (event) => event.target.form && adapt(event.target.form));
for (const form of document.querySelectorAll("form[data-post]")) adapt(form);

// More of the same fields, made from a template.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-more]");
  if (!button) return;
  const copy = document.getElementById(button.dataset.more).content.cloneNode(true);
  const first = copy.querySelector("input, select");
  button.parentElement.before(copy);
  adapt(button.form);
  first.focus();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-less]");
  if (!button) return;
  const list = button.closest("fieldset");
  const around = list.parentElement.closest("fieldset") ?? button.form;
  list.remove();
  around.querySelector("[data-more]").focus();
});

// The demo table: made, then filled step by step, so that its progress is seen.
const demo = document.querySelector("[data-demo]");
demo?.addEventListener("click", async () => {
  const state = demo.closest("section").querySelector(".filling");
  state.before(problem);
  demo.hidden = true;
  state.hidden = false;
  state.textContent = "Creating the table …";
  let step = await send("/console/demo", "started" in demo.dataset ? { next: 0 } : {});
  while (step && !step.ready) {
    const bar = document.createElement("progress");
    Object.assign(bar, { max: step.count, value: step.next, ariaLabel: "Items written" });
    state.replaceChildren(bar, ` ${step.next} of ${counted(step.count, "item")}`);
    if (step.waits) await new Promise((resolve) => setTimeout(resolve, 500));
    step = await send("/console/demo", { next: step.next });
  }
  state.hidden = !step;
  demo.hidden = Boolean(step);
  if (!step) return;
  const link = document.createElement("a");
  Object.assign(link, { href: step.href, textContent: "open the table" });
  state.replaceChildren(`${step.count} items are there: `, link);
  link.focus();
});

// What changes by itself is asked for again, ever more rarely, until nothing changes any more.
const PAUSE_MAX = 10_000;
const SAME_MAX = 30;

async function follow() {
  let same = 0;
  for (let pause = 700; document.querySelector("[data-busy]") && same < SAME_MAX; pause *= 1.2) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(pause, PAUSE_MAX)));
    if (document.hidden) continue;
    let answer;
    try {
      answer = await fetch(location.href);
    } catch {
      return;
    }
    if (answer.status === 404) location.assign("/console");
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const news = new Map([...page.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, part]));
    same += 1;
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = news.get(part.dataset.live);
      if (!other) part.closest("tr")?.remove(); // a table that was deleted
      else if (other.innerHTML === part.innerHTML || part.contains(document.activeElement)) continue;
      else part.replaceChildren(...other.childNodes);
      same = 0;
    }
    // The forms of a table that was made meanwhile, and the demo table of an empty list, come with the whole page.
    if (forms(page) !== forms(document) && !page.querySelector("[data-busy]")) location.reload();
  }
}

function forms(page) {
  return page.querySelectorAll("form[data-post], [data-demo]").length;
}

follow();
