// Starts the parts of the page.

import { onKey } from "./api.js";
import * as chat from "./chat.js";
import * as compatibility from "./compatibility.js";
import { byId } from "./dom.js";
import * as live from "./live.js";
import * as settings from "./settings.js";

const VIEWS = ["chat", "live", "compatibility"];

/** The view that the address names. In a wide window the live numbers stand beside the chat. */
function view() {
  const named = location.hash.slice(1);
  const chosen = VIEWS.includes(named) ? named : "chat";
  document.body.dataset.view = chosen;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (chosen === "compatibility") compatibility.show();
  // The address is of a view, not of a place to scroll to.
  scrollTo(0, 0);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  location.hash = "chat";
  byId("prompt").focus();
});
addEventListener("hashchange", view);
settings.start();
chat.start();
live.start((status) => {
  const { effective, requested } = status.speculation ?? {};
  const methods = [effective, requested].filter(Array.isArray).flat();
  // Drafters of the program's own run with `auto`; requests cannot name them.
  settings.offer(methods.filter((method) => !method.startsWith("own-")));
  compatibility.loaded(status);
});
onKey(compatibility.again);
view();
