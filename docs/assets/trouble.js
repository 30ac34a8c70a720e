// The field on the page "Trouble": finds the entries whose message was pasted, best first.
//
// It compares word by word, but bears what differs from one terminal to the next: numbers, folders, kinds
// of quotes, line breaks, punctuation. It reads the entries from the page itself.

(() => {
"use strict";

const ENOUGH = 8; // letters that have to agree, if a piece of a message has so many
const LONGEST = 2000; // letters of a pasted text that are looked at; the end of a log tells most

const form = document.querySelector(".finder");
const field = form.querySelector("textarea");
const status = form.querySelector("[role=status]");
const found = document.querySelector(".finder__found");

// What a shell says of a program that it does not know: bash, zsh, and bash on Ubuntu. Which program that is
// decides, so its name and the rest become one word.
const NO_COMMAND = /(\S+): command not found(?!:)|command not found: (\S+)|command '(\S+)' not found/g;

function normalize(text) {
  return text
    .toLowerCase()
    .replace(/[‘’‚“”„"`´]/g, "'")
    .replace(/[^\s':=(<]*\//g, "") // the folders before a name
    .replace(NO_COMMAND, (all, ...names) => `${names.find((name) => name)}-no-command`)
    .replace(/\d+/g, "#")
    .replace(/\s+/g, " ")
    .trim();
}

const words = (text) => text.match(/[\w$#-]+/g) ?? [];
const letters = (words) => words.join("").length;

const entries = [...document.querySelectorAll(".trouble")].map((section) => {
  const signs = [...section.querySelectorAll(".trouble__message code, .trouble__symptom")];
  const lines = signs.flatMap((sign) => sign.textContent.split("\n")).map(normalize);
  return {
    section,
    home: section.parentElement,
    lines,
    pieces: lines.flatMap((line) => line.split("…")).map(words).filter((piece) => letters(piece) > 3),
    title: normalize(section.querySelector("h3").textContent),
    text: normalize(section.textContent),
  };
});

// The words in both: how many letters has the longest row of them?
function agreement(a, b) {
  let before = new Uint16Array(b.length + 1);
  let longest = 0;
  for (let i = 1; i <= a.length; i++) {
    const now = new Uint16Array(b.length + 1);
    for (let j = 1; j <= b.length; j++) {
      if (a[i - 1] === b[j - 1]) {
        now[j] = before[j - 1] + a[i - 1].length;
        longest = Math.max(longest, now[j]);
      }
    }
    before = now;
  }
  return longest;
}

// 0: not this one. Messages count most; then the title and the text, for those who type a word.
function score(entry, pasted) {
  if (entry.lines.includes(pasted)) return 10000;
  let agreed = 0;
  let rest = 0;
  const pastedWords = words(pasted);
  for (const piece of entry.pieces) {
    const agreeing = agreement(piece, pastedWords);
    if (agreeing >= Math.min(ENOUGH, letters(piece))) agreed += agreeing;
    rest += letters(piece) - agreeing;
  }
  if (agreed) return 100 + agreed - rest / 10;
  if (entry.title.includes(pasted)) return 2;
  return entry.text.includes(pasted) ? 1 : 0;
}

function find() {
  const pasted = normalize(field.value).slice(-LONGEST);
  for (const entry of entries) entry.home.append(entry.section); // back to where they stand
  document.body.classList.toggle("finding", pasted !== "");
  if (!pasted) {
    status.textContent = "";
    return;
  }
  const scored = entries.map((entry) => ({ entry, points: score(entry, pasted) })).filter((one) => one.points > 0);
  scored.sort((a, b) => b.points - a.points);
  // What agrees by a few letters only is left out where something agrees well.
  const good = scored.filter((one) => scored[0].points < 100 || one.points > 100 + (scored[0].points - 100) / 3);
  found.append(...good.map((one) => one.entry.section));
  document.body.classList.toggle("finding", good.length > 0);
  if (good.length === 0) status.textContent = "No entry has this. Below are all of them. Try a shorter part, without your own names.";
  else status.textContent = good.length === 1 ? "This one:" : `${good.length} entries, the best first:`;
}

form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("input", find);
find(); // the browser may have kept the text from an earlier visit
})();
