// Light and dark: as the system has it until a person chooses, and always light on paper. The event "themechange" of the
// document says that it changed.

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const paper = { printing: false };
const chosenTheme = () => document.documentElement.dataset.theme || "";
const isDark = () => !paper.printing && (chosenTheme() ? chosenTheme() === "dark" : darkScheme.matches);

// chooseTheme takes "light", "dark", or "" for the system's.
function chooseTheme(choice) {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  themeChanged();
}

const themeButton = html("button", { type: "button", class: "theme", title: "Dark or light", "aria-label": "Dark colours", "aria-pressed": "false", onclick: () => {
  const next = isDark() ? "light" : "dark";
  chooseTheme(next === (darkScheme.matches ? "dark" : "light") ? "" : next);
} }, "◐");

function themeChanged() {
  themeButton.setAttribute("aria-pressed", String(isDark()));
  document.dispatchEvent(new Event("themechange"));
}

document.querySelector(".wordmark").before(themeButton);
darkScheme.addEventListener("change", themeChanged);
themeChanged();
for (const [when, printing] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(when, () => {
    paper.printing = printing;
    document.dispatchEvent(new Event("themechange"));
  });
}
