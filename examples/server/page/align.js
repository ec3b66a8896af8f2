// Which token a piece of the shown text came from. The server sends tokens as they are generated, and text once its
// parser knows what it is: without tags, sometimes trimmed, often later. So the shown text is the text of the tokens
// with parts left out, and is found again in what has not been shown yet.

/** Tokens whose text did not turn up for so long were tags, and are forgotten. */
const KEPT = 4096;

export class Aligner {
  #text = "";
  /** The tokens of #text: their number and where they end. Those without text of their own end where they begin. */
  #tokens = [];

  /** A token was generated. Bytes that are no text by themselves show up in a later one's text, or in none. */
  add(number, text) {
    this.#text += text.includes("\uFFFD") ? "" : text;
    this.#tokens.push({ number, end: this.#text.length });
    if (this.#text.length > KEPT) this.#skip(this.#text.length - KEPT);
  }

  /** The pieces of a text that is shown now, each with the number of its token, or null where none is known. */
  take(text) {
    const pieces = [];
    while (text !== "") {
      const at = this.#find(text);
      if (at >= 0) {
        this.#skip(at);
        this.#give(text.length, pieces);
        return pieces;
      }
      const same = commonLength(this.#text, text);
      if (same > 0) {
        this.#give(same, pieces);
        text = text.slice(same);
      } else {
        const number = this.#halves();
        const known = this.#text !== "" || number !== null;
        const part = known ? String.fromCodePoint(text.codePointAt(0)) : text;
        const previous = pieces.at(-1);
        if (number === null && previous?.number === null) previous.text += part;
        else pieces.push({ number, text: part });
        text = text.slice(part.length);
      }
    }
    return pieces;
  }

  /** A text begins where a token does, unless it begins within one. */
  #find(text) {
    if (this.#text.startsWith(text)) return 0;
    for (const { end } of this.#tokens) {
      if (this.#text.startsWith(text, end)) return end;
    }
    return this.#text.indexOf(text);
  }

  /** Tokens without text before the next text: together they are a character. */
  #halves() {
    let number = null;
    while (this.#tokens.length > 0 && this.#tokens[0].end === 0) number = this.#tokens.shift().number;
    return number;
  }

  #give(length, pieces) {
    let from = 0;
    while (from < length) {
      const token = this.#tokens[0];
      if (token.end > from) {
        const to = Math.min(token.end, length);
        pieces.push({ number: token.number, text: this.#text.slice(from, to) });
        from = to;
      }
      if (token.end <= length) this.#tokens.shift();
    }
    this.#drop(length);
  }

  #skip(length) {
    if (length === 0) return;
    while (this.#tokens.length > 0 && this.#tokens[0].end <= length) this.#tokens.shift();
    this.#drop(length);
  }

  #drop(length) {
    this.#text = this.#text.slice(length);
    for (const token of this.#tokens) token.end -= length;
  }
}

function commonLength(left, right) {
  const most = Math.min(left.length, right.length);
  let length = 0;
  while (length < most && left[length] === right[length]) length += 1;
  return length;
}
