// See first.mjs.
import "../lane.mjs";
