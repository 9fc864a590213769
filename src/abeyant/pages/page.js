"use strict";
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const picker = document.getElementById("scope");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // In a notebook: the frame that the page stands in. From elsewhere, and where it may not be touched, it is null.
  const frame = root.classList.contains("inline") ? window.frameElement : null;

  const touch = window.matchMedia("(pointer: coarse)").matches; // a finger on a plot scrolls the page

  const template = () => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      gridcolor: colour("--grid"), linecolor: colour("--line"), zeroline: false, automargin: true, autotickangles: [0, 90],
      tickfont: { color: colour("--quiet"), size: 12 },
      title: { font: { color: colour("--quiet"), size: 12 }, standoff: 8 },
    };
    return {
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: colour("--ink"), family: getComputedStyle(document.body).fontFamily, size: 13 },
        margin: { l: 8, r: 12, t: 8, b: 8, pad: 2 },
        xaxis: { ...axis, showgrid: true, spikethickness: 1, spikecolor: colour("--quiet") },
        yaxis: axis,
        hoverlabel: {
          bgcolor: colour("--raised"), bordercolor: colour("--line"), align: "left", namelength: -1,
          font: { color: colour("--ink"), size: 13 },
        },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--line"), activecolor: colour("--ink") },
      },
    };
  };

  // The buttons are named, not left to plotly: by default it offers to send a chart's data to its cloud.
  const config = {
    responsive: true, displaylogo: false, displayModeBar: "hover", scrollZoom: false, plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };

  // -- what is shown: kept in the address, so that it can be sent --------------------------------------------------
  const kinds = document.getElementById("kind");
  const address = new URLSearchParams(location.search);
  const choose = (select, text) => {
    const found = select && [...select.options].find((option) => option.text === text);
    if (found) select.value = found.value;
  };
  const boxes = [...document.querySelectorAll("[data-logarithmic]")];
  const sortable = [...document.querySelectorAll("table.sortable")].filter((table) => table.tBodies[0].rows.length > 1);
  for (const box of boxes) box.checked = address.getAll("log").includes(box.dataset.logarithmic);
  choose(picker, address.get("show"));
  choose(kinds, address.get("kind"));
  const second = (name) => (/^-?\d{1,12}$/.test(address.get(name) ?? "") ? Number(address.get(name)) : null);
  let span = second("from") !== null && second("from") < second("to") ? [second("from"), second("to")] : null;

  const remember = () => {
    const now = new URLSearchParams();
    if (picker.selectedIndex > 0) now.set("show", picker.selectedOptions[0].text);
    if (kinds?.value) now.set("kind", kinds.selectedOptions[0].text);
    if (span) { now.set("from", span[0]); now.set("to", span[1]); }
    for (const box of boxes) if (box.checked) now.append("log", box.dataset.logarithmic);
    sortable.forEach((table, number) => {
      [...table.tHead.rows[0].cells].forEach((heading, column) => {
        if (heading.ariaSort) now.append("sort", `${number}.${column}.${heading.ariaSort}`);
      });
    });
    const query = now.toString();
    try {
      history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`);
    } catch { /* a page without an address of its own */ }
  };

  // -- figures ------------------------------------------------------------------------------------------------------
  const GAP = 28; // between small plots, for their titles
  const TITLE = 12; // the size of their letters
  const BELOW = 62;

  // Titles that are wider than their plots take two lines, and names that are still too long are cut in their middle.
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const wide = (text) => {
    pen.font = `bold ${TITLE}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };
  const plain = (markup) => new DOMParser().parseFromString(markup, "text/html").body.textContent;
  const shortened = (markup, room) => {
    const letters = [...plain(markup)];
    let text = letters.join("");
    for (let kept = letters.length - 1; wide(text) > room && kept > 5; kept -= 1) {
      text = [...letters.slice(0, Math.ceil((kept * 2) / 3)), "…", ...letters.slice(-Math.floor(kept / 3))].join("");
    }
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  };
  const fitted = (titles) => {
    const room = document.querySelector("main").clientWidth - 60; // beside the axis' own numbers
    if (titles.every((title) => wide(plain(title)) <= room)) return [titles, GAP];
    const lines = titles.map((title) => /^<b>(.*?)<\/b> *(.*)$/s.exec(title));
    const folded = lines.map(([, name, rest]) => `<b>${shortened(name, room)}</b>${rest && `<br>${rest}`}`);
    return [folded, lines.some(([, , rest]) => rest) ? GAP + TITLE * 1.3 : GAP];
  };

  // Small plots below one another on one axis: those of the kind that is chosen, else all.
  const stack = (data, layout, kind) => {
    const { rows, rowPixels, byKind } = layout.meta;
    const name = (number) => (number ? `yaxis${number + 1}` : "yaxis");
    const short = (number) => (number ? `y${number + 1}` : "y");
    const kept = rows.map((row, number) => number).filter((number) => !kind || !byKind || rows[number].kind === kind);
    if (!kept.length) return null;
    const axes = {};
    const titles = [];
    const [texts, gap] = fitted(kept.map((number) => rows[number].title));
    const inner = kept.length * (rowPixels + gap);
    kept.forEach((number, place) => {
      const top = 1 - (place * (rowPixels + gap) + gap) / inner;
      const domain = [Math.max(0, 1 - ((place + 1) * (rowPixels + gap)) / inner), top];
      axes[name(place)] = { ...layout[name(number)], domain, anchor: "x" };
      titles.push({
        text: texts[place], font: { size: TITLE }, xref: "paper", yref: "paper", x: 0, y: top, align: "left",
        xanchor: "left", yanchor: "bottom", showarrow: false,
      });
    });
    const rest = Object.fromEntries(Object.entries(layout).filter(([key]) => !key.startsWith("yaxis")));
    return {
      data: data
        .map((trace) => [trace, kept.findIndex((number) => short(number) === (trace.yaxis ?? "y"))])
        .filter(([, place]) => place >= 0)
        .map(([trace, place]) => ({ ...trace, yaxis: short(place) })),
      layout: {
        ...rest, ...axes, annotations: titles, height: inner + BELOW, uirevision: `${layout.uirevision} ${kind}`,
        xaxis: { ...layout.xaxis, anchor: short(kept.length - 1) },
      },
    };
  };

  const logarithmic = (layout) => {
    for (const key of Object.keys(layout)) {
      if (key.startsWith("yaxis")) layout[key] = { ...layout[key], type: "log", range: [-3.3, 0.05], dtick: 1, nticks: undefined };
    }
    layout.uirevision += " logarithmic";
  };

  // -- a part of the time: counts by slices, from which tables and figures are made anew ---------------------------
  const counts = JSON.parse(document.getElementById("by-time").textContent);
  const STEPS = 1000;
  const OUTCOMES = ["completed", "expired", "unknown"];

  // What was counted of each kind, key or API in the part of the time and the scope that are shown.
  const counted = (sort) => {
    const { first, width, cells } = counts[sort];
    const scope = Number(picker.value);
    const found = new Map();
    const at = [0, 0, 0];
    for (let i = 0; i < cells.length; i += 5) {
      for (let n = 0; n < 3; n += 1) at[n] += cells[i + n];
      const [instance, what, slice] = at;
      const begin = first + slice * width;
      if ((scope && instance !== scope) || begin >= span[1] || begin + width <= span[0]) continue;
      if (!found.has(what)) found.set(what, new Map());
      const codes = found.get(what);
      codes.set(cells[i + 3], (codes.get(cells[i + 3]) ?? 0) + cells[i + 4]);
    }
    return found;
  };

  const edge = (step) => 10 ** (step / 10);

  // Of codes and their counts: [step or null, [completed, expired, unknown]], the shortest waits first.
  const bins = (codes) => {
    const found = new Map();
    for (const [code, count] of codes) {
      const step = code % STEPS;
      if (!found.has(step)) found.set(step, [0, 0, 0]);
      found.get(step)[Math.floor(code / STEPS)] += count;
    }
    return [...found].sort(([one], [other]) => one - other).map(([step, ended]) => [step ? step - STEPS / 2 : null, ended]);
  };

  const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);

  const measures = (codes) => {
    const waited = bins(codes);
    const [completed, expired, unknown] = OUTCOMES.map((_, n) => sum(waited.map(([, ended]) => ended[n])));
    const operations = completed + expired + unknown;
    const longest = (share) => {
      let upto = 0;
      for (const [step, ended] of waited) {
        upto += sum(ended);
        if (upto >= share * operations) return step === null ? 0 : edge(step + 0.5);
      }
      return 0;
    };
    return {
      operations, completed, expired, unknown,
      waited: sum(waited.map(([step, ended]) => (step === null ? 0 : sum(ended)))),
      expired_share: completed + expired ? expired / (completed + expired) : NaN,
      p50_ms: longest(0.5), p95_ms: longest(0.95), p99_ms: longest(0.99), max_ms: longest(1),
      total_waited_ms: sum(waited.map(([step, ended]) => (step === null ? 0 : edge(step + 0.5) * sum(ended)))),
    };
  };

  const asked = (codes) => {
    const [requests, waited] = [codes.get(0) ?? 0, codes.get(1) ?? 0];
    return { requests, waited, share: requests ? waited / requests : NaN };
  };

  const count = (number) => number.toLocaleString("en-US");
  const percent = (share) => (Number.isNaN(share) ? "\u2013" : `${Number((100 * share).toPrecision(3))}\u00a0%`);
  const duration = (ms) => {
    const three = (number) => Number(number.toPrecision(3));
    if (ms && ms < 0.1) return `${three(ms * 1000)}\u00a0µs`;
    if (ms < 999.5) return `${three(ms)}\u00a0ms`;
    if (ms < 59_950) return `${three(ms / 1000)}\u00a0s`;
    return ms < 3_570_000 ? `${three(ms / 60_000)}\u00a0min` : `${three(ms / 3_600_000)}\u00a0h`;
  };
  const shown = (name, value) => {
    if (name.endsWith("share")) return percent(value);
    return name.endsWith("_ms") ? (value ? `\u2248\u00a0${duration(value)}` : duration(0)) : count(value);
  };

  // Give a table the numbers of the part that is shown; of the whole log it has its own.
  const recount = (table) => {
    const columns = [...table.tHead.rows[0].cells].map((cell) => cell.dataset.column);
    if (!columns.some(Boolean)) return;
    const sort = columns.includes("requests") ? "apis" : table.querySelector("td code") ? "keys" : "kinds";
    const found = span && counted(sort);
    const most = {};
    for (const row of table.tBodies[0].rows) {
      row.whole ??= [...row.cells].map((cell) => [cell.innerHTML, cell.dataset.value, cell.style.getPropertyValue("--bar")]);
      const codes = found?.get(Number(row.dataset.number));
      if (span && !codes) row.dataset.out = "yes";
      const now = codes && (sort === "apis" ? asked(codes) : measures(codes));
      columns.forEach((name, number) => {
        if (!name) return;
        const cell = row.cells[number];
        const [text, value, bar] = row.whole[number];
        if (now) {
          cell.textContent = shown(name, now[name]);
          cell.dataset.value = now[name];
          if (row.dataset.out !== "yes") most[number] = Math.max(most[number] ?? 0, now[name] || 0);
        } else {
          cell.innerHTML = text;
          if (value === undefined) delete cell.dataset.value; else cell.dataset.value = value;
          cell.style.setProperty("--bar", bar);
        }
      });
    }
    for (const row of span ? table.tBodies[0].rows : []) {
      for (const [number, top] of Object.entries(most)) {
        const cell = row.cells[number];
        if (cell.classList.contains("bar")) cell.style.setProperty("--bar", top ? (cell.dataset.value || 0) / top : 0);
      }
    }
  };

  // Each row's kind, its number among all kinds, and its counts.
  const rowsAnew = (layout) => {
    const found = counted("kinds");
    return layout.meta.rows.map((row, number) => {
      const codes = found.get(counts.order.indexOf(row.kind)) ?? new Map();
      const name = /^<b>(.*?)<\/b>/.exec(row.title)[1]; // the kind, as it may stand in a plot
      return { row, name, axis: number ? `y${number + 1}` : "y", waited: bins(codes), all: measures(codes) };
    });
  };

  const faint = (colour) => `${colour}59`;
  const anew = {
    "plot-waits": (data, layout) => {
      const drawn = rowsAnew(layout).flatMap(({ row, name, axis, waited, all }) => {
        const highest = Math.max(0, ...waited.map(([step, ended]) => (step === null ? 0 : sum(ended))));
        layout[axis.replace("y", "yaxis")].dtick = highest < 5 ? 1 : undefined;
        row.title = `<b>${name}</b>  ${count(all.waited)} waited${all.expired ? `, <b>${count(all.expired)} expired</b>` : ""}`;
        return [["completed", 0, row.colour], ["unknown", 2, faint(row.colour)], ["expired", 1, "#d8433c"]].map(
          ([outcome, which, colour]) => {
            const some = waited.filter(([step, ended]) => step !== null && ended[which]);
            return {
              type: "bar", name: `${name} ${outcome}`, yaxis: axis, marker: { color: colour, line: { width: 0 } },
              x: some.map(([step]) => (edge(step) + edge(step + 1)) / 2), width: some.map(([step]) => edge(step + 1) - edge(step)),
              y: some.map(([, ended]) => ended[which]),
              customdata: some.map(([step]) => [duration(edge(step)), duration(edge(step + 1))]),
              hovertemplate: "<b>%{y:,d}</b> after %{customdata[0]} to %{customdata[1]}",
            };
          });
      });
      return { data: drawn, layout: { ...layout, uirevision: `${layout.uirevision} ${span}` } };
    },
    // Kaplan and Meier's estimate, as for the whole log: what expired is censored.
    "plot-timeout": (data, layout) => {
      const drawn = rowsAnew(layout).map(({ row, name, axis, waited, all }) => {
        let [risk, share] = [all.operations, 1];
        const steps = waited.map(([step, [completed, ...others]]) => {
          share *= risk ? 1 - completed / risk : 1;
          const before = risk;
          risk -= completed + sum(others);
          return [step === null ? 0.001 : edge(step + 1), share, before];
        });
        if (waited.length && waited[0][0] !== null) steps.unshift([0.001, 1, all.operations]);
        return {
          type: "scatter", mode: "lines", name, yaxis: axis, x: steps.map(([x]) => x), y: steps.map(([, y]) => y),
          customdata: steps.map(([, , before]) => before), line: { shape: "hv", width: 2, color: row.colour },
          hovertemplate: "<b>%{y:.3~p}</b> would expire (%{customdata:,d} waited so long)",
        };
      });
      return { data: drawn, layout: { ...layout, uirevision: `${layout.uirevision} ${span}` } };
    },
  };

  // Small plots that stand side by side go below one another where the window is narrow.
  const narrow = window.matchMedia("(max-width: 599px)");
  const below = (layout) => {
    const { panels, rowPixels } = layout.meta;
    const gapPixels = Math.max(layout.meta.gapPixels, 66); // ticks and title of the one above, and its own title
    const inner = panels * (rowPixels + gapPixels) + 30;
    const titles = layout.annotations.splice(-panels);
    titles.forEach((title, number) => {
      const top = 1 - (number * (rowPixels + gapPixels) + gapPixels - 18) / inner;
      const index = number ? number + 1 : "";
      const across = layout[`xaxis${index}`];
      across.domain = [0, 1];
      const every = Math.ceil((across.tickvals?.length ?? 0) / 5);
      if (every > 1) {
        for (const name of ["tickvals", "ticktext"]) across[name] = across[name].filter((_, at) => at % every === 0);
      }
      layout[`yaxis${index}`].domain = [Math.max(0, top - rowPixels / inner), top];
      layout.annotations.push({ ...title, x: 0, y: top });
    });
    layout.legend.y = -60 / inner;
    layout.height = inner + 90;
  };

  const place = (figure, id, look) => {
    let { data, layout } = structuredClone(figure);
    if (span && counts && anew[id]) ({ data, layout } = anew[id](data, layout));
    if (layout.meta?.rows) {
      const stacked = stack(data, layout, kinds?.value ?? "");
      if (!stacked) return null;
      ({ data, layout } = stacked);
    }
    if (document.querySelector(`[data-logarithmic="${id}"]`)?.checked) logarithmic(layout);
    if (layout.xaxis?.type === "date" && span) {
      layout.xaxis = { ...layout.xaxis, range: [span[0] * 1000, span[1] * 1000], autorange: false };
      layout.uirevision += ` ${span}`;
    }
    if (layout.meta?.panels && narrow.matches) below(layout);
    if (layout.showlegend && window.innerWidth < 600) layout.height += 120; // the legend takes many lines
    return { data, layout: { ...layout, dragmode: touch ? false : "zoom", template: look } };
  };

  const draw = () => {
    const scope = picker.value;
    const look = template();
    for (const part of document.querySelectorAll("[data-scope]")) part.hidden = part.dataset.scope !== scope;
    for (const [id, byScope] of Object.entries(figures)) {
      const node = document.getElementById(id);
      const figure = byScope[scope] && place(byScope[scope], id, look);
      node.hidden = !figure;
      document.getElementById(`${id}-nothing`).hidden = Boolean(figure);
      if (!figure) { Plotly.purge(node); continue; }
      node.style.height = `${figure.layout.height}px`; // plotly forgets its own when the window's size changes
      Plotly.react(node, figure.data, figure.layout, config);
      if (figure.layout.xaxis?.type === "date" && !node.dataset.listening) {
        node.dataset.listening = "yes";
        node.on("plotly_relayout", zoomed);
      }
    }
    filter();
    remember();
    hint();
    fit();
  };

  // A zoom into time is a choice like the others.
  const zoomed = (event) => {
    const [first, last] = event["xaxis.range"] ?? [event["xaxis.range[0]"], event["xaxis.range[1]"]];
    const at = (time) => (typeof time === "number" ? time : Date.parse(`${String(time).replace(" ", "T")}Z`)) / 1000;
    if (event["xaxis.autorange"]) span = null;
    else if (first !== undefined && last !== undefined) span = [Math.floor(at(first)), Math.ceil(at(last))];
    else return;
    draw();
  };

  // A notebook has colours of its own, whatever the reader's are: go by the ground that the frame stands on.
  const surroundings = () => {
    if (!frame) return false;
    const before = root.className;
    // Where nothing has a ground, it is the window's, dark for a page that says that it can be.
    const said = window.parent.getComputedStyle(frame.ownerDocument.documentElement).colorScheme;
    let found = said.includes("dark") && (dark.matches || !said.includes("light"));
    for (let at = frame; at; at = at.parentElement) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = window.parent.getComputedStyle(at).backgroundColor;
      pen.fillRect(0, 0, 1, 1);
      const [red, green, blue, opaque] = pen.getImageData(0, 0, 1, 1).data;
      if (opaque < 128) continue;
      found = 0.299 * red + 0.587 * green + 0.114 * blue < 128;
      break;
    }
    root.classList.toggle("dark", found);
    root.classList.toggle("light", !found);
    return root.className !== before;
  };

  // Not by the observer alone: a browser that paints nothing, as for a page that nobody sees, calls none.
  const fit = () => {
    if (frame) frame.style.height = `${Math.ceil(root.getBoundingClientRect().height)}px`;
  };

  const fill = () => {
    surroundings();
    new ResizeObserver(fit).observe(root);
    const around = frame.ownerDocument;
    const changed = new MutationObserver(() => { if (surroundings()) draw(); });
    for (const node of [around.documentElement, around.body]) changed.observe(node, { attributes: true });
  };

  // -- tables -------------------------------------------------------------------------------------------------------
  const MOST_ROWS = 12;

  const overlaps = (row) => {
    const link = span && row.querySelector("a.when");
    if (!link) return true;
    const its = new URLSearchParams(link.search);
    return Number(its.get("from")) <= span[1] && Number(its.get("to")) >= span[0];
  };

  const filter = () => {
    const kind = kinds?.value ?? "";
    for (const row of document.querySelectorAll("table.sortable tbody tr")) {
      const its = row.dataset.kind; // of a table of APIs: the API, and one FETCH asks for all kinds of fetches
      const other = kind && its && its !== kind && !(its === "FETCH" && kind.startsWith("FETCH_"));
      row.dataset.out = other || !overlaps(row) ? "yes" : "";
    }
    if (counts) document.querySelectorAll("[data-scope] table.sortable").forEach(recount);
    document.querySelectorAll("table.sortable").forEach(fold);
    const whole = document.getElementById("whole");
    if (whole) {
      whole.hidden = !span;
      const clock = (time) => new Date(time * 1000).toISOString().slice(11, 19);
      if (span) whole.textContent = `${clock(span[0])} to ${clock(span[1])}: show the whole log`;
      const note = document.getElementById("slices");
      note.hidden = !span || !counts;
      if (!note.hidden) note.textContent = `counted in slices of ${duration(counts.kinds.width * 1000)}; waits are approximate`;
    }
  };

  // Long tables begin with their first rows; a button shows the others.
  const fold = (table) => {
    const body = table.tBodies[0];
    const open = table.dataset.open === "yes";
    let shown = 0;
    let left = 0;
    for (const row of body.rows) {
      const fits = row.dataset.out !== "yes";
      row.hidden = !fits || (!open && shown >= MOST_ROWS);
      if (fits && row.hidden) left += 1;
      if (!row.hidden) shown += 1;
    }
    const button = table.parentElement.querySelector("button.more") ?? document.createElement("button");
    if (!button.isConnected) {
      button.type = "button";
      button.className = "more";
      button.addEventListener("click", () => { table.dataset.open = "yes"; fold(table); });
      table.parentElement.append(button);
    }
    button.hidden = !left;
    button.textContent = `show ${left} more`;
  };

  // A table that is wider than its place says so: no column is hidden without a word.
  const hint = () => {
    for (const box of document.querySelectorAll(".wide")) {
      box.classList.toggle("scrolling", box.scrollWidth > box.clientWidth + 1);
    }
  };

  const sort = (table, column, heading, order) => {
    const numbers = heading.classList.contains("number");
    for (const other of heading.parentElement.cells) other.ariaSort = null;
    heading.ariaSort = order;
    const of = (row) => {
      const cell = row.cells[column];
      return numbers ? Number(cell.dataset.value ?? -Infinity) : cell.textContent;
    };
    const compare = (one, other) => (numbers ? of(one) - of(other) : of(one).localeCompare(of(other), undefined, { numeric: true }));
    const down = order === "descending";
    const rows = [...table.tBodies[0].rows].sort((one, other) => (down ? compare(other, one) : compare(one, other)));
    table.tBodies[0].append(...rows);
    fold(table);
  };

  for (const table of sortable) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.ariaSort ? heading.ariaSort === "ascending" : heading.classList.contains("number");
        sort(table, column, heading, down ? "descending" : "ascending");
        remember();
      });
    });
  }
  for (const named of address.getAll("sort")) {
    const [, number, column, order] = /^(\d+)\.(\d+)\.(ascending|descending)$/.exec(named) ?? [];
    const heading = sortable[number]?.tHead.rows[0].cells[column];
    if (heading) sort(sortable[number], column, heading, order);
  }

  for (const link of document.querySelectorAll("a.when")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const its = new URLSearchParams(link.search);
      const [first, last] = [Number(its.get("from")), Number(its.get("to"))];
      const margin = Math.max(5, Math.round((last - first) / 2));
      span = [first - margin, last + margin];
      draw();
      document.getElementById(link.hash.slice(1)).scrollIntoView();
    });
  }
  document.getElementById("whole")?.addEventListener("click", () => { span = null; draw(); });

  for (const note of document.querySelectorAll("details")) note.addEventListener("toggle", hint);
  window.addEventListener("resize", hint);
  picker.addEventListener("change", draw);
  kinds?.addEventListener("change", draw);
  for (const box of boxes) box.addEventListener("change", draw);
  dark.addEventListener("change", () => { surroundings(); draw(); });
  narrow.addEventListener("change", draw);
  window.addEventListener("beforeprint", () => { root.classList.add("print"); draw(); });
  window.addEventListener("afterprint", () => { root.classList.remove("print"); draw(); });
  if (frame) fill();
  draw();
})();
