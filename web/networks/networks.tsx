// Networks of instances: how many addresses are free, which groups are connected, and who is on them.
import { Ago, Command, Empty, Meter, Part, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Facts, JobsAbout } from "../parts/thing";
import { type Row, useView } from "../stream";

function Free({ r }: { r: Row }) {
	const free = r.value("free_count") ?? 0, all = free + (r.value("reserved_count") ?? 0);
	return <><Meter used={all - free} of={all} label={`${free} of ${all} addresses are free`} /> {free.toLocaleString()} free</>;
}

/** The groups that are connected, each as name, mode, link and VLAN. */
const groups = (r: Row): string[][] => r.value("group_list") ?? [];

const columns: Column[] = [
	{ title: "Network", field: "name", class: "wide", show: (r) => <a href={"/networks/" + encodeURIComponent(r.text("name"))} data-in>{r.text("name")}</a> },
	{ title: "Subnet", field: "network", class: "medium", show: (r) => r.text("network") },
	{ title: "Addresses", field: "free_count", class: "medium", show: (r) => <Free r={r} /> },
	{ title: "Instances", field: "inst_cnt", class: "number optional", show: (r) => r.value("inst_cnt") },
	{ title: "Groups", class: "medium faint optional", show: (r) => groups(r).map(([name]) => name).join(", ") },
	{ title: "Changed", field: "mtime", class: "time", show: (r) => <Ago at={r.value("mtime")} /> },
];

export function NetworksScreen() {
	return <List title="Networks" view="networks" item="network" columns={columns} name={(r) => r.text("name")} href={(r) => "/networks/" + encodeURIComponent(r.text("name"))}
		chips={[["All", ""], ["No address free", "free_count == 0"], ["Connected to no group", "group_cnt == 0"], ["Without instances", "inst_cnt == 0"]]}
		empty={<><p>There is no network. This makes one, from which instances take their addresses:</p><Command text="drover network add lan --network 192.0.2.0/24" /> <Command text="drover network connect lan default bridged br0" /></>} />;
}

export function NetworkScreen({ id }: { id: string }) {
	const network = useView({ view: "network", id });
	const on = useView({ view: "network.instances", id });
	useReady(network.known);
	const r = network.rows[0];
	if (network.error) return <main class="message"><h1>Network {id}</h1><Wrong problem={network.error} /><p><a href="/networks" data-in>All networks</a></p></main>;
	if (!network.known) return <main aria-busy="true"><h1>{id}</h1></main>;
	if (!r) return <main class="message"><h1>There is no network {id}</h1><p><a href="/networks" data-in>All networks</a></p></main>;
	return <main class="thing" data-id={id}>
		<div class="head"><h1>Network {id} <span class="faint">· {r.text("network")}</span></h1><Command text={network.command} quiet /></div>
		<div class="columns">
			<Part title="How it is">
				<p><Free r={r} /></p>
				<Facts r={r} of={[["Gateway", "gateway"], ["IPv6", "network6"], ["IPv6 gateway", "gateway6"], ["MAC prefix", "mac_prefix"], ["Taken or set aside", "reserved_count"], ["Set aside by operators", "external_reservations"],
					["Tags", "tags"], ["Made", "ctime", (v) => <Ago at={v} />], ["Changed", "mtime", (v) => <Ago at={v} />], ["UUID", "uuid"]]} />
			</Part>
			<Part title="Groups that are connected to it">
				{groups(r).length === 0 && <Empty><p>There is none, so no instance can be on it.</p><Command text={`drover network connect ${id} GROUP bridged br0`} /></Empty>}
				<ul class="rows">{groups(r).map(([name, mode, link, vlan]) => <li key={name} data-id={name}><a href={"/groups/" + encodeURIComponent(name)} data-in class="words">{name}</a> <span class="faint">{mode} {link}{vlan && vlan !== "-" && " " + vlan}</span></li>)}</ul>
			</Part>
		</div>
		<Part title="Instances on it" command={on.command}>
			{on.error && <Wrong problem={on.error} />}
			{on.value?.instances.length === 0 && <Empty><p>There is none.</p></Empty>}
			<ul class="rows">{on.value?.instances.map((i: any) => <li key={i.name} data-id={i.name}><a href={"/instances/" + i.name} data-in class="words">{i.name}</a> <State of={i.status} />
				<span class="faint">{i.addresses.join(", ") || "no address"} · on {i.node}</span></li>)}</ul>
			{on.value?.more > 0 && <p class="faint">And {on.value.more.toLocaleString()} more.</p>}
		</Part>
		<JobsAbout name={id} view="network.jobs" />
	</main>;
}
