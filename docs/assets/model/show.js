// How tokens and probabilities are shown, the same way as the page's own tables do (scripts/course/inside/page.py).

const MARKS = { " ": ["·", "space"], "\n": ["↵", "new line"], "\t": ["⇥", "tab"] };

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A token with its spaces and line breaks to be seen.
export function piece(text) {
  const code = element("code", { class: "piece" });
  for (const part of text.split(/([ \n\t])/)) {
    const [mark, name] = MARKS[part] ?? [];
    if (mark) code.append(element("span", { class: "piece__mark", role: "img", "aria-label": name }, mark));
    else code.append(part);
  }
  return code;
}

// A share of 1 with two digits that count: 49%, 2.1%, 0.0031%; 0% only for nothing at all.
export function percent(share) {
  if (share === 0 || share >= 0.0995) return `${Math.round(share * 100)}%`;
  const digits = 1 - Math.floor(Math.log10(share * 100));
  return `${(share * 100).toFixed(Math.min(100, Math.max(0, digits)))}%`;
}

export function bar(share) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "bar");
  svg.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS(svg.namespaceURI, "rect");
  rect.setAttribute("width", `${(share * 100).toFixed(2)}%`);
  rect.setAttribute("height", "100%");
  svg.append(rect);
  return svg;
}

export const thousands = (number) => number.toLocaleString("en-US");

export function nameOf(character) {
  return MARKS[character]?.[1] ?? character;
}

// Says which characters the tiny GPT does not know, into a note; nothing where it knows all.
export function nameUnknown(note, characters) {
  note.replaceChildren();
  if (characters.length === 0) return;
  note.append("The tiny GPT has never met ");
  characters.forEach((character, i) => note.append(i ? " " : "", piece(character)));
  note.append(characters.length === 1 ? ". It is left out." : ". They are left out.");
}
