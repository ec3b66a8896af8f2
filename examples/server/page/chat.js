// The conversation: what was said, what is sent, and the answer that is coming in.

import { Answer } from "./answer.js";
import { onKey, Refusal, stream } from "./api.js";
import { button, byId, element, say } from "./dom.js";
import { last } from "./live.js";
import { settings, systemPrompt } from "./settings.js";
import { forget } from "./sources.js";
import { hide } from "./token.js";

/** Either { role: "user", content, root } or { role: "assistant", answer }. */
let messages = [];
/** What stops the answer that is coming in. */
let running = null;
let refusedForKey = false;
let following = true;

const log = byId("log");
const prompt = byId("prompt");

export function start() {
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  prompt.addEventListener("keydown", (event) => {
    // Enter also ends the choice of a character in many languages.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    hide();
    running?.abort();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("regenerate").addEventListener("click", regenerate);
  byId("clear").addEventListener("click", clear);
  let before = 0;
  log.addEventListener("scroll", () => {
    // Text that was added since is no reason to stop; going back up is.
    const left = log.scrollHeight - log.scrollTop - log.clientHeight;
    if (left < 48) following = true;
    else if (log.scrollTop < before) following = false;
    before = log.scrollTop;
  });
  new ResizeObserver(follow).observe(log);
  onKey(() => refusedForKey && regenerate());
}

function send() {
  const content = prompt.value;
  if (running || content.trim() === "") return;
  const root = element("article", { class: "message user", dir: "auto", "aria-label": "Your message" }, content);
  messages.push({ role: "user", content, root });
  byId("empty").hidden = true;
  log.append(root);
  prompt.value = "";
  following = true;
  request();
}

/** Asks again for the last answer. */
function regenerate() {
  if (running || messages.length === 0) return;
  if (messages.at(-1).role === "assistant") messages.pop().answer.remove();
  following = true;
  request();
}

function clear() {
  running?.abort();
  for (const message of messages) (message.answer ?? message).root.remove();
  messages = [];
  refusedForKey = false;
  hide();
  forget();
  byId("empty").hidden = false;
  buttons();
  prompt.focus();
}

async function request() {
  const body = {
    messages: conversation(),
    stream: true,
    stream_options: { include_usage: true },
    logprobs: true,
    top_logprobs: 3,
    return_progress: true,
    token_details: true,
    ...settings(),
  };
  const model = last()?.model?.id;
  if (model) body.model = model;
  const answer = new Answer();
  messages.push({ role: "assistant", answer });
  log.append(answer.root);
  running = new AbortController();
  const { signal } = running;
  refusedForKey = false;
  buttons();
  say(byId("said"), "answering");
  watch(answer);
  try {
    let numbers = null;
    for await (const chunk of stream("v1/chat/completions", body, signal)) {
      answer.add(chunk);
      if (chunk.usage || chunk.timings || chunk.speculation) numbers = { ...numbers, ...chunk };
    }
    answer.end(numbers, last()?.plain_tokens_per_second);
    say(byId("said"), "answer finished");
  } catch (error) {
    if (signal.aborted) {
      answer.stopped();
      say(byId("said"), "stopped");
    } else {
      failed(answer, error);
    }
  }
  running = null;
  buttons();
}

function failed(answer, error) {
  const known = error instanceof Refusal;
  if (!known) console.error(error);
  refusedForKey = known && error.status === 401;
  let text = known ? error.message : "This page made a mistake; its console says more.";
  if (known && error.after !== null) text += ` Try again in ${error.after} s.`;
  say(byId("said"), "");
  answer.fail(text, button("Try again", () => regenerate()));
}

/** What goes to the model: what was said, without answers of which nothing came. */
function conversation() {
  const said = messages
    .map(({ role, content, answer }) => ({ role, content: answer ? answer.content : content }))
    .filter(({ role, content }) => role === "user" || content !== "");
  const system = systemPrompt();
  return system === "" ? said : [{ role: "system", content: system }, ...said];
}

function buttons() {
  const focused = document.activeElement;
  byId("send").hidden = running !== null;
  byId("stop").hidden = running === null;
  byId("regenerate").disabled = running !== null || messages.length === 0;
  byId("clear").disabled = messages.length === 0;
  // Who works with the keyboard goes on from the button that takes the other's place.
  const lost = focused === document.body || (focused !== prompt && (focused.disabled || focused.hidden));
  if (lost) (running === null ? prompt : byId("stop")).focus();
}

/** Stays at the end of the text, unless someone reads further up. */
function watch(answer) {
  new ResizeObserver(follow).observe(answer.root);
}

function follow() {
  if (following) log.scrollTop = log.scrollHeight;
}
