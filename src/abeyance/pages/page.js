"use strict";
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const picker = document.getElementById("scope");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const touch = window.matchMedia("(pointer: coarse)").matches; // a finger on a plot scrolls the page

  const template = () => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      gridcolor: colour("--grid"), linecolor: colour("--line"), zeroline: false, automargin: true,
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
  const asked = new URLSearchParams(location.search);
  const choose = (select, text) => {
    const found = select && [...select.options].find((option) => option.text === text);
    if (found) select.value = found.value;
  };
  choose(picker, asked.get("show"));
  choose(kinds, asked.get("kind"));
  const second = (name) => (/^\d{1,12}$/.test(asked.get(name) ?? "") ? Number(asked.get(name)) : null);
  let span = second("from") !== null && second("from") < second("to") ? [second("from"), second("to")] : null;

  const remember = () => {
    const now = new URLSearchParams();
    if (picker.selectedIndex > 0) now.set("show", picker.selectedOptions[0].text);
    if (kinds?.value) now.set("kind", kinds.selectedOptions[0].text);
    if (span) { now.set("from", span[0]); now.set("to", span[1]); }
    const query = now.toString();
    try {
      history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`);
    } catch { /* a page without an address of its own */ }
  };

  // -- figures ------------------------------------------------------------------------------------------------------
  const GAP = 28; // between small plots, for their titles
  const BELOW = 62;

  // Small plots below one another on one axis: those of the kind that is chosen, else all.
  const stack = (data, layout, kind) => {
    const { rows, rowPixels } = layout.meta;
    const name = (number) => (number ? `yaxis${number + 1}` : "yaxis");
    const short = (number) => (number ? `y${number + 1}` : "y");
    const kept = rows.map((row, number) => number).filter((number) => !kind || rows[number].kind === kind);
    if (!kept.length) return null;
    const axes = {};
    const titles = [];
    const inner = kept.length * (rowPixels + GAP);
    kept.forEach((number, place) => {
      const top = 1 - (place * (rowPixels + GAP) + GAP) / inner;
      const domain = [Math.max(0, 1 - ((place + 1) * (rowPixels + GAP)) / inner), top];
      axes[name(place)] = { ...layout[name(number)], domain, anchor: "x" };
      titles.push({
        text: rows[number].title, font: { size: 12 }, xref: "paper", yref: "paper", x: 0, y: top, align: "left",
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

  // Small plots that stand side by side go below one another where the window is narrow.
  const narrow = window.matchMedia("(max-width: 599px)");
  const below = (layout) => {
    const { panels, rowPixels, gapPixels } = layout.meta;
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
    for (const row of document.querySelectorAll("tr[data-kind]")) {
      row.dataset.out = (kind && row.dataset.kind !== kind) || !overlaps(row) ? "yes" : "";
    }
    document.querySelectorAll("table.sortable").forEach(fold);
    const whole = document.getElementById("whole");
    if (whole) {
      whole.hidden = !span;
      const clock = (time) => new Date(time * 1000).toISOString().slice(11, 19);
      if (span) whole.textContent = `${clock(span[0])} to ${clock(span[1])}: show the whole log`;
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

  const sort = (table, column, heading) => {
    const numbers = heading.classList.contains("number");
    const down = heading.ariaSort ? heading.ariaSort === "ascending" : numbers;
    for (const other of heading.parentElement.cells) other.ariaSort = null;
    heading.ariaSort = down ? "descending" : "ascending";
    const of = (row) => {
      const cell = row.cells[column];
      return numbers ? Number(cell.dataset.value ?? -Infinity) : cell.textContent;
    };
    const compare = (one, other) => (numbers ? of(one) - of(other) : of(one).localeCompare(of(other), undefined, { numeric: true }));
    const rows = [...table.tBodies[0].rows].sort((one, other) => (down ? compare(other, one) : compare(one, other)));
    table.tBodies[0].append(...rows);
    fold(table);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, column, heading));
    });
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

  picker.addEventListener("change", draw);
  kinds?.addEventListener("change", draw);
  for (const box of document.querySelectorAll("[data-logarithmic]")) box.addEventListener("change", draw);
  dark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  window.addEventListener("beforeprint", () => { root.classList.add("print"); draw(); });
  window.addEventListener("afterprint", () => { root.classList.remove("print"); draw(); });
  draw();
})();
