// The plan and its code follow what the user writes: they are parts of the page that the form would open.
const PAUSE_MILLISECONDS = 500;

for (const form of document.querySelectorAll("[data-plans]")) {
  let waiting = 0;
  let asked = 0;
  const plan = async () => {
    const number = ++asked;
    const parameters = new URLSearchParams(new FormData(form));
    parameters.set("plan", "1");
    let text;
    try {
      text = await (await fetch(`${form.action}?${parameters}`)).text();
    } catch {
      return;
    }
    if (number !== asked) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    const parts = page.querySelectorAll("[data-follows]");
    if (!parts.length) return;
    parts[0].prepend(page.getElementById("problem")?.textContent ?? "");
    document.querySelectorAll("[data-follows]").forEach((part, place) => {
      const open = part.querySelector("details.code")?.open ?? false;
      part.replaceChildren(...parts[place].childNodes);
      for (const code of part.querySelectorAll("details.code")) code.open = open;
    });
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(plan, PAUSE_MILLISECONDS);
  });
}
