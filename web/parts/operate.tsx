// What can be done to a thing: shown first, as it would go now, and then done as a job.
import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../address";
import { ask, type Problem, problemOf, who } from "../session";
import { line } from "../stream";
import { Why, useWhy } from "./act";
import { Command, State, Wrong } from "./bits";

interface Asked { name: string; label: string; placeholder?: string; kind: "text" | "lines" | "number" | "size" | "choice" | "check"; choices?: string[] }

export interface Operation { name: string; title: string; doc: string; asks: Asked[]; destroys: boolean }

/** What an operation would do, as the controller says it. */
export interface Shown { command: string; problem?: Problem; pending: number[]; rule: string; steps: any[]; says: any[]; placement?: Placed }

interface Placed { node: string; why: string; memory: number; disk: number; vcpus: number; nodes: { node: string; rank: number; fails: string; text: string }[]; mirror?: Placed }

/** What can be done to things of a kind; asked for when a screen is opened, as what may be answered is of that moment. */
export function useOperations(item: string): Operation[] {
	const [all, setAll] = useState<Operation[]>([]);
	useEffect(() => {
		const gone = new AbortController();
		void ask<Operation[]>("GET", "/api/operations/" + item, undefined, gone.signal).then(setAll, () => undefined);
		return () => gone.abort();
	}, [item]);
	return all;
}

/** Buttons for what can be done to a thing that is there. */
export function Operations({ item, name, uuid }: { item: string; name: string; uuid: string }) {
	const all = useOperations(item).filter((o) => o.name !== "add");
	const [chosen, setChosen] = useState<Operation>();
	if (!who.value?.change || uuid === "") return null;
	return <div class="buttons operations" role="group" aria-label={"What can be done to " + name}>
		{all.map((o) => <button key={o.name} type="button" onClick={() => setChosen(o)}>{o.title}…</button>)}
		{chosen && <Asking o={chosen} item={item} name={name} uuid={uuid} close={() => setChosen(undefined)} />}
	</div>;
}

/** What it would do with these answers, asked for while somebody types; stale is that of other answers. The reason counts for what a rule would do with it, and nothing else. */
export function useShown(item: string, o: string, wish: { name: string; uuid: string; given: Record<string, string>; reason: string }, wanted = true): { shown?: Shown; problem?: Problem; stale: boolean } {
	const [seen, setSeen] = useState<{ of?: string; shown?: Shown; problem?: Problem }>({});
	const of = JSON.stringify([wish.name, wish.given]), text = JSON.stringify([item, o, wish]);
	useEffect(() => {
		if (!wanted) return;
		const gone = new AbortController();
		const soon = setTimeout(async () => {
			try {
				setSeen({ of, shown: await ask<Shown>("POST", `/api/operations/${item}/${o}/preview`, wish, gone.signal) });
			} catch (e) {
				if (!gone.signal.aborted) setSeen({ of, problem: problemOf(e) });
			}
		}, 300);
		return () => { clearTimeout(soon); gone.abort(); };
	}, [text, wanted]);
	return { ...seen, stale: seen.of !== of };
}

/** A key of a wish: what is sent twice under it is done once. */
export const newKey = (): string => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

/** The fields for what an operation has to know. */
export function Answers({ asks, given, set }: { asks: Asked[]; given: Record<string, string>; set: (given: Record<string, string>) => void }) {
	return <>{asks.map((a) => {
		const is = given[a.name] ?? "";
		const put = (e: { currentTarget: { value: string } }) => set({ ...given, [a.name]: e.currentTarget.value });
		if (a.kind === "check") return <label key={a.name} class="check"><input type="checkbox" name={a.name} checked={is !== ""} onChange={(e) => set({ ...given, [a.name]: e.currentTarget.checked ? "yes" : "" })} /> {a.label}</label>;
		if (a.kind === "lines") return <label key={a.name} class="full">{a.label}<textarea name={a.name} rows={2} spellcheck={false} value={is} onInput={put} /></label>;
		if (a.kind === "choice") return <label key={a.name}>{a.label}<select name={a.name} value={is || a.choices![0]} onChange={put}>{a.choices!.map((c) => <option key={c}>{c}</option>)}</select></label>;
		return <label key={a.name}>{a.label}<input name={a.name} value={is} onInput={put} placeholder={a.placeholder} spellcheck={false} autocomplete="off" inputMode={a.kind === "number" ? "numeric" : undefined} list={a.choices ? "offered-" + a.name : undefined} />
			{a.choices && <datalist id={"offered-" + a.name}>{a.choices.map((c) => <option key={c} value={c} />)}</datalist>}</label>;
	})}</>;
}

