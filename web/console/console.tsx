// A console of an instance: somebody says why, sits down, and is told what becomes of it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Command, Part, State, Wrong } from "../parts/bits";
import { useWhy, Why } from "../parts/act";
import { useReady } from "../parts/frame";
import { ask, type Problem, problemOf, Refused, who } from "../session";
import { useView } from "../stream";
import type { Seat, SitDown, Turn } from "./seat";

interface Kind {
	/** Its name in the controller's words, and in ours. */
	name: string;
	title: string;
	/** The module that shows it. */
	load: () => Promise<{ sitDown: SitDown }>;
	command: (id: string) => string;
	/** What is to be known before, and which keys the page keeps. */
	about: ComponentChildren;
	keys: string;
	/** What is left of it when the connection is lost. */
	left: string;
}

const serial: Kind = {
	name: "serial", title: "Serial line", load: () => import("./terminal"), command: (id) => "drover instance console " + id,
	about: <p>It shows what the machine printed last, and sends it what you type. Several may look, and one types: whoever pressed a key first, until they leave.</p>,
	keys: "Ctrl-] leaves the terminal. Ctrl-Shift-C copies what is selected, Ctrl-Shift-V pastes.",
	left: " What was shown last is below, and the last 64 KiB are kept.",
};

const screen: Kind = {
	name: "novnc", title: "Screen", load: () => import("./screen"), command: () => "",
	about: <p>It shows what the machine draws, and sends it keys and pointer. Several may look, and all of them may type: the machine does not tell them apart.</p>,
	keys: "Ctrl-] leaves the screen.",
	left: "",
};

/** Why a console is over, in words, with what to do. */
function ending(id: string, kind: Kind, opened: boolean, code: number, reason: string): { title: string; todo: ComponentChildren } {
	if (!opened) return { title: "The console was not opened.", todo: "Its ticket may be over, or the controller does not answer. Open it again." };
	if (code === 1000) return { title: "The machine has ended.", todo: <>This starts it: <Command text={"drover instance start " + id} /></> };
	if (code === 1001) return { title: "The controller ends, or leads no more.", todo: "Open it again when the page is live." };
	if (reason !== "") return { title: "The console was ended: " + reason + ".", todo: "Open it again, if it is still to be looked at." };
	return { title: "The connection is lost.", todo: "Open it again when the page is live." + kind.left };
}

type Step = "asks" | "opening" | "open" | "over";

