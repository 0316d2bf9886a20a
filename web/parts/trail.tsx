// A reason trail as a story: from the person to the node.
import { both, lasting } from "./bits";

/** What the sources of hops are called by people. */
const words: [string, (rest: string) => string][] = [
	["gnt:user", () => "a person said"], ["gnt:client:drover-web", () => "on the page"], ["gnt:client:", (r) => "by " + r.replace("-", " ")], ["gnt:account:", (r) => "signed in over " + r],
	["gnt:library:rlib2:", (r) => "over RAPI, " + r], ["gnt:opcode:", (r) => "opcode " + r], ["gnt:node:", (r) => "node " + r], ["luxid", () => "taken by the queue"],
];

function teller(source: string): string {
	for (const [start, say] of words) if (source.startsWith(start)) return say(source.slice(start.length));
	return source;
}

/** The hops, oldest first. */
export function Trail({ hops }: { hops: [string, string, number][] }) {
	if (!hops || hops.length === 0) return <p class="faint">Nobody said why.</p>;
	const start = hops[0][2] / 1e6;
	return <ol class="trail">{hops.map(([source, reason, ns], i) => <li key={i} class={source === "gnt:user" || !source.startsWith("gnt:") && source !== "luxid" ? "person" : ""}>
		<span class="teller" title={source}>{teller(source)}</span> {reason && <q>{reason}</q>}
		<time class="faint" dateTime={new Date(ns / 1e6).toISOString()} title={both(ns / 1e6)}>{i === 0 ? new Date(start).toLocaleString() : "+" + lasting(ns / 1e6 - start)}</time>
	</li>)}</ol>;
}
