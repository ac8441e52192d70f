// The slider over the past, and bringing items back.

import { counted, send, sure } from "./console.js";
import { shown, typed } from "./header.js";

const DELAY_MILLISECONDS = 250;

for (const form of document.querySelectorAll("form[data-slider]")) {
  const slider = form.querySelector("input[type=range]");
  const output = form.querySelector("[data-moment]");
  let timer;
  slider.addEventListener("input", () => {
    output.textContent = shown(new Date(Number(slider.value) * 1000));
    slider.setAttribute("aria-valuetext", output.textContent);
    clearTimeout(timer);
    if (document.getElementById("past")) timer = setTimeout(() => travel(form), DELAY_MILLISECONDS);
  });
  // Over the versions of an item, an arrow goes to the next version.
  const stops = [...(slider.list?.options ?? [])].map((option) => Number(option.value)).sort((a, b) => a - b);
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!steps || !stops.length) return;
    event.preventDefault();
    const value = Number(slider.value);
    const further = steps > 0 ? stops.find((stop) => stop > value) : stops.findLast((stop) => stop < value);
    if (further === undefined) return;
    slider.value = further;
    slider.dispatchEvent(new Event("input"));
  });
}

// Show the page of another moment in the place of this one; the slider keeps the focus.
async function travel(form) {
  const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
  const answer = await fetch(address).catch(() => null);
  if (!answer) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ["past", "problem"]) {
    const part = page.getElementById(id);
    if (part) document.getElementById(id).replaceWith(part);
  }
  const at = page.querySelector("[data-typed][name=at]");
  if (at) document.querySelector("[data-typed][name=at]").value = typed(at.value);
  history.replaceState(null, "", address);
  choose();
}

function boxes() {
  return [...document.querySelectorAll("[data-key][type=checkbox]")];
}

function chosen() {
  return boxes().filter((box) => box.checked);
}

// Make the list of differences one from which items can be chosen.
function choose() {
  const bar = document.querySelector("[data-back]");
  if (!bar) return;
  const all = bar.querySelector("[data-all]");
  const attempt = bar.querySelector("[data-try]");
  const text = bar.querySelector("[data-chosen]");
  all.hidden = attempt.hidden = false;
  const count = () => {
    const number = chosen().length;
    attempt.disabled = !number;
    if (number) text.textContent = `${counted(number, "item")} chosen`;
  };
  for (const box of boxes()) box.addEventListener("change", count);
  all.addEventListener("click", () => {
    const every = chosen().length < boxes().length;
    for (const box of boxes()) box.checked = every;
    count();
  });
  attempt.addEventListener("click", () => ask(bar));
}

// Try it, say what would happen, and do it when the user is sure.
async function ask(bar) {
  // (keys hold their numbers as text, so parsing them is exact)
  const keys = chosen().map((box) => JSON.parse(box.dataset.key));
  const body = { table: bar.dataset.table, keys, to: bar.dataset.to };
  const tried = await send("/console/past/try", body);
  if (!tried) return;
  const { restored, deleted, unchanged } = tried.counts;
  const text = `As of ${tried.at}: ${restored} would be written back, ${deleted} deleted, ${unchanged} stay as they are. `
    + "The items are restored in one transaction of ordinary writes, which overwrites later changes.";
  if (!(await sure("Restore these items?", "Restore", { text, red: false }))) return;
  const done = await send("/console/past/back", body);
  if (done) location.assign(done.href);
}

choose();
