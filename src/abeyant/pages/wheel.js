// Draws a timing wheel, and a purgatory by key and time left. One drawing for the window, the documentation and reports.
//
//   const wheel = AbeyantDrawing.wheel(svg);   wheel.show({size, tick, hands, buckets, pending, cascaded, rings})
//   const lanes = AbeyantDrawing.lanes(svg);   lanes.show([{keys, kind, left}], numberOfKind, {keys, longest})
//
// `hands` has the bucket in which the clock stands, of each level, the finest first; `buckets` has [level, bucket, tasks].
// `rings`, and the `keys` and `longest` time of the lanes, stay as given while what is drawn changes. Times are seconds. Colours come from the page: --ink, --faint, --line, --busy, --hand, --warn and --kind-1 to --kind-6.
const AbeyantDrawing = (() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const whole = new Intl.NumberFormat("en");
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

  function make(kind, attributes = {}, text) {
    const made = document.createElementNS(NAMESPACE, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // A duration as a person says it: 0.25 s is "250 ms", 5400 s is "90 min".
  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "";
    const size = Math.abs(seconds);
    const units = [[86400 * 365.25, "years"], [172800, "d", 86400], [7200, "h", 3600], [120, "min", 60], [1, "s", 1], [1e-3, "ms", 1e-3]];
    for (const [from, unit, one = from] of units) {
      if (size >= from) {
        const value = seconds / one;
        const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
        return `${whole.format(Number(value.toFixed(digits)))} ${unit}`;
      }
    }
    if (!size) return "0 s";
    return size >= 1e-6 ? `${Number((seconds * 1e6).toPrecision(3))} µs` : `${Math.round(seconds * 1e9)} ns`;
  }

  // -- the wheel: a ring for each level, the finest outside

  const MIDDLE = 200, OUTER = 192, INNER = 62, GAP = 5, MOST_SECTORS = 128, MOST_RINGS = 7;

  function at(radius, turn) {
    const angle = (turn - 0.25) * 2 * Math.PI;
    return `${(MIDDLE + radius * Math.cos(angle)).toFixed(2)} ${(MIDDLE + radius * Math.sin(angle)).toFixed(2)}`;
  }

  function sector(outer, inner, from, to) {
    return `M${at(outer, from)}A${outer} ${outer} 0 0 1 ${at(outer, to)}L${at(inner, to)}A${inner} ${inner} 0 0 0 ${at(inner, from)}Z`;
  }

  function wheel(svg) {
    let form = "", rings = [], before = null, shown = new Map();
    const layers = { rings: make("g"), moves: make("g"), hands: make("g"), middle: make("g") };
    const count = make("text", { x: MIDDLE, y: MIDDLE - 2, class: "wheel-count", "text-anchor": "middle" });
    const label = make("text", { x: MIDDLE, y: MIDDLE + 18, class: "wheel-label", "text-anchor": "middle" });
    layers.middle.append(count, label);
    svg.setAttribute("viewBox", `0 0 ${2 * MIDDLE} ${2 * MIDDLE}`);
    svg.setAttribute("role", "img");
    svg.classList.add("wheel-drawing");
    svg.replaceChildren(...Object.values(layers));

    function build(levels, sectors) {
      const thick = (OUTER - INNER) / levels;
      layers.rings.replaceChildren();
      layers.hands.replaceChildren();
      shown = new Map();
      rings = Array.from({ length: levels }, (_, level) => {
        const outer = OUTER - level * thick, inner = outer - thick + GAP;
        const margin = Math.min(0.0012, 0.1 / sectors);
        const cells = Array.from({ length: sectors }, (_, place) => {
          const cell = make("path", {
            d: sector(outer, inner, place / sectors + margin, (place + 1) / sectors - margin), class: "wheel-bucket",
          });
          layers.rings.append(cell);
          return cell;
        });
        const hand = make("path", { class: "wheel-hand" });
        layers.hands.append(hand);
        return { outer, inner, cells, hand };
      });
      layers.hands.append(make("line", { class: "wheel-arm" }));
    }

    function show(model) {
      const highest = model.buckets.reduce((most, [level]) => Math.max(most, level), 0);
      const levels = Math.min(MOST_RINGS, model.hands.length, Math.max(highest + 1, model.rings ?? Math.min(3, model.hands.length)));
      const fold = Math.ceil(model.size / MOST_SECTORS), sectors = Math.ceil(model.size / fold);
      if (form !== `${levels} ${sectors}`) {
        build(levels, sectors);
        form = `${levels} ${sectors}`;
        before = null;
      }
      const holds = new Map();
      for (const [level, bucket, tasks] of model.buckets) {
        const key = `${Math.min(level, levels - 1)} ${Math.floor(bucket / fold)}`;
        holds.set(key, (holds.get(key) || 0) + tasks);
      }
      const most = Math.max(1, ...holds.values());
      for (const key of new Set([...shown.keys(), ...holds.keys()])) {
        const tasks = holds.get(key) || 0;
        if (shown.get(key) === `${tasks}/${most}`) continue;
        const [level, place] = key.split(" ").map(Number);
        paint(rings[level].cells[place], level, place, tasks, most, model, fold);
        if (tasks) shown.set(key, `${tasks}/${most}`); else shown.delete(key);
      }
      rings.forEach((ring, level) => {
        const turn = Math.floor(model.hands[level] / fold) / sectors;
        ring.hand.setAttribute("d", sector(ring.outer + 1.5, ring.inner - 1.5, turn, turn + 1 / sectors));
      });
      const angle = ((model.hands[0] + 0.5) / model.size - 0.25) * 2 * Math.PI;
      const arm = layers.hands.lastChild, [from, to] = [INNER - 8, rings[0].inner];
      for (const [name, radius, part] of [["x1", from, Math.cos], ["y1", from, Math.sin], ["x2", to, Math.cos], ["y2", to, Math.sin]]) {
        arm.setAttribute(name, (MIDDLE + radius * part(angle)).toFixed(2));
      }
      count.textContent = model.pending < 100000 ? whole.format(model.pending) : compact.format(model.pending);
      label.textContent = "pending";
      svg.setAttribute("aria-label", describe(model, levels));
      if (before && model.cascaded > before.cascaded && !calm()) cascade(before.holds, holds);
      before = { cascaded: model.cascaded, holds };
    }

    function paint(cell, level, place, tasks, most, model, fold) {
      // By the logarithm, so that one task can be seen beside a million.
      const share = tasks ? 0.28 + 0.72 * (most > 1 ? Math.log1p(tasks) / Math.log1p(most) : 1) : 0;
      cell.style.fillOpacity = tasks ? share.toFixed(2) : "";
      cell.classList.toggle("busy", tasks > 0);
      if (!tasks) { cell.replaceChildren(); return; }
      const span = model.tick * model.size ** level;
      const about = model.sampled ? "about " : "";
      const where = fold > 1 ? `buckets ${place * fold} to ${(place + 1) * fold - 1}` : `bucket ${place}`;
      const text = `level ${level + 1}, ${where}: ${about}${whole.format(tasks)} task${tasks === 1 ? "" : "s"}, ${duration(span)} a bucket`;
      cell.replaceChildren(make("title", {}, text));
    }

    // A bucket that came up: its tasks move one ring out or more, to be due within a tick.
    function cascade(then, now) {
      let drawn = 0;
      for (const [key, tasks] of then) {
        const [level, place] = key.split(" ").map(Number);
        if (level === 0 || level >= rings.length || (now.get(key) || 0) >= tasks || ++drawn > 8) continue;
        const { outer, inner, cells } = rings[level];
        const turn = (place + 0.5) / cells.length;
        const glow = make("path", { d: sector(outer, inner, place / cells.length, (place + 1) / cells.length), class: "wheel-glow" });
        const move = make("path", { d: `M${at(inner, turn)}L${at(rings[level - 1].outer, turn)}`, class: "wheel-move" });
        layers.moves.append(glow, move);
        setTimeout(() => { glow.remove(); move.remove(); }, 900);
      }
    }

    function describe(model, levels) {
      const busy = model.buckets.length;
      const spans = model.hands.slice(0, levels).map((_, level) => duration(model.tick * model.size ** level));
      return `A timing wheel of ${levels} levels with ${model.size} buckets each (of ${spans.join(", ")}): ` +
        `${whole.format(model.pending)} tasks are pending, in ${busy} buckets.`;
    }

    return { show };
  }

  // -- the purgatory: a lane for each key, a dot for each operation, at the time that it has left

  const WIDEST = 900, NARROWEST = 300, LANE = 26, RIGHT = 16, TOP = 6, LANES = 9;

  function lanes(svg) {
    svg.setAttribute("role", "img");
    svg.classList.add("lanes-drawing");

    function show(rows, kinds, fixed = {}) {
      const timed = rows.filter((row) => row.left !== null);
      const byKey = new Map();
      for (const row of timed) {
        const key = row.keys[0] ?? "";
        byKey.set(key, [...(byKey.get(key) || []), row]);
      }
      const keys = (fixed.keys ?? [...byKey.keys()]).slice(0, LANES);
      // As wide as it is shown, so that its letters are as large as the page's.
      const wide = Math.max(NARROWEST, Math.min(WIDEST, svg.clientWidth || WIDEST));
      const left = Math.min(150, Math.round(wide * 0.3)), letters = Math.floor((left - 10) / 8);
      const longest = fixed.longest || Math.max(1, ...timed.map((row) => row.left));
      const high = Math.ceil(Math.log10(longest)), low = Math.min(-2, high - 3);
      const x = (time) => left + ((Math.log10(Math.max(time, 10 ** low)) - low) / (high - low)) * (wide - left - RIGHT);
      const height = TOP + Math.max(1, keys.length) * LANE + 24;
      svg.setAttribute("viewBox", `0 0 ${wide} ${height}`);
      const drawn = [], step = (wide - left - RIGHT) / (high - low), every = Math.ceil(46 / step);
      const named = (power) => power === low || power === high || ((power - low) % every === 0 && (high - power) * step > 64);
      for (let power = low; power <= high; power++) {
        const place = x(10 ** power);
        drawn.push(make("line", { x1: place, x2: place, y1: TOP, y2: height - 20, class: power === low ? "lane-now" : "lane-grid" }));
        if (!named(power)) continue; // its name would be written over another
        const anchor = power === low ? "start" : power === high ? "end" : "middle";
        drawn.push(make("text", { x: place, y: height - 5, class: "lane-tick", "text-anchor": anchor }, power === low ? "now" : duration(10 ** power)));
      }
      keys.forEach((key, lane) => {
        const y = TOP + (lane + 0.5) * LANE;
        drawn.push(make("line", { x1: left, x2: wide - RIGHT, y1: y, y2: y, class: "lane-line" }));
        const name = make("text", { x: left - 10, y: y + 4, class: "lane-key", "text-anchor": "end" }, shorten(key, letters));
        name.append(make("title", {}, key));
        drawn.push(name);
        for (const row of byKey.get(key) ?? []) {
          const dot = make("circle", { cx: x(row.left).toFixed(1), cy: y, r: 5.5, class: `lane-dot kind-${kinds(row.kind)}` });
          dot.append(make("title", {}, `${row.kind} on ${key}: ${duration(Math.max(0, row.left))} left`));
          drawn.push(dot);
        }
      });
      svg.setAttribute("aria-label", `${timed.length} operations that expire next, on ${byKey.size} keys, by the time that they have left.`);
      svg.replaceChildren(...drawn);
    }

    return { show };
  }

  function shorten(text, most) {
    const end = Math.min(7, most >> 1);
    return text.length <= most ? text : `${text.slice(0, most - end - 1)}…${text.slice(-end)}`;
  }

  return { wheel, lanes, duration, shorten };
})();
