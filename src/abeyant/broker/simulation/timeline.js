"use strict";
// The timeline of a simulated run: one mark has the focus, arrow keys go from mark to mark, and what it is stands below.
(() => {
  const chart = document.getElementById("chart");
  if (!chart) return;
  const box = chart.parentElement;
  const about = document.getElementById("about");
  const beside = document.getElementById("beside");
  const most = 64;
  let zoom = 1;
  let current = null;

  const tracks = () => [...chart.querySelectorAll(".track")].filter((one) => one.checkVisibility() && one.querySelector(".m"));
  const marks = (track) => [...track.querySelectorAll(".m")];
  const at = (mark) => Number.parseFloat(mark.style.left);
  const say = (mark) => { about.textContent = mark.getAttribute("aria-label"); };

  const choose = (mark, focus = true) => {
    if (!mark) return;
    if (current) current.tabIndex = -1;
    current = mark;
    mark.tabIndex = 0;
    if (!focus) return;
    mark.focus({ preventScroll: true });
    mark.scrollIntoView({ block: "nearest", inline: "nearest" });
    say(mark);
  };

  const enlarge = (factor) => {
    const width = box.clientWidth;
    const middle = (box.scrollLeft + width / 2) / (zoom * width);
    zoom = Math.min(Math.max(zoom * factor, 1), most);
    chart.style.width = `${zoom * 100}%`;
    box.scrollLeft = middle * zoom * width - width / 2;
  };

  const nearest = (track, place) =>
    marks(track).reduce((best, one) => (Math.abs(at(one) - place) < Math.abs(at(best) - place) ? one : best));

  const go = (key) => {
    const every = tracks();
    const row = every.indexOf(current.parentElement);
    const own = marks(current.parentElement);
    const number = own.indexOf(current);
    if (key === "ArrowRight") return own[number + 1];
    if (key === "ArrowLeft") return own[number - 1];
    if (key === "Home") return own[0];
    if (key === "End") return own.at(-1);
    const other = every[row + (key === "ArrowDown" ? 1 : -1)];
    return other && nearest(other, at(current));
  };

  chart.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") enlarge(2);
    else if (event.key === "-") enlarge(0.5);
    else if (event.key === "0") enlarge(1 / most);
    else if (["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key) && current) choose(go(event.key));
    else return;
    event.preventDefault();
    current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  chart.addEventListener("focusin", (event) => { if (event.target.matches(".m")) say(event.target); });
  chart.addEventListener("pointerover", (event) => { if (event.target.matches(".m")) say(event.target); });
  chart.addEventListener("click", (event) => { if (event.target.matches(".m")) choose(event.target); });
  document.getElementById("larger").addEventListener("click", () => enlarge(2));
  document.getElementById("smaller").addEventListener("click", () => enlarge(0.5));
  document.getElementById("whole-run").addEventListener("click", () => enlarge(1 / most));
  beside?.addEventListener("change", () => {
    chart.classList.toggle("without", !beside.checked);
    if (!current?.checkVisibility()) choose(chart.querySelector(".m"), false);
  });
  choose(chart.querySelector(".track:not(.beside) .down") ?? chart.querySelector(".fault") ?? chart.querySelector(".m"), false);
})();
