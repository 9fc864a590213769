// A broker cluster in the window: its clock, brokers, groups, transactions and faults; and what its buttons do.

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
  if (find("code-python").textContent === OPENED) setText("code-python", "abeyant.window.serve(kafka)");
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
  if (action === "delay" || action === "throttle") give("seconds", Number(value("seconds")));
  if (action === "drop" && find("fault-answer").checked) give("response", true);
  for (const name of TEXTS) if (value(name)) give(name, value(name));
  for (const name of NUMBERS) if (value(name)) give(name, Number(value(name)));
  return ["POST", "faults", body, `kafka.${action}(${python.join(", ")})`];
}

find("fault-form").onsubmit = (event) => { event.preventDefault(); run(faultPlan()); };
find("fault-form").oninput = () => {
  for (const label of document.querySelectorAll("[data-for]")) label.hidden = !label.dataset.for.split(" ").includes(find("fault-do").value);
  code(faultPlan());
};
find("fault-form").addEventListener("focusin", () => code(faultPlan()));
for (const what of ["python", "curl"]) {
  find(`copy-${what}`).onclick = () => navigator.clipboard?.writeText(find(`code-${what}`).textContent).then(() => say("Copied"), () => say("Copying is not allowed here", true));
}
