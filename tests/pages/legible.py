"""Whether all text of a page can be read: enough contrast, nothing clipped, nothing over something else."""

from __future__ import annotations

import time

from pages.browser import Page

__all__ = ["faults", "lasting_faults"]

_PATIENCE_S = 30.0

# WCAG 2.1, 1.4.3: 4.5 for text, 3 for large or bold text; plots name their rows in bold and in mid-tones.
_LOOK = r"""(() => {
  const found = [];
  // A page has a few colours, and each is asked for as often as there are words, and boxes around them.
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const channels = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = '#000'; // of a colour that it cannot read, as in a new one
      canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(channels(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const contrast = (one, other) => {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const boxes = [];
  const shown = (node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    const words = text.textContent.trim();
    if (!words || node.closest('script, style, noscript, option, .modebar, .hoverlayer') || !shown(node)) continue;
    const style = getComputedStyle(node);
    const svg = node.namespaceURI.endsWith('svg');
    const range = document.createRange();
    range.selectNodeContents(text);
    const lines = [...range.getClientRects()].filter((r) => r.width > 1 && r.height > 1);
    const rects = lines.map((r) => DOMRect.fromRect(r));
    if (!rects.length) continue;
    const ink = channels(svg ? style.fill : style.color);
    const below = ground(svg ? node.closest('.plot') ?? document.body : node);
    const large = parseFloat(style.fontSize) >= 24 || Number(style.fontWeight) >= 600;
    const ratio = contrast(over(ink, below), below);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${words.slice(0, 40)}`);
    // What scrolls in a box of its own is not clipped.
    const scrolls = node.closest('.wide');
    for (let at = node; at && at !== document.body; at = at.parentElement) {
      const own = getComputedStyle(at);
      if (own.textOverflow === 'ellipsis' && at.title) { // cut on purpose, and whole in its title
        const edge = at.getBoundingClientRect().right;
        for (const r of rects) r.width = Math.max(0, Math.min(r.right, edge) - r.left);
        break;
      }
      if (!svg && !scrolls && own.overflowX !== 'visible' && at.scrollWidth > at.clientWidth + 1) {
        found.push(`clipped: ${words.slice(0, 40)}`);
        break;
      }
    }
    const frame = svg && node.closest('.plot')?.getBoundingClientRect();
    for (const r of rects) {
      const across = frame && (r.left < frame.left - 1 || r.right > frame.right + 1);
      if (across || (frame && (r.top < frame.top - 1 || r.bottom > frame.bottom + 1))) {
        found.push(`clipped by its plot: ${words.slice(0, 40)}`);
      }
      const box = [r.left, r.top + scrollY, r.right, r.bottom + scrollY];
      if (!node.closest('nav')) boxes.push([...box, words.slice(0, 30), node, scrolls]);
    }
  }
  const whole = document.documentElement.scrollWidth;
  // A phone widens the window to what is in it, and shrinks it all: the glass stays as wide as it is.
  const glass = Math.min(innerWidth, visualViewport.width * visualViewport.scale);
  if (whole > glass + 1) found.push(`wider than the window: ${whole}`);
  boxes.sort((a, b) => a[1] - b[1]);
  for (let i = 0; i < boxes.length; i += 1) {
    const [left, top, right, bottom, words, node, scrolls] = boxes[i];
    for (let j = i + 1; j < boxes.length && boxes[j][1] < bottom - 3; j += 1) {
      const [l, t, r, b, other, otherNode, otherScrolls] = boxes[j];
      const across = Math.min(right, r) - Math.max(left, l);
      const down = Math.min(bottom, b) - Math.max(top, t);
      // Boxes of lines are higher than their letters, and what scrolls away is not over what stands beside it.
      if (across > 2 && down > 0.35 * Math.min(bottom - top, b - t) && node !== otherNode && scrolls === otherScrolls) {
        found.push(`overlap: ${words} / ${other}`);
      }
    }
  }
  return [...new Set(found)].slice(0, 20);
})()"""


# What the page itself is to the script above may be a frame in it.
_IN_FRAME = """(({ contentDocument: document, contentWindow: window }) => {
  const { innerWidth, scrollY } = window;
  const getComputedStyle = (node) => window.getComputedStyle(node);
  return %s;
})(document.querySelector('iframe'))"""


def faults(page: Page, *, in_frame: bool = False) -> list[str]:
    """Return what cannot be read in the page as it is shown now, or in its first frame, in a line each."""
    found: list[str] = page.run(_IN_FRAME % _LOOK if in_frame else _LOOK)
    return found


def lasting_faults(page: Page, *, in_frame: bool = False) -> list[str]:
    """Return what cannot be read still when the page has had time to draw its plots anew, as in other colours."""
    end = time.monotonic() + _PATIENCE_S
    while (found := faults(page, in_frame=in_frame)) and time.monotonic() < end:
        time.sleep(0.1)
    return found
