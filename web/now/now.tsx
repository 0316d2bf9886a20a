// What the cluster does now, and what holds what waits.
import { to } from "../address";
import { Ago, Command, Empty, lasting, Meter, moment, Part, Said, Sentence, size, State, summary, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { Hours } from "./hours";
import { now, type Row, useView } from "../stream";

export function NowScreen() {
	const jobs = useView({ view: "now.jobs" });
	const holds = useView({ view: "now.holds" });
	useReady(jobs.known && holds.known);
	return <main class="now">
		<h1 class="hidden">Now</h1>
		<Health />
		<Figures />
		<Holds />
		<Hours />
		<div class="columns">
			<Running />
			<Failed />
		</div>
		<Nodes />
	</main>;
}

/** What is not as it should be, and what to do; one line where all is. */
function Health() {
	const { known, value, error, command } = useView({ view: "now.health" });
	if (error) return <Wrong problem={error} />;
	if (!known) return <div class="health">…</div>;
	const lines = value.lines.filter((l: any) => l.state !== "ok");
	return <section class={"health " + (value.well ? "well" : "ill")} aria-label="Health">
		<div class="headline"><State of={value.well ? "ok" : "problem"} /> <b>{value.well ? "All is well" : "Something keeps the cluster from its work"}</b><Command text={command} quiet /></div>
		{lines.length > 0 && <ul>{lines.map((l: any, i: number) => <li key={i}>
			<State of={l.state} /> <b>{l.part}</b> {l.what}{l.since && <> · since <Ago at={l.since} bare /></>}
			{l.why && <div class="why">{l.why}</div>}
			{l.do && <div class="do">→ {l.do}</div>}
		</li>)}</ul>}
	</section>;
}

const count = (rows: Row[], ...states: string[]): number => rows.filter((r) => states.includes(r.text("status"))).reduce((n, r) => n + (r.value("count") ?? 0), 0);

function Figures() {
	const views = ["now.jobs", "now.ended", "now.instances"].map((view) => useView({ view }));
	const [jobs, ended, instances] = views.map((v) => v.rows);
	const wrong = views.find((v) => v.error)?.error;
	if (wrong) return <Wrong problem={wrong} />;
	const failed = count(ended, "error");
	const broken = instances.filter((r) => r.text("status").startsWith("ERROR")).reduce((n, r) => n + r.value("count"), 0);
	return <div class="figures">
		<Figure n={count(jobs, "running")} of="jobs run" href={to("/jobs", { filter: 'status == "running"' })} />
		<Figure n={count(jobs, "queued", "waiting", "canceling")} of="jobs wait" href={to("/jobs", { filter: 'status == "queued" or status == "waiting"' })} />
		<Figure n={count(ended, "success", "canceled", "error")} of="ended within the hour" href={to("/jobs", { filter: "end_ts > -1h", sort: "-end_ts" })} />
		<Figure n={failed} of="of them failed" bad={failed > 0} href={to("/jobs", { filter: 'status == "error" and end_ts > -1h', sort: "-end_ts" })} />
		<Figure n={count(instances, "running")} of="instances run" href={to("/instances", { filter: 'status == "running"' })} />
		<Figure n={broken} of="are not as they are to be" bad={broken > 0} href={to("/instances", { filter: "status =~ m/^ERROR/" })} />
	</div>;
}

function Figure({ n, of, href, bad }: { n: number; of: string; href: string; bad?: boolean }) {
	return <a class={"figure" + (bad ? " bad" : "")} href={href} data-in><b>{n.toLocaleString()}</b><span>{of}</span></a>;
}

const unended = 'status == "queued" or status == "waiting" or status == "canceling"';

/** What keeps jobs from going on, with what would have to change. */
function Holds() {
	const { known, value, error, command } = useView({ view: "now.holds" });
	const holds: any[] = value?.holds ?? [], all: number = value?.jobs ?? 0, more = value?.more;
	return <Part title="Why jobs wait" command={command} id="holds">
		{error && <Wrong problem={error} />}
		{known && holds.length === 0 && <Empty><p>No job waits.</p><p>A job that does is shown here with what holds it, and what would have to change. For one to look at, hold jobs of one kind:</p>
			<Command text={"drover filter add --action PAUSE --when 'opcode: OP_ID == \"OP_INSTANCE_REBOOT\"' --reason 'trying rules'"} /></Empty>}
		<ul class="holds">{holds.map((h) => <li key={h.why + h.on} data-id={h.why || h.step}>
			<span class="amount"><span class="share" style={{ width: (all > 0 ? 100 * h.jobs / all : 0) + "%" }} /></span>
			<div class="what">
				<a href={to("/jobs", { filter: h.filter, sort: "id" })} data-in><b>{h.jobs.toLocaleString()}</b> {h.jobs === 1 ? "job waits" : "jobs wait"}</a>
				{" "}for <b class="holder">{h.why.replace(/^after /, "") || "its turn"}</b>
				{moment(h.since) !== undefined && <span class="faint"> · the longest {lasting(now.value - moment(h.since)!)}</span>}
				<span class="faint"> · first <a href={"/jobs/" + h.first} data-in>job {h.first}</a></span>
			</div>
			{h.sentence && <div class="why">{h.sentence}</div>}
			{h.change?.length > 0 && <ul class="change">{h.change.map((c: any, i: number) => <li key={i}>→ <Sentence text={c.text} /></li>)}</ul>}
		</li>)}</ul>
		{more?.holds > 0 && <p class="faint">{more.jobs.toLocaleString()} more {more.jobs === 1 ? "job waits" : "jobs wait"} for <a href={to("/query", { item: "job", filter: unended, by: "wait_reason", figures: "count,min(id)", sort: "-count" })} data-in>{more.holds.toLocaleString()} other {more.holds === 1 ? "cause" : "causes"}</a>.</p>}
	</Part>;
}

function Running() {
	const { known, rows, error, command } = useView({ view: "now.running" });
	return <Part title="What runs" command={command}>
		{error && <Wrong problem={error} />}
		{known && rows.length === 0 && <Empty><p>Nothing runs.</p></Empty>}
		<ul class="rows">{rows.map((r) => <li key={r.id} data-id={r.id}>
			<a href={"/jobs/" + r.id} data-in><span class="number">{r.id}</span> <span class="words">{summary(r)}</span></a>
			<span class="faint"><Ago at={r.value("start_ts")} bare /></span>
			{r.text("reason") && <div class="reason"><Said text={r.text("reason")} /></div>}
		</li>)}</ul>
	</Part>;
}

function Failed() {
	const { known, rows, error, command } = useView({ view: "now.failed" });
	return <Part title="What failed within a day" command={command}>
		{error && <Wrong problem={error} />}
		{known && rows.length === 0 && <Empty><p>Nothing failed.</p></Empty>}
		<ul class="rows">{rows.map((r) => <li key={r.id} data-id={r.id}>
			<a href={"/jobs/" + r.id} data-in><span class="number">{r.id}</span> <span class="words">{summary(r)}</span></a>
			<span class="faint"><Ago at={r.value("end_ts")} /></span>
			{r.text("reason") && <div class="reason"><Said text={r.text("reason")} /></div>}
		</li>)}</ul>
	</Part>;
}

/** How a node is, in a word. */
export function nodeState(r: Row): string {
	if (r.value("offline")) return "offline";
	if (r.cell("mfree")[0] !== 0) return "silent";
	if (r.value("drained")) return "drained";
	return r.value("master") ? "master" : "online";
}

function Nodes() {
	const { known, rows, error, command } = useView({ view: "nodes" });
	return <Part title="Nodes" command={command}>
		{error && <Wrong problem={error} />}
		{known && rows.length === 0 && <Empty><p>There is no node.</p><Command text="drover node token NAME" /></Empty>}
		<ul class="tiles">{rows.map((r) => <li key={r.id} data-id={r.text("name")}>
			<a href={"/nodes/" + r.text("name")} data-in class="name">{r.text("name")}</a> <State of={nodeState(r)} />
			<div class="faint">{r.value("pinst_cnt") ?? 0} instances</div>
			<Meter used={(r.value("mtotal") ?? 0) - (r.value("mfree") ?? 0)} of={r.value("mtotal") ?? 0} label={"memory: " + size(r.value("mfree")) + " of " + size(r.value("mtotal")) + " free"} />
			<div class="faint">{size(r.value("mfree"))} of {size(r.value("mtotal"))} memory free</div>
		</li>)}</ul>
	</Part>;
}
