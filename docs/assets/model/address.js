// What the reader has chosen stands in the address, so that a link shows the same again, and it goes along
// to the other pages inside the model. An address is only ever read as text and numbers, never run.

const LONGEST_TEXT = 2000; // characters; a longer text is not in the address, and the page says so
const PAGES = /\/model\/(tokens|attention|temperature)\/(index\.html)?$/;

const number = (least, most) => (value) =>
  /^\d{1,10}(\.\d{1,10})?$/.test(value) && value >= least && value <= most ? Number(value) : undefined;
const whole = (least, most) => (value) => /^\d{1,10}$/.test(value) && value >= least && value <= most ? Number(value) : undefined;
const oneOf = (...names) => (value) => (names.includes(value) ? value : undefined);

// Each value that an address may have: how to read it (undefined: it is no such value), and what it is without one.
const KNOWN = {
  text: { read: (value) => (value.length <= LONGEST_TEXT ? value : undefined), usual: "The Elbe flows through" },
  vocabulary: { read: oneOf("qwen2.5", "smollm2", "tinygpt"), usual: "qwen2.5" },
  row: { read: whole(1, 1000), usual: 0 }, // 0: the last one
  layer: { read: whole(1, 100), usual: 1 },
  head: { read: whole(1, 100), usual: 1 },
  prompt: { read: whole(1, 9), usual: 1 },
  t: { read: number(0, 2), usual: 1 },
  top_k: { read: whole(1, 1000), usual: 0 }, // 0: all
  seed: { read: whole(0, 4294967295), usual: 1 },
  draws: { read: whole(0, 100000), usual: 0 },
  path: { read: (value) => (/^\d{1,3}(-\d{1,3}){0,99}$/.test(value) ? value : undefined), usual: "" },
  written: { read: whole(0, 2000), usual: 0 },
};

export const state = {};

function read() {
  const given = new URLSearchParams(location.search);
  for (const [name, { read, usual }] of Object.entries(KNOWN)) {
    state[name] = (given.has(name) ? read(given.get(name)) : undefined) ?? usual;
  }
}

function query() {
  const wanted = new URLSearchParams();
  for (const [name, { read, usual }] of Object.entries(KNOWN)) {
    if (state[name] !== usual && read(String(state[name])) !== undefined) wanted.set(name, state[name]);
  }
  return wanted.size ? `?${wanted}` : "";
}

export const fitsIntoAddress = (text) => text.length <= LONGEST_TEXT;

// Browsers allow only so many changes of the address in a while, so it follows shortly after.
let later;
export function update(changes) {
  Object.assign(state, changes);
  clearTimeout(later);
  later = setTimeout(write, 250);
}

function write() {
  history.replaceState(null, "", location.pathname + query() + location.hash);
  linkPages();
}

function linkPages() {
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.origin === location.origin && PAGES.test(link.pathname)) link.search = query();
  }
}

// A click on a link may come sooner than the change of the address.
document.addEventListener("click", () => { if (later) { clearTimeout(later); write(); } }, true);

read();
linkPages();
