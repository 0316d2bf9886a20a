// The filter rules in the order in which they are asked, and what another one would do.
import { useEffect, useState } from "preact/hooks";
import { address, to } from "../address";
import { Act } from "../parts/act";
import { Ago, Command, Empty, Part, quoted, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { ask, type Problem, problemOf, who } from "../session";
import { now, type Row, useView } from "../stream";

const show = (e: Element | null) => e?.scrollIntoView({ block: "center" });

export function RulesScreen() {
	const { known, rows, error, command } = useView({ view: "rules" });
	const [removes, setRemoves] = useState<Row>();
	useReady(known);
	const meant = address.value.hash.slice(1);
	return <main class="rules">
		<div class="head"><h1>Rules</h1><Command text={command} quiet /></div>
		{error && <Wrong problem={error} />}
		{known && rows.length === 0 && <Empty><p>There is no rule: every job goes on as soon as it can.</p><p>A rule holds, refuses or limits jobs by what they do and why. {who.value?.change ? "Describe one below: what it would do is shown before it is added." : ""}</p></Empty>}
		<ol class="rulelist">{rows.map((r) => <li key={r.id} class={meant === r.text("uuid") ? "meant" : ""} ref={meant === r.text("uuid") ? show : undefined} data-id={r.text("uuid")}>
			<div class="what"><b>{r.text("rule")}</b> <span class={"action a-" + r.text("action_text").split(" ")[0]}>{r.text("action_text")}</span>{r.value("shadow") ? <span class="faint"> shadow: it decides nothing</span> : null}
				<span class="faint"> priority {r.text("priority")}</span>
				{who.value?.change && <button type="button" class="right" onClick={() => setRemoves(r)}>Delete…</button>}</div>
			<code class="words">{r.text("predicates_text") || "every job"}</code>
			<div class="faint">{r.text("reason") && <q>{r.text("reason")}</q>} {r.text("added_by")} · changed <Ago at={r.value("changed")} />{r.value("until") ? <> · ends <Ago at={r.value("until")} bare /></> : null}</div>
			<div><a href={to("/jobs", { filter: `held_by == "${r.text("uuid")}"` })} data-in>holds {r.value("held") ?? 0} now</a>
				{r.value("longest_hold") ? <span class="faint">, the longest since <Ago at={r.value("longest_hold")} bare /></span> : null}
				<span class="faint"> · decides about {r.value("shadow") ? (r.value("would_hold") ?? 0) + ", if it were in force" : r.value("decides") ?? 0} that have not ended</span></div>
		</li>)}</ol>
		{who.value?.change && <Editor />}
		{removes && <Removal r={removes} close={() => setRemoves(undefined)} />}
	</main>;
}

interface Forecast { headline: string; digest: string; warnings: any[]; effects: Record<string, number>; jobs: any[]; unaffected: number; place: number; of: number; every_new: string; past: any }

/** What a change of the rules would do, asked for while somebody types; stale is one of a change before. */
function usePreview(edit: unknown, when: string): { forecast?: Forecast; problem?: Problem; stale: boolean } {
	const [seen, setSeen] = useState<{ of?: string; forecast?: Forecast; problem?: Problem }>({});
	const text = JSON.stringify([edit, when]);
	useEffect(() => {
		const gone = new AbortController();
		const soon = setTimeout(async () => {
			try {
				setSeen({ of: text, forecast: await ask<Forecast>("POST", "/api/rules/preview", { edit, when }, gone.signal) });
			} catch (e) {
				if (!gone.signal.aborted) setSeen((was) => ({ ...was, problem: problemOf(e) }));
			}
		}, 150);
		return () => { clearTimeout(soon); gone.abort(); };
	}, [text]);
	return { ...seen, stale: seen.of !== text };
}

const actions = ["PAUSE", "REJECT", "ACCEPT", "CONTINUE", "RATE_LIMIT"];

function Editor() {
	const [when, setWhen] = useState("");
	const [action, setAction] = useState("PAUSE");
	const [limit, setLimit] = useState(3);
	const [priority, setPriority] = useState(0);
	const [name, setName] = useState("");
	const [hours, setHours] = useState("");
	const [shadow, setShadow] = useState(false);
	const [asks, setAsks] = useState<{ forecast: Forecast; edit: unknown; when: string; name: string; command: string }>(); // what is added is what was shown
	const until = hours === "" ? undefined : new Date(Math.ceil(now.value / 60_000) * 60_000 + Number(hours) * 3_600_000).toISOString();
	const parts = { priority, action: action === "RATE_LIMIT" ? ["RATE_LIMIT", limit] : action, ...(name && { name }), ...(until && { until }), ...(shadow && { shadow }) };
	const edit = { do: "put", rule: "", parts };
	const { forecast, problem, stale } = usePreview(edit, when);
	const command = `drover filter add --action ${action === "RATE_LIMIT" ? `'RATE_LIMIT ${limit}'` : action} --rule-priority ${priority}` + (when ? " --when " + quoted(when) : " --all-jobs") + (name ? " --name " + quoted(name) : "") + (hours ? ` --until ${hours}h` : "") + (shadow ? " --shadow" : "");
	return <Part title="What if there were another rule?" command={command} id="editor">
		<div class="editor">
			<label class="full">Which jobs<textarea class="when" rows={2} spellcheck={false} value={when} onInput={(e) => setWhen(e.currentTarget.value)} placeholder={'opcode: OP_ID == "OP_INSTANCE_REBOOT" and instance_name =~ m/^db/'} /></label>
			<label>What becomes of them<select value={action} onChange={(e) => setAction(e.currentTarget.value)}>{actions.map((a) => <option key={a}>{a}</option>)}</select></label>
			{action === "RATE_LIMIT" && <label>At a time<input type="number" min="1" value={limit} onInput={(e) => setLimit(Number(e.currentTarget.value))} /></label>}
			<label>Priority<input type="number" min="0" value={priority} onInput={(e) => setPriority(Number(e.currentTarget.value))} /></label>
			<label>Name<input value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="rack3" /></label>
			<label>Ends after hours<input type="number" min="1" value={hours} onInput={(e) => setHours(e.currentTarget.value)} placeholder="never" /></label>
			<label class="check"><input type="checkbox" checked={shadow} onChange={(e) => setShadow(e.currentTarget.checked)} /> only watch (shadow)</label>
		</div>
		{problem && <Wrong problem={problem} />}
		{forecast && <Effect of={forecast} />}
		{forecast && <button type="button" class="first" disabled={problem !== undefined || stale} onClick={() => setAsks({ forecast, edit, when, name, command })}>Add the rule…</button>}
		{asks && <Act title="Add this rule?" button="Add the rule" close={() => setAsks(undefined)} run={async (reason) => {
			const out = await ask<any>("POST", "/api/rules", { edit: asks.edit, when: asks.when, reason, digest: asks.forecast.digest });
			setWhen(""); setName("");
			return "The rule " + (asks.name || out.uuid.slice(0, 8)) + " is in force.";
		}}><p><b>{asks.forecast.headline}</b></p><Command text={asks.command} /></Act>}
	</Part>;
}

/** What would become of jobs. */
function Effect({ of: f }: { of: Forecast }) {
	return <div class="effect" aria-live="polite">
		<p class="sentence"><b>{f.headline}</b></p>
		{f.warnings?.map((w, i) => <div key={i} class="warning">! {w.text ?? w.message ?? JSON.stringify(w)}</div>)}
		<div class="counts">{Object.entries(f.effects).map(([e, n]) => <span key={e} class={"effect-" + e}><b>{n}</b> {e}</span>)}<span class="faint"><b>{f.unaffected}</b> not affected</span></div>
		<ul class="rows">{f.jobs.map((j) => <li key={j.id} data-id={String(j.id)}><a href={"/jobs/" + j.id} data-in><span class="number">{j.id}</span> <span class="words">{j.summary.join(", ")}</span></a> <State of={j.status} /><div class="faint">{j.text}</div></li>)}</ul>
	</div>;
}

function Removal({ r, close }: { r: Row; close: () => void }) {
	const uuid = r.text("uuid");
	const edit = { do: "delete", rule: uuid };
	const { forecast, problem } = usePreview(edit, "");
	return <Act title={"Delete rule " + r.text("rule") + "?"} button="Delete the rule" close={close} run={async (reason) => {
		if (!forecast) throw new Error("what it would do is not known yet");
		await ask("POST", "/api/rules", { edit, reason, digest: forecast.digest });
		return "The rule is gone.";
	}}>
		{problem && <Wrong problem={problem} />}
		{forecast ? <Effect of={forecast} /> : <p class="faint">What that would do is worked out…</p>}
		<Command text={"drover filter delete " + uuid} />
	</Act>;
}
