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

function waitRow(row) {
  const made = make("tr", "", row.gone ? "gone" : "");
  const left = make("td", "", "left");
  left.append(make("span"), make("span", "", "bar"));
  left.lastChild.append(make("i"));
  const what = make("td");
  what.append(make("span", row.kind, `kind kind-${kindNumber(row.kind)}`), make("small", row.client ? `${row.client}, ${row.in}` : row.in));
  made.append(left, what, make("td"), make("td", "", "", { "data-name": "until" }), make("td", "", "number", { "data-name": "waited" }));
  return made;
}

function fillRow(made, row) {
  const [left, , keys, until, waited] = made.cells;
  const time = row.gone ? "ended" : row.left === null ? "no deadline" : row.left > 0 ? duration(row.left) : "due";
  left.firstChild.textContent = time;
  const share = row.left === null || !row.timeout ? 0 : Math.max(0, Math.min(1, row.left / row.timeout));
  left.lastChild.firstChild.style.width = `${(row.gone ? 0 : share * 100).toFixed(1)}%`;
  left.classList.toggle("soon", share < 0.2);
  left.title = `of ${duration(row.timeout)}`;
  const listed = row.keys.join(", ") + (row.more ? ` and ${row.more} more` : "");
  if (keys.textContent !== listed) keys.textContent = listed;
  if (until.textContent !== row.until) until.textContent = row.until;
  waited.textContent = row.waited === null ? "" : duration(Math.max(0, row.waited));
}

