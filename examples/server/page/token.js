// What is known of one token, shown beside it on hover, on tap, and when the keyboard gets there.

import { byId, element, percent } from "./dom.js";
import { colour } from "./sources.js";

const card = byId("card");
let shown = null;

/** Makes the tokens inside `root` say what they are. `details` gives what is known of a token by its number. */
export function explain(root, details) {
  const show = (event) => {
    const token = event.target.closest?.(".token");
    if (token) present(token, details(Number(token.dataset.number)));
    else hide();
  };
  root.addEventListener("pointerover", show);
  root.addEventListener("click", show);
  root.addEventListener("pointerleave", hide);
  root.addEventListener("focusin", show);
  root.addEventListener("focusout", hide);
  root.addEventListener("keydown", walk);
}

/** Arrow keys go from token to token; there are too many for the tab key. */
function walk(event) {
  const root = event.target.closest(".text");
  if (root === null) return;
  const current = event.target.closest(".token");
  const tokens = root.getElementsByClassName("token");
  const last = tokens.length - 1;
  const at = current ? Array.prototype.indexOf.call(tokens, current) : -1;
  const rtl = current !== null && getComputedStyle(current.parentElement).direction === "rtl";
  const step = { ArrowRight: rtl ? -1 : 1, ArrowLeft: rtl ? 1 : -1 }[event.key];
  let next = null;
  if (step !== undefined) next = at < 0 ? 0 : at + step;
  else if (event.key === "Home") next = 0;
  else if (event.key === "End") next = last;
  if (next === null || last < 0) return;
  event.preventDefault();
  const token = tokens[Math.max(0, Math.min(last, next))];
  token.tabIndex = -1;
  token.focus();
}

export function hide() {
  if (shown === null) return;
  shown.removeAttribute("aria-describedby");
  shown = null;
  card.hidden = true;
}

function present(token, detail) {
  if (detail === undefined || token === shown) return;
  hide();
  shown = token;
  card.replaceChildren(
    element("p", { class: "piece" }, visible(detail.text)),
    element(
      "dl",
      {},
      ...row("id", String(detail.id)),
      ...row("from", element("span", { class: `token ${colour(detail.source)}` }, detail.source)),
      ...row("probability", probability(detail.logprob)),
    ),
    alternatives(detail),
  );
  token.setAttribute("aria-describedby", "card");
  card.hidden = false;
  place(token);
}

const row = (name, value) => [element("dt", {}, name), element("dd", {}, value)];

const probability = (log) => (typeof log === "number" ? percent(Math.exp(log)) : "not known");

function alternatives(detail) {
  const list = element("table", { class: "alternatives" });
  for (const one of detail.top ?? []) {
    const same = one.id === detail.id;
    list.append(
      element(
        "tr",
        { class: same ? "taken" : null },
        element("td", {}, element("code", {}, visible(one.text))),
        element("td", { class: "number" }, String(one.id)),
        element("td", {}, element("meter", { min: 0, max: 1, value: Math.exp(one.logprob) || 0 })),
        element("td", { class: "number" }, probability(one.logprob)),
      ),
    );
  }
  return list.rows.length > 0 ? list : null;
}

/** The text of a token with its blanks and line ends as signs. */
function visible(text) {
  if (text === "") return "(no text)";
  return text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll("\r", "␍");
}

/** Beside the token, within the window, whatever the length of the token. */
function place(token) {
  const box = token.getClientRects()[0] ?? token.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const left = Math.max(4, Math.min(box.left, innerWidth - width - 4));
  const below = box.bottom + 6;
  const top = below + height < innerHeight ? below : Math.max(4, box.top - height - 6);
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}

addEventListener("scroll", () => shown && place(shown), true);
