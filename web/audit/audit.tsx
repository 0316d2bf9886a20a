// Who changed what, why, and over which surface, of what is no job.
import { Ago, both, Command, Empty, moment, Part, Said, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Facts } from "../parts/thing";
import { Trail } from "../parts/trail";
import { useCatalogue } from "../query/query";
import { type Row, useView } from "../stream";

/** What an event was done to: a job has a page. */
function Object({ r }: { r: Row }) {
	const object = r.text("object");
	if (r.text("what").startsWith("job.") && /^\d+$/.test(object)) return <a href={"/jobs/" + object} data-in>job {object}</a>;
	return <span title={object}>{r.text("name") || object}</span>;
}

export function AuditScreen() {
	const verbs = useCatalogue()?.verbs ?? {};
	const columns: Column[] = [
		{ title: "What", field: "what", class: "medium", show: (r) => <a href={"/audit/" + r.text("id")} data-in title={verbs[r.text("what")]}>{r.text("what")}</a> },
		{ title: "To", field: "object", class: "medium", show: (r) => <Object r={r} /> },
		{ title: "Who", field: "who", class: "short", show: (r) => <span title={r.text("from")}>{r.text("who") || "–"}</span> },
		{ title: "Over", field: "surface", class: "short optional", show: (r) => r.text("surface") },
		{ title: "Why", class: "wide", show: (r) => r.text("reason") ? <Said text={r.text("reason")} /> : <span class="faint">nobody said why</span> },
		{ title: "When", field: "timestamp", class: "time", show: (r) => <Ago at={r.value("timestamp")} /> },
	];
	return <List title="Audit" view="audit" item="event" columns={columns} name={(r) => r.text("id")} href={(r) => "/audit/" + r.text("id")}
		chips={[["All", ""], ["Rules", "what =~ m/^filter\\./"], ["Jobs", "what =~ m/^job\\./"], ["Deployments", "what =~ m/^(environment|graph|deployment)/"], ["Consoles", "what =~ m/^console/"], ["On this page", 'surface == "web"'], ["Within a day", "timestamp > -1d"]]}
		empty={<><p>Nothing was done that is no job: no rule was changed, no job cancelled, no console opened. Jobs tell themselves who wanted them. The first could be a rule that only watches:</p>
			<Command text="drover filter add --action PAUSE --all-jobs --shadow --reason 'trying rules'" /></>} />;
}

export function EventScreen({ id }: { id: string }) {
	const event = useView({ view: "event", id });
	const verbs = useCatalogue()?.verbs ?? {};
	useReady(event.known);
	const r = event.rows[0];
	if (event.error) return <main><h1>Event {id}</h1><Wrong problem={event.error} /></main>;
	if (!event.known) return <main aria-busy="true"><h1>Event {id}</h1></main>;
	if (!r) return <main class="message"><h1>There is no event {id}</h1><p><a href="/audit" data-in>All events</a></p></main>;
	const at = moment(r.value("timestamp"));
	const part = (title: string, field: string) => <Part title={title}>{r.value(field) === undefined ? <Empty><p>It was not there.</p></Empty> : <pre tabIndex={0}>{JSON.stringify(r.value(field), null, 2)}</pre>}</Part>;
	return <main class="thing" data-id={id}>
		<div class="head"><h1>{r.text("what")} <span class="faint">event {id}</span></h1><Command text={event.command} quiet /></div>
		<p class="lead">{verbs[r.text("what")]}</p>
		<div class="columns">
			<Part title="What was done"><Facts r={r} of={[["To", "object", () => <Object r={r} />], ["Name", "name"], ["Who", "who"], ["Over", "surface"], ["From", "from"], ["When", "timestamp", () => <>{at !== undefined && both(at)}</>]]} /></Part>
			<Part title="Why"><Trail hops={r.value("reason_trail")} /></Part>
		</div>
		{(r.value("before") !== undefined || r.value("after") !== undefined) && <div class="columns">{part("Before", "before")}{part("After", "after")}</div>}
	</main>;
}