// Keep a list's elements by key: focus, scrolling and what a screen reader reads stay where they are.
function keep(list, items, keyOf, create, fill) {
  const old = list.kept || new Map(), kept = new Map();
  let follows = list.firstElementChild;
  items.forEach((item, place) => {
    const key = keyOf(item, place);
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

// -- a broker cluster

function showClock() {
  const clock = last.cluster?.clock;
  find("clock").hidden = !clock;
  if (!clock) return;
  setText("clock-now", clock.held ? `${clock.now.toFixed(3)} s, ${clock.runs ? "going on" : "held"}` : "the machine's");
  const next = clock.next === null ? "nothing is pending" : `next expiration in ${duration(clock.next)}`;
  setText("clock-next", clock.held ? next : "start the cluster with clock=\"held\" to stop it");
  const buttons = find("clock-buttons");
  buttons.hidden = !clock.held;
  if (!clock.held) return;
  if (!buttons.firstChild) {
    const by = make("input", "", "", { id: "clock-by", size: "5", value: "1", inputmode: "decimal", "aria-label": "seconds" });
    buttons.append(
      act("To the next expiration", "first", () => ["POST", "clock/next", undefined, "kafka.clock.advance_to_next()"]),
      act("Advance by", "", () => ["POST", "clock/advance", { seconds: Number(by.value) }, `kafka.clock.advance(${Number(by.value)})`]), by,
      act("Go on", "", () => last.cluster.clock.runs
        ? ["POST", "clock/hold", undefined, "kafka.clock.hold()"]
        : ["POST", "clock/run", undefined, "kafka.clock.run()"]),
    );
    by.onfocus = by.oninput = () => code(buttons.children[1].plan());
  }
  const go = buttons.lastChild, text = clock.runs ? "Hold" : "Go on";
  if (go.textContent !== text) go.textContent = text;
}

function showCluster() {
  const cluster = last.cluster;
  for (const id of ["brokers", "faults"]) find(id).hidden = !cluster;
  if (!cluster) return;
  keep(find("broker-list"), cluster.brokers, (broker) => `${broker.id} ${broker.state}`, (broker) => {
    const card = make("li"), title = make("h4", `Broker ${broker.id}`), row = make("div", "", "row");
    title.append(make("span", broker.state, `state ${broker.state}`));
    const on = (name, className = "") => act(name[0].toUpperCase() + name.slice(1), className, () =>
      ["POST", `brokers/${broker.id}/${name}`, undefined, `kafka.${name}(${broker.id})`], `${name} broker ${broker.id}`);
    if (broker.state === "running") row.append(on("pause"), on("stop", "harm"));
    if (broker.state === "paused") row.append(on("resume", "first"), on("stop", "harm"));
    if (broker.state === "stopped") row.append(on("start", "first"));
    card.append(title, make("p"), row);
    return card;
  }, (card, broker) => {
    const inbox = broker.inbox ? `, ${whole.format(broker.inbox)} in its inbox` : "";
    const text = `${broker.at}, leads ${broker.leads} of ${broker.replicas} replicas, ${broker.connections} connections, ${whole.format(broker.waiting)} waiting${inbox}`;
    if (card.children[1].textContent !== text) card.children[1].textContent = text;
  });
  showPartitions(cluster.partitions);
  showGroups(cluster.groups);
  showTransactions(cluster.transactions);
  keep(find("fault-list"), cluster.faults, (fault) => fault.id, (fault) => {
    const card = make("li");
    const end = act("End", "", () => ["DELETE", `faults/${fault.id}`, undefined, `next(one for one in kafka.faults() if one.id == ${fault.id}).end()`], `End ${fault.what}`);
    card.append(make("p", fault.what), make("p"), end);
    return card;
  }, (card, fault) => {
    const missed = fault.misses.length ? `; nearly matched: ${fault.misses.join("; ")}` : "";
    card.children[1].textContent = `hit ${whole.format(fault.hits)} requests${missed}`;
  });
}

function showPartitions({ total, matched, rows }) {
  setText("partitions-count", matched > rows.length ? `${rows.length} of ${whole.format(total)}` : whole.format(total));
  keep(find("partitions"), rows, (row) => `${row.topic}-${row.partition}`, (row) => {
    const made = make("tr");
    made.append(make("td", `${row.topic}-${row.partition}`), make("td", "", "number", { "data-name": "high watermark" }), make("td"));
    made.lastChild.append(make("div", "", "replicas"));
    return made;
  }, (made, row) => {
    const [, mark, replicas] = made.cells;
    mark.textContent = row.high_watermark === null ? "no leader" : whole.format(row.high_watermark);
    keep(replicas.firstChild, row.replicas, (replica) => replica.broker, () => make("span"), (chip, replica) => {
      const behind = replica.end !== null && row.high_watermark !== null && row.replicas.some((one) => one.end > replica.end);
      const state = replica.leads ? "leads" : replica.end === null ? "stopped" : replica.in_sync ? "in sync" : "out of sync";
      chip.className = `replica ${replica.leads ? "leads" : ""} ${replica.in_sync ? "" : "out"} ${behind ? "behind" : ""}`;
      const text = `${replica.broker}: ${replica.end === null ? "–" : whole.format(replica.end)} ${state}`;
      if (chip.textContent !== text) chip.textContent = text;
    });
  });
}

function countdown(left, timeout) {
  const cell = make("span", "", "left");
  cell.append(make("span"), make("span", "", "bar"));
  cell.lastChild.append(make("i"));
  setCountdown(cell, left, timeout);
  return cell;
}

function setCountdown(cell, left, timeout) {
  cell.firstChild.textContent = left === null ? "" : duration(Math.max(0, left));
  cell.lastChild.firstChild.style.width = left === null || !timeout ? "0" : `${Math.max(0, Math.min(100, (100 * left) / timeout)).toFixed(1)}%`;
}

function showGroups({ total, rows }) {
  setText("groups-count", whole.format(total));
  keep(find("groups"), rows, (group) => group.id, (group) => {
    const card = make("li"), title = make("h4", group.id);
    title.append(make("span", "", "state"));
    card.append(title, make("p"), make("div"));
    return card;
  }, (card, group) => {
    card.firstChild.lastChild.textContent = group.state;
    const lags = group.lags.filter((one) => one.lag).map((one) => `${one.topic}-${one.partition}: ${whole.format(one.lag)}`).join(", ");
    card.children[1].textContent = `${group.kind}, generation ${group.generation}, lag ${whole.format(group.lag)}${lags ? ` (${lags})` : ""}`;
    keep(card.lastChild, group.members, (member) => member.id, (member) => {
      const row = make("div", "", "member");
      const expire = act("Expire", "harm", () => ["POST", `groups/${encodeURIComponent(group.id)}/expire`, { member: member.id },
        `kafka.expire_member(${py(group.id)}, ${py(member.id)})`], `Expire the session of ${member.id}`);
      row.append(make("span", member.client || member.id, "", { title: member.id }), countdown(member.left, member.session), expire);
      return row;
    }, (row, member) => setCountdown(row.children[1], member.left, member.session));
  });
}

function showTransactions({ total, rows }) {
  setText("transactions-count", whole.format(total));
  keep(find("transactions"), rows, (one) => `${one.id} ${one.left === null}`, (one) => {
    const card = make("li"), title = make("h4", one.id);
    title.append(make("span", "", "state"));
    const fence = act("Fence", "harm", () => ["POST", `transactions/${encodeURIComponent(one.id)}/fence`, undefined, `kafka.fence(${py(one.id)})`], `Fence ${one.id}`);
    card.append(title, make("p"), one.left === null ? make("span") : countdown(one.left, one.timeout), make("div", "", "row"));
    card.lastChild.append(fence);
    return card;
  }, (card, one) => {
    card.firstChild.lastChild.textContent = one.state;
    card.children[1].textContent = `producer ${one.producer}, epoch ${one.epoch}${one.partitions.length ? `, on ${one.partitions.join(", ")}` : ""}`;
    if (one.left !== null) setCountdown(card.children[2], one.left, one.timeout);
  });
}

// -- doing: every button is a line of Python and of curl

const py = (value) => (typeof value === "number" ? String(value) : value === true ? "True" : JSON.stringify(value));
const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function act(text, className, plan, label) {
  const button = make("button", text, className, { type: "button", ...(label ? { "aria-label": label } : {}), "aria-describedby": "code-python" });
  button.plan = plan;
  button.onclick = () => run(plan());
  button.onfocus = button.onmouseenter = () => code(plan());
  return button;
}

function code([method, path, body, python]) {
  const url = new URL(path, location.origin + location.pathname).href;
  const parts = ["curl", "-X", method];
  if (token) parts.push("-H", "'Authorization: Bearer '$TOKEN");
  if (body !== undefined) parts.push("-H", "'Content-Type: application/json'", "-d", shell(JSON.stringify(body)));
  find("code-python").textContent = python;
  find("code-curl").textContent = [...parts, shell(url)].join(" ");
}

async function run(plan) {
  const [method, path, body] = plan;
  code(plan);
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  try {
    const got = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const answer = got.status === 204 ? {} : await got.json();
    say(got.ok ? `Done${summary(answer)}` : answer.error, !got.ok);
  } catch (error) {
    say(`Not done: ${error.message}`, true);
  }
}

function summary(answer) {
  const plain = Object.entries(answer).filter(([, value]) => value !== null && typeof value !== "object" && value !== "");
  const told = plain.map(([name, value]) => `${name} ${typeof value === "number" ? Number(value.toFixed(6)) : value}`);
  return told.length ? `: ${told.join(", ")}` : "";
}

function say(text, wrong = false) {
  find("said").textContent = text;
  find("said").className = wrong ? "wrong" : "";
}

const TEXTS = ["topic", "client_id", "group", "transactional_id"], NUMBERS = ["partition", "broker", "nth", "times"];

function faultPlan() {
  const value = (name) => find(`fault-${name}`).value.trim();
  const action = value("do"), body = { action }, python = [];
  const give = (name, given) => { body[name] = given; python.push(`${name}=${py(given)}`); };
  if (value("api")) { body.api = value("api"); python.push(py(body.api)); }
  if (action === "fail") give("error", value("error"));
  if (action === "delay") give("seconds", Number(value("seconds")));
  if (action === "drop" && find("fault-answer").checked) give("answer", true);
  for (const name of TEXTS) if (value(name)) give(name, value(name));
  for (const name of NUMBERS) if (value(name)) give(name, Number(value(name)));
  return ["POST", "faults", body, `kafka.${action}(${python.join(", ")})`];
}

find("fault-form").onsubmit = (event) => { event.preventDefault(); run(faultPlan()); };
find("fault-form").oninput = () => {
  for (const label of document.querySelectorAll("[data-for]")) label.hidden = label.dataset.for !== find("fault-do").value;
  code(faultPlan());
};
find("fault-form").addEventListener("focusin", () => code(faultPlan()));
for (const what of ["python", "curl"]) {
  find(`copy-${what}`).onclick = () => navigator.clipboard?.writeText(find(`code-${what}`).textContent).then(() => say("Copied"), () => say("Copying is not allowed here", true));
}

let typing = 0;
for (const id of ["find", "find-cluster"]) {
  find(id).oninput = () => { clearTimeout(typing); typing = setTimeout(listen, 150); };
}
find("purgatory").onchange = listen;
code(["GET", "", undefined, "abeyant.window.serve(timer, purgatory)"]);
find("code-curl").textContent = `curl ${shell(new URL("state", location.origin + location.pathname).href)}`;
listen();