/** What it would do: why not, what a rule would do with it, its steps, and how its node is chosen. */
export function Outlook({ shown, problem, stale }: { shown?: Shown; problem?: Problem; stale: boolean }) {
	if (problem) return <Wrong problem={problem} />;
	if (!shown) return <p class="faint" aria-busy="true">What that would do is worked out…</p>;
	return <div class="effect" aria-live="polite" aria-busy={stale}>
		{shown.problem && <Wrong problem={shown.problem} />}
		{shown.problem && shown.pending.length > 0 && <p>It may be otherwise when this has ended: {shown.pending.slice(0, 5).map((j) => <a key={j} href={"/jobs/" + j} data-in>job {j} </a>)}{shown.pending.length > 5 && `and ${shown.pending.length - 5} more`}</p>}
		{shown.rule && <div class="warning">{shown.rule}</div>}
		{shown.says.length > 0 && <ul class="says">{shown.says.map((s, i) => <li key={i} class="words">{typeof s === "string" ? s : JSON.stringify(s)}</li>)}</ul>}
		{shown.steps.length > 0 && <ol class="steps">{shown.steps.map((s) => <li key={s.step}><State of={s.state} /> {s.text}{s.node && <span class="faint"> on {s.node}</span>}</li>)}</ol>}
		{!shown.problem && shown.steps.length === 0 && shown.says.length === 0 && <p>Nothing is known against it.</p>}
		{shown.placement && <Placement p={shown.placement} />}
	</div>;
}

const mostNodes = 20;

function Placement({ p }: { p: Placed }) {
	return <div class="placement">
		<p class="sentence">{p.node ? <>It would go to <b>{p.node}</b>: {p.why}</> : <b>No node fits: {p.why}</b>}</p>
		<ul class="rows">{p.nodes.slice(0, mostNodes).map((n) => <li key={n.node} data-id={n.node}><span>{n.rank > 0 ? <b>{n.rank}. {n.node}</b> : n.node} <span class="faint">{n.text}</span></span>{n.rank === 0 && <span class="state s-error">{n.fails}</span>}</li>)}</ul>
		{p.nodes.length > mostNodes && <p class="faint">and {p.nodes.length - mostNodes} more nodes</p>}
		{p.mirror && <><p>The second copy of its disks:</p><Placement p={p.mirror} /></>}
	</div>;
}

/** A dialog that shows what an operation would do, asks why, and has it done. */
function Asking({ o, item, name, uuid, close }: { o: Operation; item: string; name: string; uuid: string; close: () => void }) {
	const box = useRef<HTMLDialogElement>(null);
	const [was] = useState(uuid); // what was shown when it was opened
	const [key] = useState(newKey);
	const why = useWhy();
	const [given, setGiven] = useState<Record<string, string>>({});
	const [typed, setTyped] = useState("");
	const [wrong, setWrong] = useState<Problem>();
	const [busy, setBusy] = useState(false);
	const field = useRef<HTMLInputElement>(null);
	useEffect(() => { box.current!.showModal(); field.current?.focus(); }, []);
	const wish = { name, uuid: was, given, reason: why.text };
	const seen = useShown(item, o.name, wish);
	const send = async (e: Event) => {
		e.preventDefault();
		setBusy(true);
		setWrong(undefined);
		try {
			const out = await ask<{ job: number }>("POST", `/api/operations/${item}/${o.name}`, { ...wish, typed, key });
			why.keep();
			box.current?.close(); // the thing may be gone by now, and its screen
			go("/jobs/" + out.job);
		} catch (e) {
			setWrong(problemOf(e));
			setBusy(false);
		}
	};
	return <dialog ref={box} onClose={close} aria-label={o.title + " " + name}>
		<form method="dialog" onSubmit={send}>
			<h2>{o.title} {name}?</h2>
			<p>{o.doc}</p>
			<div class="editor"><Answers asks={o.asks} given={given} set={setGiven} /></div>
			<Outlook {...seen} />
			{seen.shown && <Command text={seen.shown.command} />}
			<Why of={why} field={field} />
			{o.destroys && <label>Type its name: what is taken away does not come back.<input name="typed" required value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autocomplete="off" spellcheck={false} /></label>}
			{wrong && <Wrong problem={wrong} />}
			<div class="buttons">
				<button type="button" onClick={() => box.current!.close()}>Leave it</button>
				<button class="first" disabled={busy || line.value !== "live" || seen.stale || !seen.shown || (o.destroys && typed !== name)}>{o.title}</button>
			</div>
		</form>
	</dialog>;
}
