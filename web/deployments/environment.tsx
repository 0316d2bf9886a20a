// One environment: what it is, what a deployment of it would do now and why, and what was deployed to it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { change, go, parameter, to } from "../address";
import { Act } from "../parts/act";
import { Ago, Command, Empty, Part, State, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { Trail } from "../parts/trail";
import { ask, type Problem, problemOf, who } from "../session";
import { useView } from "../stream";
import { Console } from "./console";
import { type Drawing, Graph, type Group, type Sum } from "./graph";
import { Groups, Reasons } from "./reasons";

export function EnvironmentScreen({ id }: { id: string }) {
	const { known, rows, error, command } = useView({ view: "environment", id });
	const past = useView({ view: "deployments", filter: `environment == ${JSON.stringify(id)}`, sort: "-id", limit: 10 });
	useReady(known && past.known);
	const r = rows[0];
	if (error) return <main class="message"><h1>Environment {id}</h1><Wrong problem={error} /><p><a href="/deployments" data-in>All environments</a></p></main>;
	if (!known) return <main aria-busy="true"><h1>Environment {id}</h1></main>;
	if (!r) return <main class="message"><h1>There is no environment {id}</h1><p><a href="/deployments" data-in>All environments</a></p></main>;
	const nodes: any[] = r.value("nodes") ?? [];
	return <main class="environment" data-id={id}>
		<div class="head"><h1>Environment {id} <span class="faint">· {r.text("deployed")}</span></h1><Command text={command} quiet /></div>
		<p class="lead">{nodes.length} nodes, by {(r.value("graphs") ?? []).join(", ") || "no graph"} <span class="faint">· changed <Ago at={r.value("mtime")} /> by {r.text("who")}, generation {r.text("generation")}</span></p>
		<Proposal id={id} />
		{who.value?.change && <Console id={id} nodes={nodes.map((n) => n.uid)} deployments={past.rows.filter((d) => d.text("mode") === "run").map((d) => d.text("id"))} />}
		<div class="columns">
			<Part title="What was deployed to it" command={past.command}>
				{past.known && past.rows.length === 0 && <Empty><p>Nothing yet.</p></Empty>}
				<ul class="rows">{past.rows.map((d, i) => <li key={d.id} data-id={d.text("id")}><span><a href={"/deployments/" + d.text("id")} data-in>deployment {d.text("id")}</a> <span class="faint"><Ago at={d.value("ended") || d.value("begun") || d.value("created")} /> · {d.text("runs")} of {d.text("steps")} tasks{d.text("mode") !== "run" && ", " + d.text("mode")} · {d.text("who")}</span></span> <State of={d.text("status")} />
					{past.rows[i + 1] && <a class="faint" href={`/compare/${past.rows[i + 1].text("id")}/${d.text("id")}`} data-in>what it does otherwise than deployment {past.rows[i + 1].text("id")}</a>}</li>)}</ul>
				<p><a href={to("/deployments", { filter: `environment == ${JSON.stringify(id)}` })} data-in>All of them</a></p>
			</Part>
			<div class="stack">
				<Part title="Its nodes"><ul class="rows">{nodes.slice(0, 200).map((n) => <li key={n.uid}><span>node <b>{n.uid}</b> <span class="faint">{(n.roles ?? []).join(", ")}</span></span>{n.host ? <a href={"/nodes/" + encodeURIComponent(n.host)} data-in>{n.host}</a> : <span class="faint">no host</span>}</li>)}</ul></Part>
				<Part title="Who changed it, and why"><Trail hops={r.value("reason_trail")} /></Part>
			</div>
		</div>
	</main>;
}

/** What a deployment would do, as the controller says. The wish has what the plan was computed from; it is handed in as it came. */
interface Proposed { wish: unknown; headline: string; runs: number; groups: Group[] | null; warnings: string[] | null; sums: Sum[]; drawing: Drawing; plan: string; run: string }

const words = (text: string): string[] => text.split(/[\s,]+/).filter((w) => w !== "");

/** What a deployment would do: asked for by the address, shown, and begun as it was shown. */
function Proposal({ id }: { id: string }) {
	const wanted = parameter("plan"), mode = parameter("mode"), force = parameter("force"), only = parameter("only"), nodes = parameter("nodes"), kind = parameter("type");
	const [found, setFound] = useState<{ plan?: Proposed; problem?: Problem }>({});
	const [asks, setAsks] = useState(false);
	const [times, setTimes] = useState(0);
	const load = async (signal?: AbortSignal) => {
		const q = new URLSearchParams({ environment: id, mode, force, type: kind });
		for (const t of words(only)) q.append("only", t);
		for (const n of words(nodes)) q.append("nodes", n);
		try {
			setFound({ plan: await ask<Proposed>("GET", "/api/plan?" + q, undefined, signal) });
		} catch (e) {
			if (!signal?.aborted) setFound({ problem: problemOf(e) });
		}
	};
	useEffect(() => {
		setFound({});
		if (!wanted) return;
		const gone = new AbortController();
		void load(gone.signal);
		return () => gone.abort();
	}, [wanted, times, id, mode, force, only, nodes, kind]);
	const { plan, problem } = found;
	const choose = (t: string) => go(change({ task: t }), true);
	const send = (e: Event) => {
		e.preventDefault();
		const f = new FormData(e.currentTarget as HTMLFormElement);
		const given = (name: string) => String(f.get(name) ?? "").trim();
		setTimes(times + 1);
		go(change({ plan: "now", mode: given("mode"), force: given("force"), only: words(given("only")).join(","), nodes: words(given("nodes")).join(","), type: given("type") }), true);
	};
	return <Part id="plan" title="What a deployment would do" command={plan?.plan}>
		<form class="editor" onSubmit={send}>
			<label title="run: tasks are carried out; noop: in the way of their type that changes nothing; dry-run: nodes only report what they would do">How<select name="mode" key={mode} defaultValue={mode}><option value="" selected={mode === ""}>run</option><option value="noop" selected={mode === "noop"}>noop: change nothing</option><option value="dry-run" selected={mode === "dry-run"}>dry-run: only report</option></select></label>
			<label>Only these tasks<input name="only" defaultValue={only} placeholder="all" spellcheck={false} /></label>
			<label>Only these nodes<input name="nodes" defaultValue={nodes} placeholder="all" spellcheck={false} /></label>
			<label>Graphs of type<input name="type" defaultValue={kind} placeholder="the usual ones" spellcheck={false} /></label>
			<label class="check"><input type="checkbox" name="force" value="yes" defaultChecked={force !== ""} /> as if it were the first deployment</label>
			<button>Plan</button>
		</form>
		{!wanted && <p class="faint">Nothing is stored, and nothing is begun: it is told which tasks would run where, and why.</p>}
		{wanted && !plan && !problem && <p class="faint" aria-busy="true">It is worked out…</p>}
		{problem && <Wrong problem={problem} />}
		{plan && <div class="effect" aria-live="polite">
			<p class="sentence"><b>{plan.headline}</b></p>
			{plan.warnings?.map((w, i) => <div key={i} class="warning">{w}</div>)}
		</div>}
		{plan && plan.sums.length > 0 && <Picture of={plan} choose={choose} />}
		{plan && <Groups of={plan.groups ?? []} chosen={parameter("task")} choose={choose} />}
		{plan && plan.runs > 0 && (who.value?.change ? <button type="button" class="first" onClick={() => setAsks(true)}>Begin…</button> : <Command text={plan.run} />)}
		{plan && asks && <Act title={"Deploy " + id + "?"} button="Begin" close={() => setAsks(false)} run={async (reason) => {
			try {
				const out = await ask<{ deployment: number }>("POST", "/api/deployments", { wish: plan.wish, reason });
				go("/deployments/" + out.deployment);
				return "It has begun.";
			} catch (e) {
				if (problemOf(e).code === "conflict") await load(); // and what is shown is what it would be now
				throw e;
			}
		}}>
			<p class="sentence"><b>{plan.headline}</b></p>
			<p>It is begun as it was shown. If what it was computed from has changed, it is refused.</p>
			<Command text={plan.run} />
		</Act>}
	</Part>;
}

const wouldRun = (s: Sum): string => s.runs === 0 ? "would not run" : `would run on ${s.runs === s.nodes ? "" : s.runs + " of "}${s.nodes} ${s.nodes === 1 ? "node" : "nodes"}`;

/** The tasks of a plan and what comes after what; of one that is chosen, where it would run and why. */
function Picture({ of, choose }: { of: Proposed; choose: (task: string) => void }) {
	const task = parameter("task");
	const plan = useMemo(() => ({ tasks: of.sums.map((s) => s.task), drawing: of.drawing, groups: of.groups ?? [] }), [of]);
	const sum = of.sums.find((s) => s.task === task), group = plan.groups.find((g) => g.task === task);
	return <>
		<Graph plan={plan} sums={of.sums} chosen={task} choose={choose} tells={wouldRun} />
		{sum && <div class="effect chosen" aria-live="polite"><b class="words">{task}</b> {wouldRun(sum)}{group && <Reasons of={group} />}</div>}
	</>;
}
