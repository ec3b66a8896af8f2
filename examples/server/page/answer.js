// One answer while it is written: text in the tints of its tokens, reasoning, tool calls, pauses, and how it ended.
// Pieces are collected and written once a frame, each into a span of its own; what is written is never written again.

import { Aligner } from "./align.js";
import { element, percent, say, short, soon } from "./dom.js";
import { colour, count, legend, uncount } from "./sources.js";
import { explain } from "./token.js";

export class Answer {
  root = element("article", { class: "message assistant", "aria-label": "Answer", "aria-busy": "true" });
  /** What was said, without reasoning; this is what goes back to the model. */
  content = "";
  finished = null;
  #details = [];
  #aligner = new Aligner();
  #text = null;
  #reasoning = null;
  #thought = null;
  #tools = new Map();
  #pause = null;
  #waiting = element("p", { class: "waiting dim" }, "waiting for the first token");
  #write = () => this.#flush();

  constructor() {
    this.root.append(this.#waiting);
    explain(this.root, (number) => this.#details[number]);
  }

  /** Takes in a chunk of the stream. */
  add(chunk) {
    if (chunk.prompt_progress) this.#progress(chunk.prompt_progress);
    if (chunk.recovery) this.#recovery(chunk.recovery);
    const choice = chunk.choices?.find((choice) => (choice.index ?? 0) === 0);
    if (choice) this.#choice(choice);
  }

  #choice(choice) {
    for (const detail of choice.token_details ?? []) {
      this.#aligner.add(this.#details.push(detail) - 1, detail.text);
      count(detail.source);
    }
    const delta = choice.delta ?? {};
    if (delta.reasoning_content) this.#think(delta.reasoning_content);
    if (delta.content) this.#speak(delta.content);
    for (const call of delta.tool_calls ?? []) this.#call(call);
    if (choice.finish_reason) this.finished = choice.finish_reason;
    soon(this.#write);
  }

  #speak(text) {
    this.content += text;
    if (this.#text === null) {
      this.#text = new Writer(element("div", { class: "text", tabindex: "0", "aria-label": "Text of the answer" }));
      this.root.append(this.#text.root);
      if (this.#thought) say(this.#thought.firstChild, "Reasoning");
    }
    this.#text.add(this.#aligner.take(text));
  }

  #think(text) {
    if (this.#reasoning === null) {
      this.#reasoning = new Writer(element("div", { class: "text", tabindex: "0", "aria-label": "Reasoning" }));
      this.#thought = element("details", { class: "reasoning" }, element("summary", {}, "Reasoning …"), this.#reasoning.root);
      this.root.append(this.#thought);
    }
    this.#reasoning.add(this.#aligner.take(text));
  }

  /** Names come first, arguments in parts. */
  #call(call) {
    const index = call.index ?? 0;
    if (!this.#tools.has(index)) {
      const name = element("strong", {});
      const input = element("code", { dir: "auto" });
      this.root.append(element("pre", { class: "tool", "aria-label": "Tool call" }, name, " ", input));
      this.#tools.set(index, { name, input });
    }
    const tool = this.#tools.get(index);
    if (call.function?.name) tool.name.append(call.function.name);
    if (call.function?.arguments) tool.input.append(call.function.arguments);
  }

  #progress({ done, total }) {
    if (this.#details.length > 0 || !(total > 0)) return;
    say(this.#waiting, `reading the prompt: ${short(done)} of ${short(total)} tokens`);
  }

  #recovery({ event, reason }) {
    this.#flush();
    if (this.#pause === null) {
      this.#pause = element("p", { class: "mark", role: "status" });
      this.root.append(this.#pause);
      // What comes now stands below the mark.
      this.#text?.turn(this.root);
    }
    if (event === "paused") {
      say(this.#pause, `engine restarting, the answer will go on${reason ? ` (${reason})` : ""}`);
      this.#pause.dataset.reason = reason ?? "";
    } else {
      const why = reason || this.#pause.dataset.reason;
      say(this.#pause, `engine restarted, going on${why ? ` (${why})` : ""}`);
      this.#pause.classList.add("over");
      this.#pause = null;
    }
  }

  #flush() {
    if (this.#details.length > 0 || this.content !== "") this.#waiting.remove();
    this.#reasoning?.flush(this.#details);
    this.#text?.flush(this.#details);
    legend();
  }

  /** The stream has said all; `last` is the chunk with the numbers, if it came. */
  end(last, plain) {
    this.#close();
    const notes = { length: "cut at the largest number of tokens", content_filter: "cut by a filter" };
    const parts = [notes[this.finished] ?? null, ...numbers(last, plain)].filter((part) => part !== null);
    this.#note(parts.join(" · "));
  }

  stopped() {
    this.#close();
    this.#note("stopped");
  }

  /** Something broke. The text so far stays; `actions` are buttons that help. */
  fail(message, ...actions) {
    this.#close();
    this.root.append(element("div", { class: "error", role: "alert" }, element("p", { dir: "auto" }, message), ...actions));
  }

  /** Takes the answer away: another comes in its place. */
  remove() {
    this.root.remove();
    for (const { source } of this.#details) uncount(source);
    legend();
  }

  #note(text) {
    if (text !== "") this.root.append(element("p", { class: "numbers dim" }, text));
  }

  #close() {
    this.#flush();
    this.#waiting.remove();
    if (this.#thought) say(this.#thought.firstChild, "Reasoning");
    if (this.#pause) say(this.#pause, "engine restarting when the answer ended");
    this.root.removeAttribute("aria-busy");
  }
}

/** Text in paragraphs, so that a long answer is not laid out anew for each token. */
class Writer {
  #pieces = [];
  #paragraph = null;

  constructor(root) {
    this.root = root;
    root.addEventListener("copy", copy);
  }

  add(pieces) {
    this.#pieces.push(...pieces);
  }

  /** Goes on in a new block at the end of `parent`. */
  turn(parent) {
    this.root = this.root.cloneNode(false);
    this.root.addEventListener("copy", copy);
    parent.append(this.root);
    this.#paragraph = null;
  }

  flush(details) {
    const made = document.createDocumentFragment();
    for (const { number, text } of this.#pieces) {
      for (const part of lines(text)) {
        if (this.#paragraph === null) {
          this.#paragraph = element("p", { dir: "auto" });
          made.append(this.#paragraph);
        }
        this.#paragraph.append(number === null ? part : span(number, part, details[number]));
        if (part.endsWith("\n")) this.#paragraph = null;
      }
    }
    this.#pieces = [];
    this.root.append(made);
  }
}

/** Line ends are in the text and paragraphs are not: a copy is what the model wrote. */
function copy(event) {
  const selection = getSelection();
  const range = selection.rangeCount === 1 ? selection.getRangeAt(0) : null;
  if (!range || !event.currentTarget.contains(range.commonAncestorContainer)) return;
  event.clipboardData.setData("text/plain", range.cloneContents().textContent);
  event.preventDefault();
}

function span(number, text, detail) {
  const made = document.createElement("span");
  made.className = `token ${colour(detail.source)}`;
  made.dataset.number = number;
  made.textContent = text;
  return made;
}

/** The lines of a text, each with its end. */
function lines(text) {
  return text.includes("\n") ? text.split(/(?<=\n)/) : [text];
}

function numbers(last, plain) {
  const { usage, timings, speculation } = last ?? {};
  const parts = [];
  if (usage) parts.push(`${short(usage.completion_tokens)} tokens`);
  const speed = timings?.predicted_per_second;
  if (speed > 0) {
    parts.push(`${short(speed)} tokens/s`);
    if (plain > 0) parts.push(`${short(speed / plain)} × plain`);
  }
  if (speculation) {
    const methods = list(speculation.effective);
    if (speculation.drafted > 0) {
      const share = percent(speculation.accepted / speculation.drafted);
      parts.push(`${short(speculation.accepted)} of ${short(speculation.drafted)} drafted tokens accepted (${share})`);
    }
    parts.push(methods === "" ? "no speculation" : methods);
    if (speculation.reason) parts.push(speculation.reason);
  }
  return parts;
}

/** Methods come as a list or as one word. */
export function list(methods) {
  return Array.isArray(methods) ? methods.join(", ") : String(methods ?? "");
}
