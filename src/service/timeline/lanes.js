// Lanes of states above the lines of a chart: a band for each state, with its text where there is room.
import { stateBands, textOf } from "./series.js";

const laneHeight = 24;
const laneGap = 6;

export function lanesHeight(states) {
  return states.length * (laneHeight + laneGap);
}

/** Draws into the space above the lines; `color` is that of text. */
export function drawLanes({ ctx, bbox }, states, from, to, color) {
  const ratio = devicePixelRatio;
  const x = (time) => bbox.left + ((time - from) / (to - from)) * bbox.width;
  ctx.save();
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const [i, series] of states.entries()) {
    const top = bbox.top - (lanesHeight(states) - i * (laneHeight + laneGap)) * ratio;
    for (const [k, band] of stateBands(series, from, to).entries()) {
      const [left, right] = [x(band.from), x(band.to)];
      ctx.fillStyle = band.mixed ? hatched(ctx, series.color) : shade(series.color, band.state);
      ctx.fillRect(left, top, Math.max(1, right - left - ratio), laneHeight * ratio);
      const state = band.mixed ? "several" : textOf(series, band.state);
      const named = `${series.name}: ${state}`;
      const text = k === 0 && ctx.measureText(named).width <= right - left - 10 * ratio ? named : state;
      const room = right - left - 10 * ratio;
      ctx.fillStyle = color;
      if (ctx.measureText(text).width <= room) ctx.fillText(text, left + 5 * ratio, top + (laneHeight / 2) * ratio);
    }
  }
  ctx.restore();
}

/** A colour for each state of a series: 0 is pale, the others are darker. */
function shade(color, state) {
  return `${color}${["40", "d0", "a8", "80"][Math.abs(state) % 4]}`;
}

function hatched(ctx, color) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.strokeStyle = color;
  pen.lineWidth = 2;
  for (const at of [-8, 0, 8]) {
    pen.moveTo(at, 8);
    pen.lineTo(at + 8, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}
