// Servers of the Compute API and their tags: what is wanted, what was seen, and what the cluster has, side by side.
import { Ago, cellText, Command, Empty, Part, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Facts, JobsAbout } from "../parts/thing";
import { type Row, useView } from "../stream";

const columns: Column[] = [
	{ title: "Server", field: "name", class: "medium", show: (r) => <a href={"/servers/" + r.text("id")} data-in>{r.text("name")}</a> },
	{ title: "State", field: "status", class: "short", show: (r) => <><State of={r.text("status")} />{r.text("task") && <span class="faint"> {r.text("task")}</span>}</> },
	{ title: "Instance", field: "instance", class: "medium", show: (r) => r.text("instance") && (r.text("backend") === "own" ? <a href={"/instances/" + r.text("instance")} data-in>{r.text("instance")}</a> : <>{r.text("instance")} <span class="faint">on {r.text("backend")}</span></>) },
	{ title: "Tags", class: "wide", show: (r) => cellText(r, "tags") },
	{ title: "Not there yet", field: "pending", class: "short", show: (r) => Drift(r) },
	{ title: "Since", field: "pending_since", class: "time", show: (r) => r.value("pending_since") ? <Ago at={r.value("pending_since")} bare /> : null },
];

function Drift(r: Row) {
	const pending = r.value("pending") ?? 0, failed = r.value("failed") ?? 0;
	if (failed > 0) return <span class="state s-error">✕ {failed} failed</span>;
	if (r.value("unmatched")) return <span class="state s-queued">! not matched</span>;
	return pending > 0 ? <span class="state s-queued">◔ {pending}</span> : <span class="faint">–</span>;
}

export function ServersScreen() {
	return <List title="Servers" view="servers" item="server" columns={columns} name={(r) => r.text("id")} href={(r) => "/servers/" + r.text("id")}
		chips={[["All", ""], ["Tags not there yet", "pending > 0"], ["Tags that failed", "failed > 0"], ["Longer than 10 minutes", "pending_age > 10m"], ["In error", 'status == "ERROR"'], ["Not matched", "unmatched is not missing"]]}
		empty={<><p>There is no server. Users of the Compute API make them; this makes one:</p><Command text="drover server create shop1 --flavor m1.diskless --image noop --tag shop" /></>} />;
}

export function ServerScreen({ id }: { id: string }) {
	const server = useView({ view: "server", id });
	const tags = useView({ view: "server.tags", id });
	useReady(server.known && tags.known);
	const r = server.rows[0];
	if (server.error) return <main class="message"><h1>Server</h1><Wrong problem={server.error} /><p><a href="/servers" data-in>All servers</a></p></main>;
	if (!server.known) return <main aria-busy="true"><h1>Server</h1></main>;
	if (!r) return <main class="message"><h1>There is no server {id}</h1><p><a href="/servers" data-in>All servers</a></p></main>;
	const own = r.text("backend") === "own" && r.text("instance") !== "";
	const pending: number = r.value("pending") ?? 0, failed: number = r.value("failed") ?? 0;
	return <main class="thing" data-id={id}>
		<div class="head"><h1>{r.text("name")} <State of={r.text("status")} /></h1><Command text={server.command} quiet /></div>
		{pending > 0 && <p class="lead">{pending} of its tags {pending === 1 ? "is not on the cluster as it is" : "are not on the cluster as they are"} wanted, since <Ago at={r.value("pending_since")} bare />{failed > 0 && <b class="state s-error"> · {failed} failed</b>}</p>}
		{r.text("fault") && <div class="wrong">{r.text("fault")}</div>}
		{r.value("unmatched") && <div class="warning">Nobody can tell which instance it is, since <Ago at={r.value("unmatched")} bare />. <Command text={"drover server match " + id + " INSTANCE"} quiet /></div>}
		<Part title="Tags: wanted, seen, and what the cluster has" command={tags.command}>
			{tags.error && <Wrong problem={tags.error} />}
			{tags.known && tags.rows.length === 0 && <Empty><p>It has no tags.</p><Command text={"drover server tag add " + id + " TAG"} /></Empty>}
			{tags.rows.length > 0 && (own ? <Beside rows={tags.rows} instance={r.text("instance")} /> : <Table rows={tags.rows} />)}
		</Part>
		<div class="columns">
			<Part title="How it is"><Facts r={r} of={[["Instance", "instance", (v) => own ? <a href={"/instances/" + v} data-in>{v}</a> : v], ["Cluster", "backend"], ["Flavor", "flavor"], ["Image", "image"], ["Is being done", "task"], ["Made", "ctime", (v) => <Ago at={v} />],
				["Seen first", "built", (v) => <Ago at={v} />], ["Project", "project"], ["Changes of tags", "generation"], ["UUID", "id"]]} />
				<Command text={"drover server reconcile " + id} quiet /></Part>
			{own && <JobsAbout name={r.text("instance")} />}
		</div>
	</main>;
}

/** With what the instance has at this moment, which the controller of the cluster tells. */
function Beside({ rows, instance }: { rows: Row[]; instance: string }) {
	const now = useView({ view: "instance", id: instance });
	return <Table rows={rows} has={now.rows[0]?.value("tags")} />;
}

function Table({ rows, has }: { rows: Row[]; has?: string[] }) {
	return <div class="beside" tabIndex={0} role="group" aria-label="Tags"><table>
		<thead><tr><th scope="col">Tag</th><th scope="col">Wanted</th><th scope="col">Seen</th>{has && <th scope="col">On the instance</th>}<th scope="col">State</th><th scope="col">What it waits for</th><th scope="col">Asked for</th></tr></thead>
		<tbody>{rows.map((r) => <tr key={r.id} data-id={r.text("tag")} class={r.text("status") === "ACTIVE" ? "" : "drift"}>
			<td><b>{r.text("tag")}</b>{r.text("namespace") !== "user" && <span class="faint"> {r.text("namespace")}</span>}</td>
			<td>{r.value("wanted") ? "yes" : "no"}</td><td>{r.text("seen") || "–"}</td>{has && <td>{has.includes(r.text("raw")) ? "yes" : "no"}</td>}
			<td><State of={r.text("status")} /></td>
			<td>{r.text("failure") ? <span class="state s-error">{r.text("failure")}{r.value("retry") ? <> · again <Ago at={r.value("retry")} /></> : null}</span> : r.text("waits_for") || <span class="faint">–</span>}
				{r.value("job") ? <a href={"/jobs/" + r.text("job")} data-in> job {r.text("job")}</a> : null}{r.text("held_by") && <a href={"/rules#" + r.text("held_by")} data-in> see the rule</a>}{(r.value("tries") ?? 0) > 0 && <span class="faint"> tried {r.text("tries")} times</span>}</td>
			<td><Ago at={r.value("asked")} /> <span class="faint">{[r.text("user"), r.text("front")].filter(Boolean).join(" over ")}</span></td>
		</tr>)}</tbody>
	</table></div>;
}
