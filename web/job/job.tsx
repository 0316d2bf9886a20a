// One job: why it is where it is, what it did, and who wanted it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Act } from "../parts/act";
import { Ago, Command, Empty, lasting, moment, Part, Sentence, State, summary, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { Trail } from "../parts/trail";
import { ask, who } from "../session";
import { now, type Row, useView } from "../stream";
import { AroundJob } from "./around";

const over = (status: string): boolean => ["success", "error", "canceled"].includes(status);

export function JobScreen({ id }: { id: string }) {
	const job = useView({ view: "job", id });
	const r = job.rows[0];
	const why = useView({ view: "job.explain", id });
	useReady(job.known && why.known);
	const [act, setAct] = useState<"cancel" | "priority">();
	if (job.error) return <main><h1>Job {id}</h1><Wrong problem={job.error} /></main>;
	if (!job.known) return <main aria-busy="true"><h1>Job {id}</h1></main>;
	if (!r || r.cell("status")[0] !== 0) return <main class="message"><h1>There is no job {id}</h1><p><a href="/jobs" data-in>All jobs</a></p></main>;
	const status = r.text("status");
	return <main class="job" data-id={id}>
		<div class="head">
			<h1><span class="number">Job {id}</span> <State of={status} /></h1>
			{who.value?.change && !over(status) && <span class="buttons">
				<button type="button" onClick={() => setAct("priority")}>Change priority…</button>
				<button type="button" onClick={() => setAct("cancel")}>Cancel…</button>
			</span>}
			<Command text={job.command} quiet />
		</div>
		<p class="lead">{summary(r)}{r.value("dry_run") ? <span class="faint"> · only checked, nothing is changed</span> : null}</p>
		<Explained id={id} status={status} />
		{!over(status) && <AroundJob id={id} />}
		<div class="columns">
			<Opcodes r={r} />
			<Part title="Who wanted it, and why"><Trail hops={r.value("reason_trail")} /></Part>
		</div>
		<Timeline spans={why.value?.timeline ?? r.value("timeline") ?? []} status={status} />
		<Log id={id} />
		{act === "cancel" && <Act title={"Cancel job " + id + "?"} button="Cancel the job" close={() => setAct(undefined)}
			run={async (reason) => { const out = await ask<any>("POST", `/api/jobs/${id}/cancel`, { reason }); return out.message; }}>
			<p>{status === "running" ? "The opcode that runs goes on to its end, and what comes behind it is cancelled." : "It has not begun, and ends at once."}</p>
			<Command text={"drover job cancel " + id} />
		</Act>}
		{act === "priority" && <Priority id={id} at={r.value("priority") ?? 0} close={() => setAct(undefined)} />}
	</main>;
}

const words: Record<number, string> = { 10: "low", 0: "normal", [-10]: "high" };

function Priority({ id, at, close }: { id: string; at: number; close: () => void }) {
	const [to, setTo] = useState(at);
	return <Act title={"Change the priority of job " + id} button="Change it" close={close}
		run={async (reason) => { const out = await ask<any>("POST", `/api/jobs/${id}/priority`, { priority: to, reason }); return out.message; }}>
		<label>Priority<select value={String(to)} onChange={(e) => setTo(Number(e.currentTarget.value))}>
			<option value="10">low</option><option value="0">normal</option><option value="-10">high</option>{[10, 0, -10].includes(at) ? null : <option value={String(at)}>{at}</option>}
		</select></label>
		<Command text={words[to] ? `drover job change-priority --priority ${words[to]} ${id}` : ""} />
	</Act>;
}

/** The explanation as it is now, with what would have to change. */
function Explained({ id, status }: { id: string; status: string }) {
	const { known, value: x, error, command } = useView({ view: "job.explain", id });
	if (error) return <Wrong problem={error} />;
	if (!known) return null;
	const decides = (x.rules ?? []).filter((v: any) => v.outcome !== "no" && (v.findings ?? []).some((f: any) => f.holds));
	return <section class={"explained e-" + status} aria-label="Explanation">
		<p class="sentence"><b>{x.why}</b></p>
		{x.held && <p class="faint">It is held for <Ago at={x.held.since} bare /></p>}
		{x.change?.length > 0 && <><h2>For it to go on</h2><ul class="change">{x.change.map((c: any, i: number) => <li key={i}>→ <Sentence text={c.text} />
			{(c.jobs ?? []).map((j: number) => <a key={j} href={"/jobs/" + j} data-in> job {j}</a>)}{c.kind === "rule" && c.on && <a href={"/rules#" + c.on} data-in> see the rule</a>}</li>)}</ul></>}
		{x.expected?.text && <p class="faint">When it goes on: {x.expected.text}</p>}
		{!over(status) && <dl class="facts">
			{x.dependencies?.length > 0 && <><dt>Depends on</dt><dd>{x.dependencies.map((d: any, i: number) => <div key={i}><a href={"/jobs/" + d.job} data-in>job {d.job}</a>: {d.why}</div>)}</dd></>}
			{x.buckets?.length > 0 && <><dt>Limits</dt><dd>{x.buckets.map((b: any, i: number) => <div key={i}>{b.name}: {b.in_flight.length} of {b.limit} in flight{b.place > 0 ? `, this one is number ${b.place} in the line` : ""}</div>)}</dd></>}
			<dt>Slots</dt><dd>{x.slots.running} of {x.slots.max} in use{x.slots.has ? ", one of them its own" : ""}</dd>
			{x.locks?.waits && <><dt>Waits for</dt><dd>lock {x.locks.waits.name}, held by {x.locks.waits.holders.map((h: number) => <a key={h} href={"/jobs/" + h} data-in> job {h}</a>)}</dd></>}
			{x.locks?.held?.length > 0 && <><dt>Holds</dt><dd>{x.locks.held.map((l: any) => l.name + " (" + l.mode + ")").join(", ")}</dd></>}
		</dl>}
		{decides.length > 0 && <details><summary>Rules whose conditions hold: {decides.length}</summary>{decides.map((v: any) => <div key={v.rule.uuid} class="verdict"><b>{v.rule.name || v.rule.uuid.slice(0, 8)}</b> {String(v.rule.action)} · {v.outcome}
			<ul>{v.findings.map((f: any, i: number) => <li key={i}><code>{f.text}</code>{(f.evidence ?? []).map((e: any, n: number) => <div key={n} class="faint">{e.where}: {(e.values ?? []).map((p: any) => p.field + " = " + JSON.stringify(p.value)).join(", ")}</div>)}</li>)}</ul></div>)}</details>}
		<Command text={command} quiet />
	</section>;
}

/** What it does: each opcode, its steps, and what became of them. */
function Opcodes({ r }: { r: Row }) {
	const ops: any[] = r.value("ops") ?? [], states: string[] = r.value("opstatus") ?? [], results: any[] = r.value("opresult") ?? [], steps: any[][] = r.value("opsteps") ?? [];
	const texts: string[] = r.value("summary") ?? [];
	return <Part title={ops.length === 1 ? "What it does" : `What it does: ${ops.length} opcodes`}>
		<ol class="ops">{ops.map((op, i) => <li key={i}>
			<div><State of={states[i] ?? ""} /> <b class="words">{texts[i] ?? op.OP_ID}</b></div>
			{states[i] === "error" && <div class="wrong">{failure(results[i])}</div>}
			{(steps[i] ?? []).length > 0 && <ol class="steps">{steps[i].map((s: any) => <li key={s.step}><State of={s.state} /> {s.text}
				{moment(s.from) !== undefined && moment(s.to) !== undefined && s.state !== "running" && <span class="faint"> {lasting(moment(s.to)! - moment(s.from)!)}</span>}</li>)}</ol>}
			<details><summary>Parameters{states[i] === "success" ? " and result" : ""}</summary>
				<pre>{JSON.stringify(Object.fromEntries(Object.entries(op).filter(([k, v]) => k !== "reason" && v !== null)), null, 2)}</pre>
				{states[i] === "success" && <pre>{JSON.stringify(results[i], null, 2)}</pre>}</details>
		</li>)}</ol>
	</Part>;
}

/** A failure in its own words: a result of one is a class and its arguments. */
function failure(result: any): string {
	const first = Array.isArray(result) && Array.isArray(result[1]) ? result[1][0] : result;
	return typeof first === "string" ? first : JSON.stringify(first);
}

/** What it waited for and did, in time. */
function Timeline({ spans, status }: { spans: any[]; status: string }) {
	if (spans.length === 0) return null;
	const start = moment(spans[0].from)!;
	const ends = spans.map((s) => moment(s.to) ?? now.value);
	const end = over(status) ? Math.max(...ends) : Math.max(now.value, ...ends);
	const whole = Math.max(end - start, 1);
	return <Part title={<>Time line <span class="faint">{lasting(whole)}</span></>}>
		<ol class="timeline">{spans.map((s, i) => {
			const from = moment(s.from)!, to = moment(s.to) ?? end;
			return <li key={i} class={"k-" + s.kind}>
				<span class="track"><span class="span" style={{ left: (100 * (from - start)) / whole + "%", width: Math.max((100 * (to - from)) / whole, 0.4) + "%" }} /></span>
				<span class="took">{s.from === s.to ? "at +" + lasting(from - start) : lasting(to - from)}</span>
				<span class="words">{s.text}{(s.jobs ?? []).map((j: number) => <a key={j} href={"/jobs/" + j} data-in> job {j}</a>)}</span>
			</li>;
		})}</ol>
	</Part>;
}

/** The log as it comes; it stays at its end unless somebody scrolled up. */
function Log({ id }: { id: string }) {
	const { known, value, error, command } = useView({ view: "job.log", id });
	const box = useRef<HTMLDivElement>(null);
	const follows = useRef(true);
	const lines: any[] = value?.lines ?? [];
	useEffect(() => { if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight; }, [lines.length]);
	return <Part title="Log" command={command}>
		{error && <Wrong problem={error} />}
		{known && lines.length === 0 && <Empty><p>It has not said anything.</p></Empty>}
		{lines.length > 0 && <div class="log" ref={box} tabIndex={0} role="log" aria-label="Log" onScroll={(e) => { const b = e.currentTarget; follows.current = b.scrollTop + b.clientHeight > b.scrollHeight - 30; }}>
			{value.left_out > 0 && <div class="faint">{value.left_out} earlier lines</div>}
			{lines.map((l) => <div key={l.opcode + "/" + l.serial}><Ago at={l.time} /> <span class="words">{typeof l.text === "string" ? l.text : JSON.stringify(l.text)}</span></div>)}
		</div>}
	</Part>;
}
