// The API of the server this page came from, and the key that it may ask for.

import { byId, say } from "./dom.js";
import { events } from "./events.js";

const KEY = "llama-spec-key";
const BROKEN = "The connection broke before the answer was finished.";

/** What the server answered instead, or what broke on the way, in words for people. */
export class Refusal extends Error {
  constructor(message, { status = 0, code = null, after = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    /** Seconds after which the server says that it makes sense to ask again. */
    this.after = after;
  }
}

async function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem(KEY);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
    throw new Refusal("The server cannot be reached.");
  }
  if (!answer.ok) {
    const refusal = await refused(answer);
    if (refusal.status === 401) wantKey(key !== null);
    throw refusal;
  }
  return answer;
}

async function refused(answer) {
  const after = Number.parseInt(answer.headers.get("Retry-After") ?? "", 10);
  const about = { status: answer.status, after: Number.isFinite(after) ? after : null };
  let error = null;
  try {
    error = (await answer.json()).error;
  } catch {
    // Something between the server and us answered.
  }
  return refusal(error, about, `The server answered with status ${answer.status}.`);
}

function refusal(error, about, otherwise) {
  const message = typeof error === "string" ? error : error?.message;
  const text = typeof message === "string" && message !== "" ? message : otherwise;
  return new Refusal(text, { ...about, code: error?.code ?? error?.type ?? null });
}

export async function read(path, options) {
  return (await ask(path, options)).json();
}

/**
 * The chunks of a streamed answer. Fails with a Refusal when the server says so, and when the stream breaks before its
 * end has been said.
 */
export async function* stream(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const answer = await ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  try {
    for await (const data of events(answer.body)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw refusal(chunk.error, {}, "The server gave up on this answer.");
      yield chunk;
    }
  } catch (error) {
    if (error instanceof Refusal || error.name === "AbortError") throw error;
    if (error instanceof SyntaxError) throw new Refusal("The server sent something that cannot be read.");
    throw new Refusal(BROKEN);
  }
  throw new Refusal(BROKEN);
}

function wantKey(refused) {
  const form = byId("key-form");
  say(byId("key-refused"), refused ? "This key was refused." : "");
  if (!form.hidden) return;
  form.hidden = false;
  byId("key").focus();
}

const waiting = [];

/** Calls `again` each time a key was given. */
export function onKey(again) {
  waiting.push(again);
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = byId("key");
  sessionStorage.setItem(KEY, field.value.trim());
  field.value = "";
  byId("key-form").hidden = true;
  for (const again of waiting) again();
});
