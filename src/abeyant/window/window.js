// The window: shows what the program sends, and sends what the reader does. What comes from the program, names of topics
// for instance, is only ever set as text.
const find = (id) => document.getElementById(id);
const { duration } = AbeyantDrawing;
const whole = new Intl.NumberFormat("en");
const EXPIRED_STAYS = 1600; // ms that an operation which has ended is still shown

function make(kind, text = "", className = "", attributes = {}) {
  const made = document.createElement(kind);
  if (text !== "") made.textContent = text;
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// -- the token: out of the address bar, so that it is in no history and no screenshot

const address = new URL(location.href);
const token = address.searchParams.get("token") || sessionStorage.getItem("abeyant-token") || "";
if (address.searchParams.has("token")) {
  sessionStorage.setItem("abeyant-token", token);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

// -- what the page shows decides what is sent

let source = null, last = null, before = null, timerChosen = 0;

function query() {
  const parts = new URLSearchParams({ show: "wheels,waits,cluster" });
  if (find("find").value) parts.set("q", find("find").value);
  if (find("purgatory").value) parts.set("in", find("purgatory").value);
  if (find("client").value) parts.set("client", find("client").value);
  if (find("find-cluster").value) parts.set("find", find("find-cluster").value);
  if (token) parts.set("token", token);
  return parts;
}

function listen() {
  source?.close();
  source = new EventSource(`events?${query()}`);
  let first = true; // what was shown before may have been another selection
  ended.clear();
  source.onmessage = (event) => {
    before = first ? null : last;
    first = false;
    last = JSON.parse(event.data);
    live("live", "live");
    show();
  };
  source.onerror = () => {
    live("lost", "no connection: has the program ended?");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

function live(state, text) {
  find("live").className = state;
  if (find("live-text").textContent !== text) find("live-text").textContent = text;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { source?.close(); live("", "paused while hidden"); } else listen();
});

// -- showing

const wheel = AbeyantDrawing.wheel(find("wheel"));
const lanes = AbeyantDrawing.lanes(find("lanes"));
const kindNumbers = new Map();
const kindNumber = (kind) => {
  if (!kindNumbers.has(kind)) kindNumbers.set(kind, (kindNumbers.size % 6) + 1);
  return kindNumbers.get(kind);
};

function show() {
  const { pid, name, python } = last.program;
  setText("program", `${name || "python"}, process ${pid}, Python ${python}`);
  document.title = `${name || "python"} - Abeyant window`;
  showLoops();
  showClock();
  showWheel();
  showPurgatories();
  showWaits();
  showCluster();
}

function setText(id, text) {
  if (find(id).textContent !== text) find(id).textContent = text;
}

function showLoops() {
  const blocked = last.loops.find((loop) => loop.blocked);
  find("blocked").hidden = !blocked;
  if (!blocked) return;
  setText("blocked-title", `The event loop ${blocked.name} has been blocked for ${duration(blocked.blocked)}: nothing else runs`);
  setText("blocked-stack", blocked.stack.join("\n"));
}

function showWheel() {
  const timers = last.timers || [];
  find("wheels").hidden = timers.length === 0;
  if (!timers.length) return;
  timerChosen = Math.min(timerChosen, timers.length - 1);
  if (timers.length > 1) {
    keep(find("timer-choice"), timers, (timer) => timer.name, (timer) => {
      const button = make("button", timer.name, "", { type: "button" });
      button.onclick = () => { timerChosen = last.timers.findIndex((one) => one.name === timer.name); show(); };
      return button;
    }, (button, timer, place) => button.setAttribute("aria-pressed", String(place === timerChosen)));
  }
  const timer = timers[timerChosen];
  wheel.show(timer);
  const loop = last.loops[0];
  const facts = [
    ["started", whole.format(timer.started), rate("started")],
    ["expired", whole.format(timer.expired), rate("expired")],
    ["cancelled", whole.format(timer.cancelled), rate("cancelled")],
    ["cascades", whole.format(timer.cascaded), rate("cascaded")],
    ["tick", duration(timer.tick), `${timer.size} buckets, ${timer.levels} levels`],
    loop ? ["loop lag", loop.running ? duration(loop.lag) : "not running", loop.kind] : ["wake-ups", whole.format(timer.wakeups), ""],
  ];
  if (timer.failed) facts.push(["callbacks that raised", whole.format(timer.failed), ""]);
  if (timer.failure) facts.push(["thread ended", timer.failure, ""]);
  keep(find("timer-facts"), facts, ([what]) => what, ([what]) => {
    const cell = make("div");
    cell.append(make("dt", what), make("dd"));
    return cell;
  }, (cell, [, value, more]) => {
    const text = `${value} ${more}`;
    if (cell.dataset.text === text) return;
    cell.dataset.text = text;
    cell.lastChild.replaceChildren(value, ...(more ? [" ", make("small", more)] : []));
  });
  keep(find("next"), timer.next.slice(0, 8), (_, place) => place, () => {
    const row = make("li");
    row.append(make("b"), make("span"));
    return row;
  }, (row, task) => {
    row.firstChild.textContent = duration(Math.max(0, task.at - timer.now)) || "0 s";
    if (row.lastChild.textContent !== task.what) row.lastChild.textContent = row.lastChild.title = task.what;
  });
}

function rate(count) {
  const now = last.timers[timerChosen], then = before?.timers?.[timerChosen];
  if (!then || then.name !== now.name || last.at <= before.at) return "";
  const each = (now[count] - then[count]) / (last.at - before.at);
  return each ? `${whole.format(Number(each.toPrecision(2)))}/s` : "";
}

function showPurgatories() {
  const select = find("purgatory");
  const wanted = last.purgatories.filter((one) => one.delayed || one.name === select.value || last.purgatories.length < 6);
  keep(select, [{ name: "" }, ...wanted], (one) => one.name, (one) => make("option", "", "", { value: one.name }), (option, one) => {
    const text = one.name ? `${one.name} (${whole.format(one.delayed)})` : "all purgatories";
    if (option.textContent !== text) option.textContent = text;
  });
  find("waits").hidden = last.purgatories.length === 0;
}

const ended = new Map(); // rows that are no longer there, for a moment

function showWaits() {
  const { total, matched, partial, rows } = last.waits;
  const more = partial ? " or more" : "";
  setText("waits-count", matched === total ? `${whole.format(total)}${more}` : `${whole.format(matched)} of ${whole.format(total)}${more}`);
  const ids = new Set(rows.map((row) => row.id));
  if (before?.waits && rows.length < 50 && matched === rows.length) {
    for (const row of before.waits.rows) if (!ids.has(row.id) && !ended.has(row.id)) ended.set(row.id, { row, at: performance.now() });
  }
  for (const [id, { at }] of ended) if (ids.has(id) || performance.now() - at > EXPIRED_STAYS) ended.delete(id);
  showClients();
  lanes.show(rows, kindNumber);
  find("lanes").toggleAttribute("hidden", rows.length === 0);
  const shown = [...rows, ...[...ended.values()].slice(0, 8).map(({ row }) => ({ ...row, gone: true }))];
  keep(find("rows"), shown, (row) => row.id + (row.gone ? " gone" : ""), waitRow, fillRow);
  find("nothing").hidden = shown.length > 0;
  setText("nothing", total ? "Nothing that waits matches." : "Nothing waits at the moment.");
  if (matched > rows.length && rows.length) {
    find("nothing").hidden = false;
    setText("nothing", `These ${rows.length} expire first, of ${whole.format(matched)}. Find narrows it down.`);
  }
}

const OPENED = "abeyant.window.serve(...)"; // what opened the page, until a button is pointed at

// Each client that waits, and for how many requests: one that is chosen stays, though it may wait for none now.
function showClients() {
  const select = find("client"), { clients, total } = last.waits;
  const listed = clients.some((one) => one.name === select.value) || !select.value ? clients : [...clients, { name: select.value, waiting: 0 }];
  keep(select, [{ name: "", waiting: total }, ...listed], (one) => one.name, (one) => make("option", "", "", { value: one.name }), (option, one) => {
    const text = `${one.name || "all clients"} (${whole.format(one.waiting)})`;
    if (option.textContent !== text) option.textContent = text;
  });
  find("client-choice").hidden = listed.length === 0;
  find("waits").classList.toggle("clientless", listed.length === 0);
}

function waitRow(row) {
  const made = make("tr", "", row.gone ? "gone" : "");
  const left = make("td", "", "left");
  left.append(make("span"), make("span", "", "bar"));
  left.lastChild.append(make("i"));
  // "broker 1 Produce" is the purgatory of Produce requests in broker 1
  const place = row.in.endsWith(` ${row.kind}`) ? row.in.slice(0, -row.kind.length - 1) : row.in;
  const what = make("td", "", "what", { title: `${row.kind}, in ${row.in}` });
  what.append(make("span", row.kind, `kind kind-${kindNumber(row.kind)}`), " ", make("small", place));
  made.append(left, what, make("td", row.client, "client", { title: row.client, "data-name": "client" }),
    make("td", "", "key"), make("td", "", "until", { "data-name": "until" }), make("td", "", "waited number", { "data-name": "waited" }));
  return made;
}

function fillRow(made, row) {
  const [left, , , keys, until, waited] = made.cells;
  const time = row.gone ? "ended" : row.left === null ? "no deadline" : row.left > 0 ? duration(row.left) : "due";
  left.firstChild.textContent = time;
  const share = row.left === null || !row.timeout ? 0 : Math.max(0, Math.min(1, row.left / row.timeout));
  left.lastChild.firstChild.style.width = `${(row.gone ? 0 : share * 100).toFixed(1)}%`;
  left.classList.toggle("soon", share < 0.2);
  left.title = `${time} of ${duration(row.timeout)}`;
  const listed = row.keys.join(", ") + (row.more ? ` and ${row.more} more` : "");
  for (const [cell, text] of [[keys, listed], [until, row.until]]) {
    if (cell.textContent !== text) cell.textContent = cell.title = text; // cut where it is too long, whole in the title
  }
  waited.textContent = row.waited === null ? "" : duration(Math.max(0, row.waited));
}

// Keep a list's elements by key: focus, scrolling and what a screen reader reads stay where they are.
function keep(list, items, keyOf, create, fill) {
  const old = list.kept || new Map(), kept = new Map();
  let follows = list.firstElementChild;
  items.forEach((item, place) => {
    const key = keyOf(item, place);
    if (kept.has(key)) return;
    const element = old.get(key) || create(item, place);
    old.delete(key);
    kept.set(key, element);
    if (element === follows) follows = follows.nextElementSibling;
    else list.insertBefore(element, follows);
    fill?.(element, item, place);
  });
  for (const element of old.values()) element.remove();
  list.kept = kept;
}

let typing = 0;
for (const id of ["find", "find-cluster"]) {
  find(id).oninput = () => { clearTimeout(typing); typing = setTimeout(listen, 150); };
}
find("purgatory").onchange = find("client").onchange = listen;
find("wrap").onclick = () => {
  const whole = find("waits").classList.toggle("whole");
  find("wrap").setAttribute("aria-pressed", String(whole));
};
document.addEventListener("DOMContentLoaded", () => { // all scripts have run
  code(["GET", "", undefined, OPENED]);
  find("code-curl").textContent = `curl ${shell(new URL("state", location.origin + location.pathname).href)}`;
  listen();
});
