// The copy buttons: each puts the text of the <code> beside it on the clipboard, and says so.

(() => {
"use strict";

const announcer = document.createElement("p");
announcer.className = "copy-status reader-only";
announcer.setAttribute("role", "status");
document.body.append(announcer);

let forget;

function say(button, label, message, seen) {
  clearTimeout(forget);
  for (const other of document.querySelectorAll(".copy--said")) reset(other);
  button.textContent = label;
  button.classList.add("copy--said");
  announcer.textContent = message;
  announcer.classList.toggle("reader-only", !seen);
  forget = setTimeout(() => {
    reset(button);
    announcer.textContent = "";
    announcer.classList.add("reader-only");
  }, seen ? 8000 : 2500);
}

function reset(button) {
  button.textContent = "Copy";
  button.classList.remove("copy--said");
}

// Where there is no clipboard (plain http, file://) or it is forbidden (a frame), the browser copies the
// selection. If that fails as well, the text stays selected, ready to be copied by hand.
function copySelection(code) {
  const exactly = (event) => {
    event.clipboardData.setData("text/plain", code.textContent);
    event.preventDefault();
  };
  getSelection().selectAllChildren(code);
  document.addEventListener("copy", exactly);
  const done = document.execCommand("copy");
  document.removeEventListener("copy", exactly);
  if (done) getSelection().removeAllRanges();
  return done;
}

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    if (!copySelection(code)) {
      say(button, "Failed", "The browser does not let this page copy. Select it and copy by hand.", true);
      return;
    }
  }
  say(button, "Copied", `Copied: ${code.textContent}`, false);
}

for (const button of document.querySelectorAll(".copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
})();
