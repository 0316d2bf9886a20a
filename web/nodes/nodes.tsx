import { nodeState } from "../now/now";
import { Ago, Command, Empty, Meter, missing, Part, Said, size, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Operations } from "../parts/operate";
import { Facts, JobsAbout, LastChange } from "../parts/thing";
import { type Row, useView } from "../stream";

function Memory({ r }: { r: Row }) {
	const free = r.value("mfree"), all = r.value("mtotal");
	if (free === undefined || all === undefined) return <span class="faint">{missing(r, "mfree") || "–"}</span>;
	return <><Meter used={all - free} of={all} label={size(free) + " of " + size(all) + " free"} /> {size(free)} free</>;
}

const columns: Column[] = [
	{ title: "Node", field: "name", class: "wide", show: (r) => <a href={"/nodes/" + r.text("name")} data-in>{r.text("name")}</a> },
	{ title: "State", class: "short", show: (r) => <State of={nodeState(r)} /> },
	{ title: "Instances", field: "pinst_cnt", class: "number", show: (r) => r.value("pinst_cnt") },
	{ title: "Memory", field: "mfree", class: "medium", show: (r) => <Memory r={r} /> },
	{ title: "Changed because", class: "medium faint optional", show: (r) => <Said text={r.text("last_change_reason")} /> },
	{ title: "Told", field: "told_at", class: "time", show: (r) => <Ago at={r.value("told_at")} /> },
];

export function NodesScreen() {
	return <List title="Nodes" view="nodes" item="node" columns={columns} name={(r) => r.text("name")} href={(r) => "/nodes/" + r.text("name")}
		chips={[["All", ""], ["Drained", "drained"], ["Offline", "offline"], ["Under 8 GiB free", "mfree < 8G"]]}
		actions={<span class="buttons"><a class="button" href="/groups" data-in>Groups</a><a class="button" href="/networks" data-in>Networks</a></span>}
		empty={<><p>There is no node. A token lets one join:</p><Command text="drover node token NAME" /></>} />;
}

export function NodeScreen({ id }: { id: string }) {
	const node = useView({ view: "node", id });
	const on = useView({ view: "node.instances", id });
	useReady(node.known);
	const r = node.rows[0];
	if (node.error) return <main><h1>{id}</h1><Wrong problem={node.error} /></main>;
	if (!node.known) return <main aria-busy="true"><h1>{id}</h1></main>;
	if (!r) return <main class="message"><h1>There is no node {id}</h1><p><a href="/nodes" data-in>All nodes</a></p></main>;
	return <main class="thing" data-id={id}>
		<div class="head"><h1>{id} <State of={nodeState(r)} /></h1><Command text={node.command} quiet /></div>
		<Operations item="node" name={id} uuid={r.text("uuid")} />
		<div class="columns">
			<Part title="How it is">
				<Facts r={r} of={[["Memory free", "mfree", size], ["Memory", "mtotal", size], ["Disk free", "dfree", size], ["Disk", "dtotal", size], ["Processors", "ctotal"], ["Instances", "pinst_cnt"], ["Second copies", "sinst_cnt"],
					["Group", "group", (v) => <a href={"/groups/" + encodeURIComponent(v)} data-in>{v}</a>], ["Address", "pip"], ["Tags", "tags"], ["Told", "told_at", (v) => <Ago at={v} />], ["UUID", "uuid"]]} />
			</Part>
			<LastChange r={r} />
		</div>
		<Part title="Instances on it" command={on.command}>
			{on.known && on.rows.length === 0 && <Empty><p>There is none.</p></Empty>}
			<ul class="rows">{on.rows.map((i) => <li key={i.id} data-id={i.text("name")}><a href={"/instances/" + i.text("name")} data-in class="words">{i.text("name")}</a> <State of={i.text("status")} />
				<span class="faint">{size(i.value("be/maxmem"))}{i.text("pnode") === id ? "" : " · second copy, runs on " + i.text("pnode")}</span></li>)}</ul>
		</Part>
		<JobsAbout name={id} />
	</main>;
}
