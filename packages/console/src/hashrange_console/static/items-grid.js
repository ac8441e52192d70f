// The grid of items by keyboard: the arrow keys go from row to row, Space selects, Shift selects a range, typing
// goes to the row whose key begins so, or to the field of the partition key. Choosing and ordering columns.

const TYPING_MS = 900;

const grid = document.querySelector("[data-grid]");
if (grid) useKeys(grid);

function useKeys(grid) {
  let links = [];
  let boxes = [];
  const look = () => {
    links = [...grid.querySelectorAll("tbody th a")];
    boxes = [...grid.querySelectorAll("tbody th input")];
  };
  look();
  grid.addEventListener("sorted", look);
  const all = grid.querySelector("[data-all]");
  const focused = () => links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const partition = document.querySelector("form.query [name=pk]");
  let anchor = 0;
  let typed = "";
  let typedAt = 0;

  const go = (place) => {
    const link = links[Math.max(0, Math.min(links.length - 1, place))];
    link.focus();
    link.closest("tr").scrollIntoView({ block: "nearest" });
  };
  const mark = (place, value) => {
    boxes[place].checked = value;
    boxes[place].closest("tr").classList.toggle("chosen", value);
  };
  const showChosen = () => {
    all.checked = boxes.every((box) => box.checked);
    all.indeterminate = !all.checked && boxes.some((box) => box.checked);
    const chosen = boxes.filter((box) => box.checked).length;
    document.dispatchEvent(new CustomEvent("chosen", { detail: chosen }));
  };
  const range = (from, to, value) => {
    for (let place = Math.min(from, to); place <= Math.max(from, to); place++) mark(place, value);
    showChosen();
  };

  all.hidden = false;
  all.addEventListener("change", () => range(0, boxes.length - 1, all.checked));
  for (const box of boxes) {
    box.addEventListener("click", (event) => {
      const place = boxes.indexOf(box);
      if (event.shiftKey) range(anchor, place, box.checked);
      else mark(place, box.checked);
      anchor = place;
      showChosen();
    });
  }

  const keyed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const place = focused();
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -links.length, End: links.length };
    if (event.key in steps && !event.target.closest("pre")) {
      event.preventDefault();
      const next = Math.max(0, Math.min(links.length - 1, place + steps[event.key]));
      if (event.shiftKey && place >= 0) range(place, next, true);
      go(next);
    } else if (event.key === " " && place >= 0 && event.target === links[place]) {
      event.preventDefault();
      const value = !boxes[place].checked;
      if (event.shiftKey) range(anchor, place, true);
      else range(place, place, value);
      anchor = place;
    } else if (event.key.length === 1 && event.key !== "/" && event.key !== " " && !event.target.closest("input")) {
      typed = event.timeStamp - typedAt < TYPING_MS ? typed + event.key : event.key;
      typedAt = event.timeStamp;
      const search = typed.toLowerCase();
      const place = links.findIndex((link) => link.dataset.label.toLowerCase().startsWith(search));
      if (place >= 0) {
        go(place);
      } else if (partition) {
        event.preventDefault();
        partition.value = typed;
        partition.focus();
      }
    }
  };
  grid.addEventListener("keydown", keyed);
  // So they do before anything has the focus.
  document.addEventListener("keydown", (event) => {
    const scrolls = ["Home", "End", "PageUp", "PageDown"].includes(event.key);
    if (event.target === document.body && !scrolls) keyed(event);
  });
  // The browser keeps boxes checked when it comes back to a page.
  for (const [place, box] of boxes.entries()) mark(place, box.checked);
  addEventListener("pageshow", showChosen);
  showChosen();
}

for (const form of document.querySelectorAll("[data-columns]")) {
  for (const row of form.querySelectorAll("li")) {
    const name = row.textContent.trim();
    for (const [text, label, steps] of [["↑", "up", -1], ["↓", "down", 1]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "quiet";
      button.textContent = text;
      button.ariaLabel = `Move ${name} ${label}`;
      button.addEventListener("click", () => {
        const other = steps < 0 ? row.previousElementSibling : row.nextElementSibling;
        if (!other) return;
        if (steps < 0) other.before(row);
        else other.after(row);
        button.focus();
      });
      row.append(button);
    }
  }
}
