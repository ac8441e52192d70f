// The header of every page: the search, and what each user chooses for this browser.

import { send } from "./console.js";

// An address has room for some 60,000 characters, so a longer text is posted.
const ADDRESS_CHARACTERS_MAX = 10_000;
const PLACES_MAX = 8;

for (const form of document.querySelectorAll("[data-find]")) begin(form);

function begin(form) {
  const field = form.elements.text;
  const list = form.querySelector("[data-places]");
  // On the list of tables the search filters it; elsewhere it opens a list of tables and pages.
  const rows = [...document.querySelectorAll("#tables tbody tr")];
  const links = () => rows.length
    ? rows.filter((row) => !row.hidden && row.isConnected).map((row) => row.querySelector("th a"))
    : [...list.querySelectorAll("a")];
  let places = null;

  field.addEventListener("focus", async () => {
    if (rows.length || places) return;
    const answer = await fetch("/console/places").catch(() => null);
    places = answer?.ok ? await answer.json() : [];
    offer();
  });
  function offer() {
    const search = field.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.name.toLowerCase().includes(search);
    if (rows.length || !places) return;
    const at = ({ title }) => title.toLowerCase().indexOf(search);
    const fitting = search ? places.filter((place) => at(place) >= 0).sort((one, other) => at(one) - at(other)) : [];
    list.replaceChildren(...fitting.slice(0, PLACES_MAX).map(({ title, href, what }) => {
      const row = document.createElement("li");
      const link = Object.assign(document.createElement("a"), { href, textContent: title });
      link.append(Object.assign(document.createElement("span"), { className: "soft", textContent: ` ${what}` }));
      row.append(link);
      return row;
    }));
    list.hidden = !fitting.length;
  }
  field.addEventListener("input", offer);
  form.addEventListener("focusout", (event) => (list.hidden = !form.contains(event.relatedTarget) || list.hidden));
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const place = links().indexOf(event.target);
    if (!step || (place < 0 && event.target !== field) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    (links()[place + step] ?? (place + step < 0 ? field : null))?.focus();
  }, true);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    if (rows.length && field.value && links().length) {
      event.preventDefault();
      links()[0].click();
    } else if (field.value.length > ADDRESS_CHARACTERS_MAX) {
      event.preventDefault();
      const answer = await send("/console/find", { text: field.value });
      if (answer) location.assign(answer.href);
    }
  });
}

// "/" goes to the search, as long as the user does not type.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const field = document.querySelector("[data-slash]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// The server makes the next page as the cookie says.
for (const setting of document.querySelectorAll("[data-setting]")) {
  setting.addEventListener("change", (event) => {
    const name = setting.dataset.setting;
    document.cookie = `hashrange-${name}=${event.target.value}; path=/console; max-age=31536000; samesite=strict`;
    if (name === "times") location.reload();
    else if (event.target.value) document.documentElement.dataset.theme = event.target.value;
    else delete document.documentElement.dataset.theme;
  });
}

// Times as the user has chosen: the pages have those of UTC, and the moment of each in its attribute.
const main = document.querySelector("main[data-times]");
const two = (number, digits = 2) => String(number).padStart(digits, "0");
const zone = (moment) => {
  const minutes = -moment.getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${two(rest)}` : ""}`;
};
const dayOf = (moment) => `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
const timeOf = (moment) => [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map((part) => two(part)).join(":");

// A moment with its zone.
export function shown(moment) {
  if (!main) return `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return `${dayOf(moment)} ${timeOf(moment)} ${zone(moment)}`;
}

// What a field for a moment shows in place of one of UTC. Any other text, such as "10m", stays as it is.
export function typed(text) {
  if (!main || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/.test(text)) return text;
  const moment = new Date(text);
  return `${dayOf(moment)} ${timeOf(moment)}.${two(moment.getMilliseconds(), 3)}`;
}

// What such a field means: a moment without a zone is one of the times that are shown.
function meant(text) {
  const parts = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,3}))?)?)?$/.exec(text.trim());
  if (!parts) return text;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0));
  const moment = new Date(year, month - 1, day, hour, minute, second, Number((parts[7] ?? "").padEnd(3, "0")));
  // (there is no 30th of February: the server says so)
  return moment.getMonth() === month - 1 && moment.getDate() === day ? moment.toISOString() : text;
}

if (main) {
  const show = (part) => {
    const at = part.dateTime ?? part.value;
    const moment = new Date(at);
    const text = part.textContent.trim();
    const rest = /\.\d+/.exec(text)?.[0] ?? "";
    const seconds = /^\d\d:\d\d$/.test(text) ? -3 : undefined;
    const time = timeOf(moment).slice(0, seconds) + rest;
    part.textContent = /^\d\d:/.test(text) ? time : `${dayOf(moment)} ${time}`;
    part.title = `${at} (${zone(moment)} here)`;
    part.dataset.shown = "";
  };
  const showAll = () => {
    for (const part of main.querySelectorAll("time[datetime]:not([data-shown]), option[data-at]:not([data-shown])")) show(part);
    for (const part of main.querySelectorAll("[data-zone]")) if (part.textContent === "UTC") part.textContent = zone(new Date());
  };
  showAll();
  new MutationObserver(showAll).observe(main, { childList: true, subtree: true });
  for (const field of main.querySelectorAll("[data-typed]")) field.value = typed(field.value);
  main.addEventListener("formdata", (event) => {
    for (const field of event.target.querySelectorAll("[data-typed]")) event.formData.set(field.name, meant(field.value));
  });
}
