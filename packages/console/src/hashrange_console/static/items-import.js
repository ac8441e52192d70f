// Importing a file: it is sent in pieces, which the server reads; so a file of any size takes little memory.

import { post, send, show } from "./console.js";

const PIECE_BYTES = 256 * 1024;
const PIECE_BYTES_MAX = 8 * 1024 * 1024;
const ERRORS_MAX = 200;

for (const form of document.querySelectorAll("[data-import]")) begin(form);

// The base64 of a part of a file.
function base64(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(blob);
  });
}

// The file, or the text in it if it is compressed with gzip.
async function unpacked(file) {
  const mark = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (mark[0] !== 0x1f || mark[1] !== 0x8b) return file;
  const text = file.stream().pipeThrough(new DecompressionStream("gzip"));
  return new File([await new Response(text).blob()], file.name.replace(/\.gz$/i, ""));
}

function begin(form) {
  const { table } = form.dataset;
  const start = form.querySelector("[data-start]");
  const preview = document.querySelector("[data-preview]");
  const progress = document.querySelector("[data-progress]");
  const bar = progress.querySelector("progress");
  const said = progress.querySelector("[data-said]");
  const stop = progress.querySelector("[data-stop]");
  const failures = document.querySelector("[data-failures]");
  let stopped = false;
  let running = false;
  let chosen = null;
  let kinds = {};

  const piece = async (file, place, size, layout) => ({
    table,
    name: file.name,
    piece: size && place < file.size ? await base64(file.slice(place, place + size)) : "",
    is_first: !place,
    is_last: place + size >= file.size,
    layout,
    keep: form.elements.keep.checked,
  });

  form.elements.file.addEventListener("change", async () => {
    const [given] = form.elements.file.files;
    preview.replaceChildren();
    failures.replaceChildren();
    progress.hidden = true;
    start.disabled = true;
    chosen = null;
    if (!given) return;
    const file = await unpacked(given).catch(() => null);
    if (given !== form.elements.file.files[0]) return;
    if (!file) return show(`${given.name} is damaged: it cannot be unpacked.`);
    chosen = file;
    kinds = {};
    await look(file);
  });
  async function look(file) {
    for (let size = PIECE_BYTES; ; size *= 4) {
      const done = await send("/console/import/preview", await piece(file, 0, size, { kinds }));
      if (!done) return;
      if (!done.rows && size < file.size && size < PIECE_BYTES_MAX) continue;
      preview.innerHTML = done.html;
      kinds = done.kinds;
      start.disabled = !done.rows;
      return;
    }
  }
  // Another type of a column: the rows are shown as they are read then.
  preview.addEventListener("change", async (event) => {
    const name = event.target.dataset.kind;
    kinds = { ...kinds, [name]: event.target.value };
    await look(chosen);
    preview.querySelector(`[data-kind="${CSS.escape(name)}"]`)?.focus();
  });

  stop.addEventListener("click", () => (stopped = true));
  addEventListener("beforeunload", (event) => {
    if (running) event.preventDefault();
  });

  const counts = { written: 0, kept: 0, errors: 0 };
  const summary = () => {
    const words = { written: "written", kept: "left alone", errors: "with errors" };
    return Object.entries(counts)
      .filter(([which, number]) => number || which === "written")
      .map(([which, number]) => `${number.toLocaleString("en")} ${words[which]}`)
      .join(", ");
  };
  const tell = (line, why) => {
    if (failures.childElementCount >= ERRORS_MAX) return;
    const row = document.createElement("li");
    row.append(Object.assign(document.createElement("b"), { textContent: `Line ${line}` }), ` ${why}`);
    failures.append(row);
  };

  async function work(file) {
    let place = 0;
    let lines = 0;
    let size = PIECE_BYTES;
    let layout = { kinds };
    while (!stopped) {
      const { read, problem } = await post("/console/import", await piece(file, place, size, layout));
      if (problem) {
        show(problem);
        return false;
      }
      for (const { line, why } of read.errors) tell(lines + line, why);
      counts.errors += read.errors.length;
      counts.written += read.written;
      counts.kept += read.kept;
      layout = read.layout;
      bar.value = Math.min(1, (place + read.reached) / file.size);
      said.textContent = summary();
      if (read.is_over) return true;
      if (read.reached) {
        place += read.reached;
        lines += read.lines;
        size = PIECE_BYTES;
      } else if (size < PIECE_BYTES_MAX) {
        size *= 2;
      } else {
        show(`The row at line ${lines + 1} has more than 8 MB, so the import ended there.`);
        return false;
      }
    }
    return false;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = chosen;
    if (!file) return;
    show("");
    for (const which of Object.keys(counts)) counts[which] = 0;
    failures.replaceChildren();
    preview.querySelector(".failures")?.remove();
    stopped = false;
    running = true;
    start.disabled = true;
    progress.hidden = stop.hidden = false;
    bar.max = 1;
    bar.value = 0;
    const all = await work(file);
    running = false;
    stop.hidden = true;
    start.disabled = false;
    const rest = counts.errors > ERRORS_MAX ? ` The first ${ERRORS_MAX} errors are shown.` : "";
    said.textContent = `${all ? "Done" : "Stopped"}: ${summary()}.${rest} `;
    said.append(Object.assign(document.createElement("a"), { href: form.dataset.items, textContent: "Show the items" }));
    said.lastChild.focus();
  });
}
