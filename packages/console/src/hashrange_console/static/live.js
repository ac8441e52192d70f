// Live pages: rows and parts come as HTML that the server made, by server-sent events.

import { show } from "./console.js";

const ROWS_MAX = 300;

const list = document.querySelector("[data-live]");
const empty = document.querySelector("[data-empty]");
const state = document.querySelector("[data-state]");
const pause = document.querySelector("[data-pause]");
let waiting = [];
let paused = false;

if (list) follow(list.dataset.live);

function follow(address) {
  const source = new EventSource(address);
  source.addEventListener("rows", (event) => {
    const rows = rowsOf(event.data);
    if (paused) {
      waiting = [...rows, ...waiting].slice(0, ROWS_MAX);
      pause.textContent = `Go on (${waiting.length} new)`;
    } else {
      insert(rows);
    }
  });
  source.addEventListener("state", (event) => (state.textContent = event.data));
  source.addEventListener("part", (event) => replace(event.data));
  source.addEventListener("end", (event) => {
    source.close();
    stopped(event.data);
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) stopped("The live rows have stopped.");
  });
  if (pause) pause.hidden = false;
}

// The rows in a piece of HTML. The server has escaped every value in it.
function rowsOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return [...template.content.children];
}

function insert(rows) {
  // (a stream that begins again may send a row a second time)
  const known = new Set([...list.children].map((row) => row.dataset.key));
  list.prepend(...rows.filter((row) => !known.has(row.dataset.key)));
  while (list.children.length > ROWS_MAX) list.lastElementChild.remove();
  if (empty) empty.hidden = list.children.length > 0;
}

// Replace a part of the page by its id, and keep the focus where it was.
function replace(html) {
  for (const part of rowsOf(html)) {
    const former = document.getElementById(part.id);
    const place = former.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    former.replaceWith(part);
    if (place) part.querySelector(`[href="${CSS.escape(place)}"]`)?.focus();
  }
}

function stopped(text) {
  show(text);
  if (!pause) return;
  const again = pause.cloneNode();
  again.textContent = "Start again";
  again.addEventListener("click", () => location.reload());
  pause.replaceWith(again);
}

pause?.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Go on" : "Pause";
  if (!paused) {
    insert(waiting);
    waiting = [];
  }
});
