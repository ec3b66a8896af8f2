// Reads server-sent events from the body of an answer. The browser's own reader cannot send a POST.

/** The data of each event, in order. Ends with the body; comments and other fields are left out. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // A carriage return at the end may be half of a line's end.
      rest += done ? "\n" : value;
      let start = 0;
      for (;;) {
        const match = lineEnd(rest, start, done);
        if (match === null) break;
        const line = rest.slice(start, match.at);
        start = match.next;
        if (line === "") {
          if (data.length > 0) yield data.join("\n");
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line[5] === " " ? 6 : 5));
        }
      }
      rest = rest.slice(start);
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function lineEnd(text, start, whole) {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10) return { at, next: at + 1 };
    if (code === 13) {
      if (at + 1 === text.length && !whole) return null;
      return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
    }
  }
  return null;
}
