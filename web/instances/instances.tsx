import { Ago, Command, Part, Said, size, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Operations } from "../parts/operate";
import { Facts, JobsAbout, LastChange } from "../parts/thing";
import { who } from "../session";
import { useView } from "../stream";

const columns: Column[] = [
	{ title: "Instance", field: "name", class: "wide", show: (r) => <a href={"/instances/" + r.text("name")} data-in>{r.text("name")}</a> },
	{ title: "State", field: "status", class: "medium", show: (r) => <State of={r.text("status")} /> },
	{ title: "Node", field: "pnode", class: "medium", show: (r) => <a href={"/nodes/" + r.text("pnode")} data-in>{r.text("pnode")}</a> },
	{ title: "Memory", field: "be/maxmem", class: "number", show: (r) => size(r.value("oper_ram") ?? r.value("be/maxmem")) },
	{ title: "Changed because", class: "medium faint optional", show: (r) => <Said text={r.text("last_change_reason")} /> },
	{ title: "Changed", field: "last_change", class: "time", show: (r) => <Ago at={r.value("last_change")} /> },
];

export function InstancesScreen() {
	return <List title="Instances" view="instances" item="instance" columns={columns} name={(r) => r.text("name")} href={(r) => "/instances/" + r.text("name")}
		chips={[["All", ""], ["Running", 'status == "running"'], ["Stopped", 'status == "ADMIN_down"'], ["Not as they are to be", "status =~ m/^ERROR/"]]}
		actions={who.value!.change && <span class="buttons"><a class="button" href="/create" data-in>Create…</a></span>}
		empty={<><p>There is no instance. This makes one:</p><Command text="drover instance add web1 --os noop --no-name-check" /></>} />;
}

export function InstanceScreen({ id }: { id: string }) {
	const instance = useView({ view: "instance", id });
	useReady(instance.known);
	const r = instance.rows[0];
	if (instance.error) return <main><h1>{id}</h1><Wrong problem={instance.error} /></main>;
	if (!instance.known) return <main aria-busy="true"><h1>{id}</h1></main>;
	if (!r) return <main class="message"><h1>There is no instance {id}</h1><p><a href="/instances" data-in>All instances</a></p></main>;
	const node = (v: any) => <a href={"/nodes/" + v} data-in>{v}</a>;
	return <main class="thing" data-id={id}>
		<div class="head"><h1>{id} <State of={r.text("status")} /></h1>
			{who.value!.change && [["console", "Serial console"], ["screen", "Screen"]].map(([part, name]) => <a key={part} class="button" href={`/instances/${encodeURIComponent(id)}/${part}`} data-in>{name}</a>)}
			<Command text={instance.command} quiet /></div>
		<Operations item="instance" name={id} uuid={r.text("uuid")} />
		<div class="columns">
			<Part title="How it is">
				<Facts r={r} of={[["Is to be", "admin_state"], ["Its node told", "told_state"], ["Node", "pnode", node], ["Second copies", "snodes"], ["Memory", "oper_ram", size], ["Memory at most", "be/maxmem", size], ["Processors", "be/vcpus"],
					["Operating system", "os"], ["Hypervisor", "hypervisor"], ["Disks", "disk_template"], ["Sizes of disks", "disk.sizes", (v) => v.map(size).join(", ")], ["Addresses", "nic.ips"], ["Networks", "nic.networks.names", (v) => v.map((n: string | null, i: number) => <span key={i}>{i > 0 && ", "}{n === null ? "–" : <a href={"/networks/" + encodeURIComponent(n)} data-in>{n}</a>}</span>)], ["Tags", "tags"], ["UUID", "uuid"]]} />
				<Command text={"drover instance console " + id} /> <Command text={"drover instance log " + id} /> <Command text={"drover instance explain-placement " + id} />
			</Part>
			<LastChange r={r} />
		</div>
		<JobsAbout name={id} />
	</main>;
}