function Console({ id, kind }: { id: string; kind: Kind }) {
	const instance = useView({ view: "instance", id });
	useReady(instance.known);
	const [step, setStep] = useState<Step>("asks");
	const [wrong, setWrong] = useState<Problem>();
	const [end, setEnd] = useState<ReturnType<typeof ending>>();
	const [turn, setTurn] = useState<Turn>();
	const [lost, setLost] = useState("");
	const [left, setLeft] = useState(0);
	const [size, setSize] = useState<[number, number]>();
	const [aloud, setAloud] = useState(false);
	const why = useWhy();
	const into = useRef<HTMLDivElement>(null), leave = useRef<HTMLButtonElement>(null), again = useRef<HTMLButtonElement>(null);
	const seat = useRef<Seat>();
	useEffect(() => () => seat.current?.leave(), []);
	useEffect(() => { if (step === "over") again.current?.focus(); }, [step]);

	const open = async (e: Event) => {
		e.preventDefault();
		seat.current?.leave();
		seat.current = undefined;
		setWrong(undefined); setEnd(undefined); setTurn(undefined); setLost(""); setLeft(0); setAloud(false);
		setStep("opening");
		try {
			const { sitDown } = await kind.load().catch(() => { throw new Refused(0, { code: "unavailable", message: "what shows the console cannot be loaded", hint: "load the page anew: the controller does not answer, or has a newer version of it" }); });
			const { path } = await ask<{ path: string }>("POST", `/api/instances/${encodeURIComponent(id)}/console`, { console: kind.name, reason: why.text });
			if (!into.current) return; // somebody has gone on
			why.keep();
			let opened = false;
			const mine = seat.current = sitDown(into.current, (location.protocol === "https:" ? "wss://" : "ws://") + location.host + path, {
				opened: () => { opened = true; setStep("open"); mine.focus(); },
				turn: (t) => { setTurn(t); if (!t.who) setLost(""); },
				refused: setLost,
				leftOut: (n) => setLeft((was) => was + n),
				size: (columns, rows) => setSize([columns, rows]),
				escapes: (e) => e.ctrlKey && e.key === "]",
				escaped: () => leave.current?.focus(),
				ended: (code, reason) => { setEnd(ending(id, kind, opened, code, reason)); setStep("over"); },
			});
		} catch (e) {
			setWrong(problemOf(e));
			setStep("asks");
		}
	};
	const stop = () => {
		seat.current?.leave();
		seat.current = undefined;
		setTurn(undefined); setLost(""); setSize(undefined);
		setStep("asks");
	};

	const r = instance.rows[0];
	const title = <h1><a href={"/instances/" + id} data-in>{id}</a> {kind.title} {r && <State of={r.text("status")} />}</h1>;
	if (instance.error) return <main>{title}<Wrong problem={instance.error} /></main>;
	if (instance.known && !r) return <main class="message"><h1>There is no instance {id}</h1><p><a href="/instances" data-in>All instances</a></p></main>;
	if (!who.value!.change) return <main class="message">{title}<p>The account {who.value!.account} may look and change nothing, and who sits before a console may. An account with <code>write</code> in its line of the users file opens it.</p></main>;
	const taken = turn?.who && !turn.yours;
	const down = r && r.text("status") !== "running";
	return <main class="console" data-id={id} aria-busy={!instance.known || step === "opening"}>
		<div class="head">{title}<Command text={kind.command(id)} quiet /></div>
		{down && <div class="warning" role="status">The machine does not run{kind === serial ? ": what it printed last is all that there is" : ""}. <Command text={"drover instance start " + id} /></div>}
		{step === "asks" || step === "opening" ? <Part title="Open it">
			{kind.about}
			<p class="faint">{kind.keys}</p>
			<form class="opens" onSubmit={open}>
				<Why of={why} />
				<button class="first" disabled={step === "opening"}>{step === "opening" ? "It is opened…" : "Open the console"}</button>
			</form>
			{wrong && <Wrong problem={wrong} />}
		</Part> : <div class="sits">
			{step === "open" ? <button type="button" ref={leave} onClick={stop}>Leave</button> : <button type="button" class="first" ref={again} onClick={open}>Open it again</button>}
			{step === "open" && taken && <button type="button" onClick={() => { setLost(""); seat.current?.take?.(); seat.current?.focus(); }}>Take the keyboard over</button>}
			{step === "open" && seat.current?.ctrlAltDel && <button type="button" onClick={() => { seat.current?.ctrlAltDel?.(); seat.current?.focus(); }}>Ctrl-Alt-Del</button>}
			{step === "open" && seat.current?.type && <Typed type={seat.current.type} focus={() => seat.current?.focus()} />}
			{step === "open" && seat.current?.readAloud && <label class="check"><input type="checkbox" checked={aloud} onChange={(e) => { setAloud(e.currentTarget.checked); seat.current?.readAloud?.(e.currentTarget.checked); }} /> Read aloud</label>}
			<span class="faint keys">{kind.keys}{size && ` ${size[0]} columns, ${size[1]} rows`}</span>
			{size && size[0] !== 80 && <Command text={`stty cols ${size[0]} rows ${size[1]}`} name="Size, for a shell there:" quiet />}
		</div>}
		{end && <div class="wrong" role="alert"><b>{end.title}</b><div>{end.todo}</div></div>}
		{step === "open" && <div role="status" class="told">
			{taken && <p class="warning">{turn!.who} types{turn!.from ? " from " + turn!.from : ""}, and you look.</p>}
			{lost && <p class="warning">Not typed: {lost}</p>}
			{left > 0 && <p class="warning">{left} bytes came faster than they could be shown, and are left out.</p>}
		</div>}
		<div class="seat" key="seat" ref={into} hidden={step === "asks"} role="group" aria-label={kind.title + " of " + id} onKeyDown={(e) => e.stopPropagation()} />
	</main>;
}

/** A text that is typed as keys: there is no clipboard that the machine has, too. */
function Typed({ type, focus }: { type: (text: string) => Promise<void>; focus: () => void }) {
	const [open, setOpen] = useState(false);
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState("");
	const field = useRef<HTMLInputElement>(null);
	useEffect(() => { if (open) field.current?.focus(); }, [open]);
	if (!open) return <button type="button" onClick={() => setOpen(true)}>Type a text…</button>;
	const send = async (e: Event) => {
		e.preventDefault();
		setBusy(true);
		setWrong("");
		try {
			await type(field.current!.value);
			setOpen(false);
			focus();
		} catch (problem) {
			setWrong(problem instanceof Error ? problem.message : String(problem));
		}
		setBusy(false);
	};
	return <form class="types" onSubmit={send}>
		<input ref={field} aria-label="Text to type, as on a US keyboard" placeholder="Text to type, as on a US keyboard" required autocomplete="off" spellcheck={false} /><button disabled={busy}>{busy ? "It is typed…" : "Type it"}</button><button type="button" onClick={() => setOpen(false)}>Close</button>
		{wrong && <span class="wrong" role="alert">{wrong}</span>}
	</form>;
}

export const SerialScreen = ({ id }: { id: string }) => <Console id={id} kind={serial} key={"serial/" + id} />;
export const ScreenScreen = ({ id }: { id: string }) => <Console id={id} kind={screen} key={"screen/" + id} />;
