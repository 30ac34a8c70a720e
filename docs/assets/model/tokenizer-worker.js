// Tokenizes beside the page, so that a long text does not stop the reader's keyboard.

import { loadTokenizer } from "./tokenizer.js";

const tokenizers = new Map();

addEventListener("message", async ({ data: { vocabulary, text, limit } }) => {
  try {
    if (!tokenizers.has(vocabulary)) tokenizers.set(vocabulary, loadTokenizer(vocabulary));
    const tokenizer = await tokenizers.get(vocabulary);
    const ids = tokenizer.encode(text);
    const groups = tokenizer.groups(ids);
    postMessage({ tokens: ids.length, total: groups.length, groups: groups.slice(0, limit) });
  } catch (error) {
    tokenizers.delete(vocabulary); // the next try loads it anew
    postMessage({ error: error.message });
  }
});
