// Tasks with the nodes on which they run, and why, in the words of the controller.
import { change } from "../address";
import type { Group } from "./graph";

const shownNodes = 6;

const few = (nodes: string[]): string => nodes.length > shownNodes ? `${nodes.length} nodes` : (nodes.length === 1 ? "node " : "nodes ") + nodes.join(", ");

/** Where a task runs, and why: in a line, and all of it when somebody wants to know. */
export function Reasons({ of: g }: { of: Group }) {
	const where = few(g.nodes) + (g.roles?.length ? ` (${g.roles.slice(0, 4).map((r) => r.name + " " + r.nodes).join(", ")}${g.roles.length > 4 ? ", …" : ""})` : "");
	if (g.reasons.length === 1 && g.nodes.length <= shownNodes) return <div class="faint">on {where}: {g.reasons[0].why}</div>;
	return <details><summary>on {where}: <span class="faint">{g.reasons[0]?.why}{g.reasons.length > 1 ? ` · and ${g.reasons.length - 1} more reasons` : ""}</span></summary>
		<ul>{g.reasons.map((c, i) => <li key={i} class="words"><b>{c.nodes.length > 1 ? "nodes " : "node "}{c.nodes.join(", ")}</b>: {c.why}</li>)}</ul></details>;
}

const most = 400;

/** A list of tasks with their reasons, of which one may be chosen. */
export function Groups({ of, label, chosen, choose }: { of: Group[]; label?: string; chosen?: string; choose?: (task: string) => void }) {
	const name = (task: string) => choose ? <a class="words" href={change({ task })} onClick={(e) => { e.preventDefault(); choose(task); }}>{task}</a> : <b class="words">{task}</b>;
	return <>
		<ul class="rows tasks" tabIndex={0} aria-label={label ?? "Tasks that run"}>{of.slice(0, most).map((g) => <li key={g.task} data-id={g.task} data-chosen={g.task === chosen ? "" : undefined}>{name(g.task)} <span class="faint">{g.nodes.length === 1 ? "1 node" : g.nodes.length + " nodes"}</span><Reasons of={g} /></li>)}</ul>
		{of.length > most && <p class="faint">{of.length - most} more.</p>}
	</>;
}
