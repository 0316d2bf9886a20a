// Two plans beside one another: what only one of them runs, what both run for other reasons, and what is different in what they were computed from.
import { useEffect, useState } from "preact/hooks";
import { go } from "../address";
import { Command, Empty, Part, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { ask, type Problem, problemOf } from "../session";
import type { Group } from "./graph";
import { Groups } from "./reasons";

interface Side { deployment: number; environment: string; status: string; headline: string }
interface Difference { node: string; path: string; old?: string; new?: string }
interface Comparison { before: Side; after: Side; gone: Group[] | null; came: Group[] | null; changed: Group[] | null; states: Difference[]; left_out: number; tasks_command: string; states_command: string }

export function CompareScreen({ id }: { id: string }) {
	const [before = "", after = ""] = id.split("/");
	const [found, setFound] = useState<{ of?: Comparison; problem?: Problem }>({});
	const both = before !== "" && after !== "";
	useEffect(() => { setFound({}); if (both) void ask<Comparison>("GET", `/api/deployments/${encodeURIComponent(before)}/compare/${encodeURIComponent(after)}`).then((of) => setFound({ of }), (e) => setFound({ problem: problemOf(e) })); }, [id]);
	const { of: c, problem } = found;
	useReady(!both || c !== undefined || problem !== undefined);
	const send = (e: Event) => {
		e.preventDefault();
		const f = new FormData(e.currentTarget as HTMLFormElement);
		go(`/compare/${encodeURIComponent(String(f.get("before")))}/${encodeURIComponent(String(f.get("after")))}`);
	};
	const parts: [string, Group[] | null][] = c ? [[`Only deployment ${before} runs`, c.gone], [`Only deployment ${after} runs`, c.came], ["Both run, for other reasons", c.changed]] : [];
	return <main class="compare" data-id={id}>
		<div class="head"><h1>{both ? `Deployments ${before} and ${after}` : "Two deployments"}</h1>{c && <Command text={c.tasks_command} quiet />}</div>
		<form class="tools" onSubmit={send} key={id}><label>Before<input name="before" inputMode="numeric" required defaultValue={before} /></label><label>After<input name="after" inputMode="numeric" required defaultValue={after} /></label><button>Compare</button></form>
		{problem && <Wrong problem={problem} />}
		{both && !c && !problem && <p aria-busy="true" class="faint">They are compared…</p>}
		{c && <p class="lead">{[c.before, c.after].map((s) => <span key={s.deployment} class="side"><a href={"/deployments/" + s.deployment} data-in>deployment {s.deployment}</a> of <a href={"/environments/" + encodeURIComponent(s.environment)} data-in>{s.environment}</a>, {s.status}: {s.headline}</span>)}</p>}
		{c && parts.every(([, l]) => !l?.length) && <Empty><p>Both run the same, for the same reasons.</p></Empty>}
		{parts.map(([title, l]) => l && l.length > 0 && <Part key={title} title={title}><Groups of={l} label={title} /></Part>)}
		{c && <Part title="What is different in what they were computed from" command={c.states_command}>
			{c.states.length === 0 && <Empty><p>Nothing.</p></Empty>}
			{c.states.length > 0 && <div class="beside" tabIndex={0} role="region" aria-label="Values"><table><thead><tr><th scope="col">Of</th><th scope="col">Value</th><th scope="col">Deployment {before}</th><th scope="col">Deployment {after}</th></tr></thead>
				<tbody>{c.states.map((d, i) => <tr key={i}><td>{d.node ? "node " + d.node : "all nodes"}</td><td class="words"><code>{d.path}</code></td><td class="words">{d.old ?? <span class="faint">was not there</span>}</td><td class="words">{d.new ?? <span class="faint">is no more there</span>}</td></tr>)}</tbody></table></div>}
			{c.left_out > 0 && <p class="faint">{c.left_out} more; the command tells them all.</p>}
		</Part>}
	</main>;
}
