// Forms that change something and then show another page: data-post names where their fields go, as JSON.

import { send } from "./console.js";

for (const form of document.querySelectorAll("form[data-post]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const done = await send(form.dataset.post, Object.fromEntries(new FormData(form)));
    if (done) location.assign(done.href);
  });
}
