// In a frame there is no switch for light and dark: the page follows the reader's system.

(() => {
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  document.body.dataset.mdColorScheme = dark.matches ? "slate" : "default";
}

dark.addEventListener("change", follow);
follow();
})();
