// Environments and what is deployed to them: how far it is, what each task does and why.
import { useEffect, useState } from "preact/hooks";
import { change, go, parameter, to } from "../address";
import { Act } from "../parts/act";
import { Ago, Command, Empty, lasting, moment, Part, quoted, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { type Column, List } from "../parts/list";
import { Trail } from "../parts/trail";
import { ask, type Problem, problemOf, who } from "../session";
import { now, type Row, useView } from "../stream";
import { Graph, type Group, type Plan, type Sum } from "./graph";
import { Reasons } from "./reasons";

const columns: Column[] = [
	{ title: "Number", field: "id", class: "number", show: (r) => <a href={"/deployments/" + r.text("id")} data-in>{r.text("id")}</a> },
	{ title: "State", field: "status", class: "short", show: (r) => <State of={r.text("status")} /> },
	{ title: "Environment", field: "environment", class: "medium", show: (r) => <>{r.text("environment")}{r.text("mode") !== "run" && <span class="faint"> · {r.text("mode")}</span>}</> },
	{ title: "Tasks that run", field: "runs", class: "short optional", show: (r) => r.text("runs") + " of " + r.text("steps") },
	{ title: "Why so", class: "wide", show: (r) => <span title={r.text("why")}>{r.text("why")}</span> },
	{ title: "Who", field: "who", class: "short optional", show: (r) => r.text("who") },
	{ title: "Since", class: "time", show: (r) => <Ago at={r.value("ended") || r.value("begun") || r.value("created")} /> },
];

export function DeploymentsScreen() {
	const environments = useView({ view: "environments" });
	const chips: [string, string][] = [["All", ""], ["Running", 'status == "running" or status == "stopping"'], ["Planned", 'status == "planned"'], ["Failed", 'status == "error"'],
		...environments.rows.slice(0, 12).map((r): [string, string] => [r.text("name"), `environment == ${JSON.stringify(r.text("name"))}`])];
	return <>
		<List title="Deployments" view="deployments" item="deployment" columns={columns} name={(r) => r.text("id")} href={(r) => "/deployments/" + r.text("id")} chips={chips}
			empty={<><p>Nothing was deployed yet. A task graph and an environment come first, then a plan that says what would run and why:</p><Command text="drover deploy graph put GRAPH FILE..." /> <Command text="drover deploy env put NAME FILE --graph GRAPH" /> <Command text="drover deploy plan NAME" /></>} />
		<section class="below" aria-label="Environments"><Part title="Environments" command={environments.command}>
			{environments.error && <Wrong problem={environments.error} />}
			{environments.known && environments.rows.length === 0 && <Empty><p>There is none.</p></Empty>}
			<ul class="tiles">{environments.rows.map((r) => <Environment key={r.id} r={r} />)}</ul>
		</Part></section>
	</>;
}

function Environment({ r }: { r: Row }) {
	return <li data-id={r.text("name")}><a href={"/environments/" + encodeURIComponent(r.text("name"))} data-in class="name">{r.text("name")}</a> <span class="faint">{r.text("deployed")}</span>
		<div class="faint">{r.value("node_cnt") ?? 0} nodes · changed <Ago at={r.value("mtime")} /> by {r.text("who")}</div>
		<div class="faint">by {(r.value("graphs") ?? []).join(", ") || "no graph"}</div>
		<a href={to("/environments/" + encodeURIComponent(r.text("name")), { plan: "now" })} data-in>What a deployment would do</a></li>;
}

/** What may be done to a deployment, as the controller says. */
interface Offer { do: string; name: string; does: string; command: string }

/** Others of the same environment, to compare with. */
function Others({ id, environment }: { id: string; environment: string }) {
	const { rows } = useView({ view: "deployments", filter: `environment == ${JSON.stringify(environment)} and id != ${id}`, sort: "-id", limit: 10 });
	if (rows.length === 0) return null;
	return <Part title="What it does otherwise than others"><p class="chips">{rows.map((r) => <a key={r.id} data-in href={"/compare/" + (Number(r.text("id")) < Number(id) ? r.text("id") + "/" + id : id + "/" + r.text("id"))}>deployment {r.text("id")}, {r.text("status")}</a>)}</p></Part>;
}

export function DeploymentScreen({ id }: { id: string }) {
	const { known, value: d, error, command } = useView({ view: "deployment", id });
	const [plan, setPlan] = useState<Plan>();
	const [wrong, setWrong] = useState<Problem>();
	const [act, setAct] = useState<Offer>();
	useEffect(() => { void ask<Plan>("GET", `/api/deployments/${id}/plan`).then(setPlan, (e) => setWrong(problemOf(e))); }, [id]);
	useReady(known && (plan !== undefined || wrong !== undefined));
	if (error) return <main class="message"><h1>Deployment {id}</h1><Wrong problem={error} /><p><a href="/deployments" data-in>All deployments</a></p></main>;
	if (!known) return <main aria-busy="true"><h1>Deployment {id}</h1></main>;
	const sums: Sum[] = d.sums;
	const task = parameter("task");
	const choose = (t: string) => go(change({ task: t }), true);
	const passed = (d.states.ready ?? 0) + (d.states.tolerated ?? 0);
	return <main class="deployment" data-id={id}>
		<div class="head"><h1>Deployment {id} of <a href={"/environments/" + encodeURIComponent(d.environment)} data-in>{d.environment}</a> <State of={d.status} /></h1>
			{who.value?.change && d.acts.length > 0 && <span class="buttons">{d.acts.map((a: Offer) => <button key={a.do} type="button" onClick={() => setAct(a)}>{a.name}…</button>)}</span>}
			<Command text={command} quiet /></div>
		<p class="lead">{passed.toLocaleString()} of {d.runs.toLocaleString()} tasks done{d.mode !== "run" && ` (${d.mode})`}{d.why ? "; " + d.why : ""}
			{d.begun ? <span class="faint"> · {d.ended ? "took " + lasting(moment(d.ended)! - moment(d.begun)!) : "since " + lasting(now.value - moment(d.begun)!)}</span> : null}</p>
		<span class="meter long" role="img" aria-label={`${passed} of ${d.runs} tasks done`}><span style={{ width: (d.runs > 0 ? 100 * passed / d.runs : 0) + "%" }} /></span>
		{d.moved && <div class="warning">What it was planned from has changed: {d.moved}. <a href={to("/environments/" + encodeURIComponent(d.environment), { plan: "now" })} data-in>What a deployment would do now</a></div>}
		{d.acts.length > 0 && <p class="tools">{d.acts.map((a: Offer) => <Command key={a.do} text={a.command} />)}</p>}
		<Now d={d} />
		{wrong && <Wrong problem={wrong} />}
		{plan && <Part title="Tasks, and what comes after what"><Graph plan={plan} sums={sums} chosen={task} choose={choose} /></Part>}
		{task && <Nodes id={id} task={task} close={() => choose("")} />}
		<Tasks id={id} sums={plan ? sums.map((s, i) => [plan.drawing.points[i]?.layer ?? 0, s] as const).sort((a, b) => a[0] - b[0]).map(([, s]) => s) : sums} groups={plan?.groups ?? []} chosen={task} choose={choose} />
		<div class="columns"><Part title="Who wanted it, and why"><Trail hops={d.trail} /></Part><ByNode of={d.by_node} /></div>
		<Others id={id} environment={d.environment} />
		{act && <Act title={`${act.name}: deployment ${id} of ${d.environment}`} button={act.name} close={() => setAct(undefined)} run={async (reason) => (await ask<{ message: string }>("POST", `/api/deployments/${id}/${act.do}`, { reason })).message}>
			<p>{act.does}</p>
			<Command text={act.command} />
		</Act>}
	</main>;
}

const where = (t: any) => <><a href={change({ task: t.task })} data-in><b class="words">{t.task}</b></a> on node {t.node}{t.job ? <a href={"/jobs/" + t.job} data-in> job {t.job}</a> : null}</>;

/** What runs, waits and failed; the longest chain that is left. */
function Now({ d }: { d: any }) {
	const lists: [string, any[]][] = [["error", d.unsuccessful], ["stopped", d.stopped], ["held", d.held], ["given", d.queued], ["running", d.running]];
	if (lists.every(([, l]) => l.length === 0) && d.longest.length === 0) return null;
	return <Part title="Where it stands">
		<ul class="rows">{lists.map(([state, l]) => l.slice(0, 20).map((t) => <li key={state + t.step}><span>{where(t)}</span> <State of={state} />
			{t.error && <div class="wrong">{t.error}{t.blocks > 0 ? `; ${t.blocks} wait for it` : ""}</div>}
			{t.held && <div class="faint">held by {t.held_why || "rule " + t.held} <a href={"/rules#" + t.held} data-in>see the rule</a></div>}
			{t.waits_for && <div class="faint">waits for {t.waits_for.lock}{t.waits_for.job ? <>, which <a href={"/jobs/" + t.waits_for.job} data-in>job {t.waits_for.job}</a> has</> : null}</div>}
			{t.output && <pre tabIndex={0}>{t.output.join("\n")}</pre>}
			{t.output && <Command text={`drover deploy logs ${d.id} ${quoted(t.task)} ${quoted(t.node)}`} quiet />}</li>))}</ul>
		{lists.map(([state, l]) => l.length > 20 && <p key={state} class="faint">{l.length === 100 ? "100 or more" : l.length} are {state}; the list below has them.</p>)}
		{d.longest.length > 0 && <details><summary>The longest chain that is left: {d.longest.length} tasks</summary><ol class="chain">{d.longest.map((t: string) => <li key={t}>{t}</li>)}</ol></details>}
	</Part>;
}

const shownTasks = 400;

/** All tasks, how far each is on its nodes, and why it runs there. */
function Tasks({ id, sums, groups, chosen, choose }: { id: string; sums: Sum[]; groups: Group[]; chosen: string; choose: (t: string) => void }) {
	const find = parameter("find"), state = parameter("state");
	const reasons = new Map(groups.map((g) => [g.task, g]));
	const counts = new Map<string, number>();
	for (const s of sums) counts.set(s.state, (counts.get(s.state) ?? 0) + 1);
	const fit = sums.filter((s) => (state === "" || s.state === state) && s.task.toLowerCase().includes(find.toLowerCase()));
	return <Part title="All tasks" command={"drover deploy tasks " + id}>
		<div class="tools"><input type="search" aria-label="Find a task" placeholder="Find a task" value={find} onInput={(e) => go(change({ find: e.currentTarget.value }), true)} />
			<span class="chips" role="group" aria-label="State of the tasks"><a href={change({ state: "" })} data-in aria-current={state === "" ? "true" : undefined}>All {sums.length}</a>
				{[...counts].map(([s, n]) => <a key={s} href={change({ state: s })} data-in aria-current={state === s ? "true" : undefined}>{s} {n}</a>)}</span></div>
		<ul class="rows tasks" tabIndex={0} aria-label="Tasks">{fit.slice(0, shownTasks).map((s) => { const g = reasons.get(s.task); return <li key={s.task} data-id={s.task} data-chosen={s.task === chosen ? "" : undefined}>
			<a href={change({ task: s.task })} onClick={(e) => { e.preventDefault(); choose(s.task); }} class="words">{s.task}</a> <span><State of={s.state} />{s.runs > 0 && <span class="faint"> {s.passed} of {s.runs}</span>}</span>
			{g && <Reasons of={g} />}
		</li>; })}</ul>
		{fit.length > shownTasks && <p class="faint">{fit.length - shownTasks} more; a part of the name brings them up.</p>}
	</Part>;
}

/** The nodes of one task: on each its state, and why it runs there or does not. */
function Nodes({ id, task, close }: { id: string; task: string; close: () => void }) {
	const { known, rows, error, command } = useView({ view: "deployment.tasks", id, filter: `task == ${JSON.stringify(task)}` });
	return <Part id="nodes" title={<>{task} on its nodes</>} aside={<button type="button" class="right" onClick={close}>Close</button>} command={command}>
		{error && <Wrong problem={error} />}
		{known && !error && rows.length === 0 && <Empty><p>The plan has no such task.</p></Empty>}
		<ul class="rows">{rows.map((r) => <li key={r.id} data-id={r.text("node")}><span>node <b>{r.text("node")}</b>{r.value("job") ? <a href={"/jobs/" + r.text("job")} data-in> job {r.text("job")}</a> : null}</span> <State of={r.text("state")} />
			<div class="why-line">{r.text("why")}</div>
			{r.text("error") && <div class="wrong">{r.text("error")}</div>}
			<Step id={id + "/" + r.text("step")} /></li>)}</ul>
	</Part>;
}

/** All about a task on a node, when somebody wants to know. */
function Step({ id }: { id: string }) {
	const [open, setOpen] = useState(false);
	return <details class="step" onToggle={(e) => setOpen(e.currentTarget.open)}><summary>Parameters, and what it comes after</summary>{open && <Explained id={id} />}</details>;
}

function Explained({ id }: { id: string }) {
	const { known, value: x, error } = useView({ view: "deployment.step", id });
	if (error) return <Wrong problem={error} />;
	if (!known) return null;
	return <>
		{x.roots.length > 0 && <><p>In its way in the end:</p><ul>{x.roots.map((t: any) => <li key={t.step}>{where(t)}: {t.error || t.state}</li>)}</ul></>}
		{x.parameters && <pre tabIndex={0}>{JSON.stringify(x.parameters, null, 2)}</pre>}
		<p class="faint">After {x.requires.length ? x.requirements.map((t: any, i: number) => <span key={i}>{x.requires[i]} ({t.state}){i < x.requires.length - 1 ? ", " : ""}</span>) : "nothing"}.</p>
		<p class="faint">Before {x.required_for.join(", ") || "nothing"}.</p>
		<Command text={x.command} quiet />
	</>;
}

function ByNode({ of }: { of: Record<string, { runs: number; passed: number; failed: number }> }) {
	const all = Object.entries(of);
	if (all.length === 0) return null;
	return <Part title="By node"><ul class="rows">{all.slice(0, 200).map(([uid, n]) => <li key={uid}><span>node {uid}</span><span class="faint">{n.passed} of {n.runs}{n.failed > 0 ? `, ${n.failed} failed` : ""}</span></li>)}</ul></Part>;
}
