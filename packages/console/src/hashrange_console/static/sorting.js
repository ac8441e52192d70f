// The columns of the rows that a page shows: a click on a column's name sorts the rows by it.

// Numbers by their values, other texts by letters, and what an item does not have last.
function sorted(rows, place, step) {
  const values = new Map(rows.map((row) => {
    const value = row.children[place].querySelector("bdi");
    const text = value?.textContent ?? row.children[place].textContent.trim();
    return [row, { missing: !value && /^[–-]?$/.test(text), number: value?.className === "v-N" ? Number(text) : NaN, text }];
  }));
  return rows.sort((one, other) => {
    const [a, b] = [values.get(one), values.get(other)];
    if (a.missing || b.missing) return a.missing - b.missing;
    const difference = a.number - b.number;
    return step * (difference || a.text.localeCompare(b.text, "en"));
  });
}

for (const table of document.querySelectorAll(".grid > table")) {
  const heads = [...table.tHead.rows[0].cells];
  for (const [place, head] of heads.entries()) {
    const name = head.querySelector("bdi");
    if (!name) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "sorter", title: "Sort the rows of this page" });
    name.replaceWith(button);
    button.append(name);
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.ariaSort = down ? "descending" : "ascending";
      table.tBodies[0].append(...sorted([...table.tBodies[0].rows], place, down ? -1 : 1));
      table.dispatchEvent(new CustomEvent("sorted", { bubbles: true }));
    });
  }
}
