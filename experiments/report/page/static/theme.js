// The theme follows the system until the reader says otherwise; the choice lasts as long as the page.

const THEMES = ["system", "light", "dark"];

document.getElementById("theme").addEventListener("click", (event) => {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  event.currentTarget.textContent = `Theme: ${next}`;
});
