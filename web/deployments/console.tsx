// Expressions over the new and the old state of an environment, evaluated as tasks have theirs evaluated.
import { useRef, useState } from "preact/hooks";
import { change, go, parameter } from "../address";
import { Command, Part, Wrong } from "../parts/bits";
import { ask, type Problem, problemOf } from "../session";

interface Tried { value?: unknown; compared: { function: string; expression: string; changed: boolean }[]; wrong?: { message: string; hint?: string; line?: number; column?: number; offset?: number; shown?: string }; command: string }

/** How much of a value is shown. */
const mostShown = 50_000;

export function Console({ id, nodes, deployments }: { id: string; nodes: string[]; deployments: string[] }) {
	const [found, setFound] = useState<{ of: string; tried?: Tried; problem?: Problem }>();
	const [busy, setBusy] = useState(false);
	const box = useRef<HTMLTextAreaElement>(null), form = useRef<HTMLFormElement>(null);
	const send = async (e: Event) => {
		e.preventDefault();
		const f = new FormData(form.current!), given = (name: string) => String(f.get(name) ?? "").trim();
		const expression = box.current!.value; // as it is: places in it are told
		go(change({ yaql: expression, node: given("node"), new: given("new"), old: given("old") }), true);
		setBusy(true);
		try {
			const tried = await ask<Tried>("POST", `/api/environments/${encodeURIComponent(id)}/eval`, { expression, node: given("node"), new: Number(given("new")), old: Number(given("old")) });
			setFound({ of: expression, tried });
			const at = tried.wrong?.offset;
			if (tried.wrong?.line && at !== undefined && box.current) {
				box.current.focus();
				box.current.setSelectionRange(at, at);
			}
		} catch (problem) {
			setFound({ of: expression, problem: problemOf(problem) });
		}
		setBusy(false);
	};
	const state = (name: string, label: string, usual: string) => <label>{label}<select name={name} key={deployments.join()} defaultValue={parameter(name)}>
		<option value="">{usual}</option>{deployments.map((d) => <option key={d} value={d} selected={parameter(name) === d}>of deployment {d}</option>)}</select></label>;
	const { tried, problem } = found ?? {};
	const text = tried?.value === undefined ? "" : JSON.stringify(tried.value, null, 4);
	return <Part id="console" title="What an expression gives" command={tried?.command}>
		<form ref={form} class="editor" onSubmit={send}>
			<label class="full">Expression<textarea ref={box} name="expression" class="when" rows={2} required spellcheck={false} autocapitalize="off" defaultValue={parameter("yaql")} placeholder="changed($.color)"
				onKeyDown={(e) => { if (e.key === "Enter" && !e.shiftKey) void send(e); }} /></label>
			<label>Node<select name="node" defaultValue={parameter("node")}><option value="">what all nodes see</option>{nodes.map((n) => <option key={n} value={n} selected={parameter("node") === n}>node {n}</option>)}</select></label>
			{state("new", "New state", "as it is now")}
			{state("old", "Old state", "of the latest one")}
			<button disabled={busy}>Evaluate</button>
		</form>
		<div aria-live="polite">
			{!found && <p class="faint">As tasks have theirs evaluated: $ is what the node sees of the new state, and changed(), old() and others compare it with the old one. Nothing is changed. Shift and Enter begin another line.</p>}
			{problem && <Wrong problem={problem} />}
			{tried?.wrong && <div class="wrong">{tried.wrong.message}{tried.wrong.line ? ` (line ${tried.wrong.line}, column ${tried.wrong.column})` : ""}{tried.wrong.hint && "; " + tried.wrong.hint}{tried.wrong.shown && <pre class="place">{tried.wrong.shown}</pre>}</div>}
			{text && <pre class="value" tabIndex={0} aria-label={"The value of " + found!.of}>{text.slice(0, mostShown)}</pre>}
			{text.length > mostShown && <p class="faint">It goes on for {(text.length - mostShown).toLocaleString()} more letters; the command tells it all.</p>}
			{tried && tried.compared.length > 0 && <ul class="rows">{tried.compared.map((c, i) => <li key={i}><span><code>{c.expression}</code> <span class="faint">by {c.function}</span></span><b>{c.changed ? "is different" : "is the same"}</b></li>)}</ul>}
		</div>
	</Part>;
}
