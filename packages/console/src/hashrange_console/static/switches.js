// The switches: fault rules and the clock.

import { send } from "./console.js";

async function change(path, body) {
  const done = await send(path, body);
  if (done) location.assign(done.href);
}

for (const form of document.querySelectorAll("form[data-fault]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change("/console/faults/add", Object.fromEntries(new FormData(form)));
  });
}

for (const button of document.querySelectorAll("[data-remove]")) {
  button.addEventListener("click", () => change("/console/faults/remove", { number: button.dataset.remove }));
}

for (const form of document.querySelectorAll("form[data-clock]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change("/console/clock/change", { [form.dataset.clock]: new FormData(form).get("value") });
  });
}

for (const button of document.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => change("/console/clock/change", { advance: button.dataset.step }));
}

for (const button of document.querySelectorAll("[data-frozen]")) {
  button.addEventListener("click", () => change("/console/clock/change", { frozen: button.dataset.frozen === "true" }));
}
