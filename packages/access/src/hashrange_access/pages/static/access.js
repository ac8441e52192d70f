// Access keys: what is made shows its secret once, in the place of a page; what deletes asks before.

import { send, sure } from "./console.js";

const made = document.getElementById("made");

for (const form of document.querySelectorAll("form[data-secret]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const key = await send(form.dataset.secret, Object.fromEntries(new FormData(form)));
    if (!key) return;
    made.querySelector("[data-of]").textContent = key.of;
    made.querySelector("pre").textContent = key.credentials;
    made.querySelector("[data-then]").textContent = key.then;
    made.hidden = false;
    form.reset();
    made.focus();
    made.scrollIntoView({ block: "nearest" });
  });
}

for (const form of document.querySelectorAll("form[data-delete]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = "Requests that are signed with it are refused from now on. This cannot be undone.";
    if (!(await sure(`Delete the key ${form.elements.id.value}?`, "Delete the key", { text }))) return;
    const done = await send(form.dataset.delete, Object.fromEntries(new FormData(form)));
    if (done) location.assign(done.href);
  });
}
