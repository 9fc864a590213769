// Plays an incident: the wheel and the purgatory as they were, drawn by wheel.js from the operations that waited.
// The data is what abeyant.pipeline.report.incident_drawing writes; names are only ever set as text.
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const { kinds, incidents } = JSON.parse(find("incident-data").textContent);
  const SIZE = 20, MOST_LEVELS = 6; // Kafka's wheels have 20 buckets, the finest of 1 ms
  const PLAYS_MS = 10000;
  const wheel = AbeyantDrawing.wheel(find("incident-wheel")), lanes = AbeyantDrawing.lanes(find("incident-lanes"));
  const time = find("incident-time"), play = find("incident-play"), choice = find("incident-choice");
  const whole = new Intl.NumberFormat("en");
  let incident, cascaded = 0, levels = new Map(), playing = 0;

  // As Kafka's TimingWheel.add: the finest wheel whose buckets reach the deadline.
  function place(deadline, clock) {
    let level = 0, span = 1;
    while (level < MOST_LEVELS - 1 && Math.floor(deadline / span) - Math.floor(clock / span) >= SIZE) { level += 1; span *= SIZE; }
    return [level, Math.floor(deadline / span) % SIZE];
  }

  function open(chosen) {
    incident = chosen;
    levels = new Map();
    time.max = incident.lasted;
    time.step = incident.lasted / 1000;
    const longest = Math.max(0, ...incident.waits.map(({ timeout }) => timeout ?? 0));
    incident.rings = Math.max(2, place(longest, 0)[0] + 1);
    incident.longest = longest / 1000;
    const waits = new Map();
    for (const { key } of incident.waits) waits.set(key, (waits.get(key) || 0) + 1);
    incident.keys = [...waits.keys()].sort((one, other) => waits.get(other) - waits.get(one));
    time.value = fullest();
    show();
  }

  // The moment at which most operations of the incident's own kind wait.
  function fullest() {
    const own = incident.waits.filter(({ kind }) => kind === incident.kind);
    let most = 0, at = 0;
    for (const { start } of own) {
      const pending = own.filter((one) => one.start <= start && start < one.start + one.waited).length;
      if (start >= 0 && pending > most) [most, at] = [pending, start];
    }
    return at;
  }

  function show() {
    const at = Number(time.value), clock = Math.floor(incident.first + at);
    const pending = incident.waits.filter(({ start, waited }) => start <= at && at < start + waited);
    const ended = incident.waits.filter(({ start, waited }) => start + waited <= at);
    const buckets = new Map(), now = new Map();
    for (const wait of pending) {
      if (wait.timeout === null) continue;
      const found = place(Math.ceil(incident.first + wait.start + wait.timeout), clock);
      buckets.set(found.join(), [...found, (buckets.get(found.join())?.[2] || 0) + 1]);
      now.set(wait, found[0]);
      if (levels.get(wait) > found[0]) cascaded += 1;
    }
    levels = now;
    const hands = Array.from({ length: MOST_LEVELS }, (_, level) => Math.floor(clock / SIZE ** level) % SIZE);
    wheel.show({ size: SIZE, tick: 0.001, hands, buckets: [...buckets.values()], pending: pending.length, cascaded, rings: incident.rings });
    const rows = pending.map(({ key, kind, start, timeout }) => (
      { keys: [key], kind: kinds[kind], left: timeout === null ? null : (start + timeout - at) / 1000 }));
    lanes.show(rows, (kind) => kinds.indexOf(kind) + 1, incident);
    const expired = ended.filter((one) => one.expired).length;
    const text = `${new Date(incident.first + at).toISOString().slice(11, 23)}: ${whole.format(pending.length)} pending; so far ` +
      `${whole.format(expired)} expired, ${whole.format(ended.length - expired)} completed`;
    find("incident-now").textContent = text;
    time.setAttribute("aria-valuetext", text);
  }

  function stop() {
    cancelAnimationFrame(playing);
    playing = 0;
    play.textContent = "Play";
  }

  play.onclick = () => {
    if (playing) { stop(); return; }
    if (Number(time.value) >= incident.lasted * 0.999) time.value = 0;
    const from = Number(time.value), began = performance.now();
    const frame = (now) => {
      time.value = Math.min(incident.lasted, from + ((now - began) / PLAYS_MS) * incident.lasted);
      show();
      if (Number(time.value) >= incident.lasted) stop(); else playing = requestAnimationFrame(frame);
    };
    play.textContent = "Pause";
    playing = requestAnimationFrame(frame);
  };
  time.oninput = () => { stop(); show(); };
  choice.onchange = () => { stop(); open(incidents[choice.value]); };
  addEventListener("resize", () => show());
  find("incident").hidden = false;
  open(incidents[0]);
})();
