// Two files, for two processes at a time: Node runs a file that it is given twice only once.
import "../lane.mjs";
