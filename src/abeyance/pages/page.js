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

  const draw = () => {
    const scope = picker.value;
    const look = template();
    for (const part of document.querySelectorAll("[data-scope]")) part.hidden = part.dataset.scope !== scope;
    for (const [id, byScope] of Object.entries(figures)) {
      const node = document.getElementById(id);
      const figure = byScope[scope];
      node.hidden = !figure;
      document.getElementById(`${id}-nothing`).hidden = Boolean(figure);
      if (!figure) { Plotly.purge(node); continue; }
      const { data, layout } = structuredClone(figure);
      if (document.querySelector(`[data-logarithmic="${id}"]`)?.checked) {
        layout.yaxis = { ...layout.yaxis, type: "log", range: [-3.3, 0.05], dtick: 1 };
        layout.uirevision += " logarithmic";
      }
      if (layout.showlegend && window.innerWidth < 600) layout.height += 120; // the legend takes many lines
      node.style.height = `${layout.height}px`; // plotly forgets its own when the window's size changes
      Plotly.react(node, data, { ...layout, dragmode: touch ? false : "zoom", template: look }, config);
    }
  };

  picker.addEventListener("change", draw);
  for (const box of document.querySelectorAll("[data-logarithmic]")) box.addEventListener("change", draw);
  dark.addEventListener("change", draw);
  window.addEventListener("beforeprint", () => { root.classList.add("print"); draw(); });
  window.addEventListener("afterprint", () => { root.classList.remove("print"); draw(); });
  draw();
})();
