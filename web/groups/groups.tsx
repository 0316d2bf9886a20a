// Groups of nodes: what is in them, which networks they are connected to, and what instances and nodes in them may be.
import { nodeState } from "../now/now";
import { Ago, Command, Empty, Meter, Part, size, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Facts, JobsAbout } from "../parts/thing";
import { type Row, useView } from "../stream";

const columns: Column[] = [
	{ title: "Group", field: "name", class: "wide", show: (r) => <a href={"/groups/" + encodeURIComponent(r.text("name"))} data-in>{r.text("name")}</a> },
	{ title: "Nodes", field: "node_cnt", class: "number", show: (r) => r.value("node_cnt") },
	{ title: "Instances", field: "pinst_cnt", class: "number", show: (r) => r.value("pinst_cnt") },
	{ title: "New ones", field: "alloc_policy", class: "medium", show: (r) => policies[r.text("alloc_policy")] ?? r.text("alloc_policy") },
	{ title: "Tags", class: "medium faint optional", show: (r) => (r.value("tags") ?? []).join(", ") },
	{ title: "Changed", field: "mtime", class: "time", show: (r) => <Ago at={r.value("mtime")} /> },
];

/** Whether new instances go to a group, in the words of its policy. */
const policies: Record<string, string> = { preferred: "go there", last_resort: "go there last", unallocable: "go elsewhere" };

export function GroupsScreen() {
	return <List title="Node groups" view="groups" item="group" columns={columns} name={(r) => r.text("name")} href={(r) => "/groups/" + encodeURIComponent(r.text("name"))}
		chips={[["All", ""], ["Without nodes", "node_cnt == 0"], ["Take no new instances", 'alloc_policy == "unallocable"']]}
		empty={<><p>There is no node group. This makes one:</p><Command text="drover group add rack2" /></>} />;
}

export function GroupScreen({ id }: { id: string }) {
	const group = useView({ view: "group", id });
	useReady(group.known);
	const r = group.rows[0];
	if (group.error) return <main class="message"><h1>Node group {id}</h1><Wrong problem={group.error} /><p><a href="/groups" data-in>All node groups</a></p></main>;
	if (!group.known) return <main aria-busy="true"><h1>{id}</h1></main>;
	if (!r) return <main class="message"><h1>There is no node group {id}</h1><p><a href="/groups" data-in>All node groups</a></p></main>;
	return <main class="thing" data-id={id}>
		<div class="head"><h1>Node group {id}</h1><Command text={group.command} quiet /></div>
		<div class="columns">
			<Part title="How it is">
				<Facts r={r} of={[["Nodes", "node_cnt"], ["Instances", "pinst_cnt"], ["New instances", "alloc_policy", (v) => policies[v] ?? v], ["Tags", "tags"], ["Made", "ctime", (v) => <Ago at={v} />], ["Changed", "mtime", (v) => <Ago at={v} />], ["UUID", "uuid"]]} />
			</Part>
			<Networks id={id} />
		</div>
		<Nodes id={id} />
		<Instances id={id} />
		<div class="columns"><Bounds r={r} /><Parameters r={r} /></div>
		<JobsAbout name={id} view="group.jobs" />
	</main>;
}

function Nodes({ id }: { id: string }) {
	const { known, rows, error, command } = useView({ view: "group.nodes", id });
	return <Part title="Nodes in it" command={command}>
		{error && <Wrong problem={error} />}
		{known && !error && rows.length === 0 && <Empty><p>There is none. This puts one in:</p><Command text={`drover group assign-nodes ${id} NODE`} /></Empty>}
		<ul class="tiles">{rows.map((n) => <li key={n.id} data-id={n.text("name")}>
			<a href={"/nodes/" + n.text("name")} data-in class="name">{n.text("name")}</a> <State of={nodeState(n)} />
			<div class="faint">{n.value("pinst_cnt") ?? 0} instances</div>
			<Meter used={(n.value("mtotal") ?? 0) - (n.value("mfree") ?? 0)} of={n.value("mtotal") ?? 0} label={"memory: " + size(n.value("mfree")) + " of " + size(n.value("mtotal")) + " free"} />
		</li>)}</ul>
	</Part>;
}

function Instances({ id }: { id: string }) {
	const { known, rows, error, command } = useView({ view: "group.instances", id });
	return <Part title="Instances in it" command={command}>
		{error && <Wrong problem={error} />}
		{known && !error && rows.length === 0 && <Empty><p>There is none.</p></Empty>}
		<ul class="rows">{rows.map((i) => <li key={i.id} data-id={i.text("name")}><a href={"/instances/" + i.text("name")} data-in class="words">{i.text("name")}</a> <State of={i.text("status")} />
			<span class="faint">{size(i.value("be/maxmem"))} · on {i.text("pnode")}</span></li>)}</ul>
		{rows.length === 500 && <p class="faint">The first 500 are shown.</p>}
	</Part>;
}

/** The networks that instances in it can be on. */
function Networks({ id }: { id: string }) {
	const { known, value, error, command } = useView({ view: "group.networks", id });
	return <Part title="Networks that it is connected to" command={command}>
		{error && <Wrong problem={error} />}
		{known && value?.length === 0 && <Empty><p>There is none.</p><Command text={`drover network connect NETWORK ${id} bridged br0`} /></Empty>}
		<ul class="rows">{value?.map((n: any) => <li key={n.name} data-id={n.name}><a href={"/networks/" + encodeURIComponent(n.name)} data-in class="words">{n.name}</a> <span class="faint">{n.subnet}</span>
			<div class="faint">{n.mode} {n.link}{n.vlan && " " + n.vlan} · {n.free.toLocaleString()} addresses are free</div></li>)}</ul>
	</Part>;
}

/** How large instances in it may be. */
function Bounds({ r }: { r: Row }) {
	const policy = r.value("ipolicy") ?? {}, own = Object.keys(r.value("custom_ipolicy") ?? {});
	const sizes: any[] = policy.minmax ?? [];
	return <Part title="How large instances may be" aside={own.length > 0 && <span class="faint">its own: {own.join(", ")}</span>}>
		{sizes.map((s, n) => <div key={n} class="beside" tabIndex={0} role="region" aria-label={"Bounds " + (n + 1)}><table><thead><tr><th scope="col">What</th><th scope="col">At least</th><th scope="col">At most</th><th scope="col">Usually</th></tr></thead>
			<tbody>{Object.keys(s.max ?? {}).sort().map((k) => <tr key={k}><td>{k}</td>{[s.min, s.max, policy.std].map((of, i) => <td key={i} class="number">{of?.[k] ?? "–"}</td>)}</tr>)}</tbody></table></div>)}
		<dl class="facts">{Object.entries(policy).filter(([k]) => k !== "minmax" && k !== "std").map(([k, v]) => [<dt key={k}>{k}</dt>, <dd key={k + "="}>{Array.isArray(v) ? v.join(", ") : String(v)}</dd>])}</dl>
	</Part>;
}

/** Parameters of the nodes in it. */
function Parameters({ r }: { r: Row }) {
	const own = r.value("custom_ndparams") ?? {};
	return <Part title="Parameters of its nodes">
		<dl class="facts">{Object.entries(r.value("ndparams") ?? {}).map(([k, v]) => [<dt key={k}>{k}</dt>, <dd key={k + "="}>{v === "" ? "–" : String(v)}{k in own && <span class="faint"> its own</span>}</dd>])}</dl>
	</Part>;
}
