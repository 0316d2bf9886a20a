// The one stream of this tab: it says which views are shown, and takes what is new in them.
import { batch, computed, signal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Problem, who } from "./session";

/** What is asked for; the names of views are those of the controller. */
export interface Ask { view: string; id?: string; filter?: string; sort?: string; limit?: number; item?: string; fields?: string; by?: string; figures?: string }

export interface Field { name: string; title: string; kind: string; doc: string }

/** A cell has a status, 0 for a value that is there, and the value. */
export type Cell = [number, any];

/** A row of a view. */
export class Row {
	constructor(readonly id: string, readonly cells: Cell[], private readonly places: Map<string, number>) {}
	cell(name: string): Cell { return this.cells[this.places.get(name) ?? -1] ?? [1, null]; }
	/** The value, undefined where there is none. */
	value(name: string): any { const c = this.cell(name); return c[0] === 0 ? c[1] : undefined; }
	text(name: string): string { const v = this.value(name); return v === undefined || v === null ? "" : String(v); }
}

/** What is known of a view. */
export interface Shown {
	known: boolean;
	fields: Field[];
	rows: Row[];
	value: any;
	command: string;
	error?: Problem;
	revision: string;
}

const nothing: Shown = { known: false, fields: [], rows: [], value: undefined, command: "", revision: "" };

interface Watch { ask: Ask; users: number; shown: Signal<Shown>; places: Map<string, number>; byID: Map<string, Row> }

const watches = new Map<string, Watch>();

export type Line = "opening" | "live" | "lost";

/** How the connection is; when something was heard last; whether there is a newer build of the page. */
export const line = signal<Line>("opening");
export const heard = signal(0);
export const newer = signal(false);
/** Why the controller ended the stream, if it said so. */
export const refusal = signal("");

/** How far the controller's clock is before this machine's, in milliseconds. */
let ahead = 0;
let build = "";
let socket: WebSocket | undefined;
let opened = 0; // when that was made
let failures = 0;
let retry: ReturnType<typeof setTimeout> | undefined;
let asking = false;

const silence = 40_000; // two heartbeats, and some

/** The time at the controller, once a second. */
export const now = signal(Date.now());
setInterval(() => {
	if (!document.hidden) now.value = Date.now() + ahead;
	if (socket && Date.now() - Math.max(heard.value, opened) > silence) socket.close();
}, 1000);

/** How old what is shown may be, in milliseconds. */
export const age = computed(() => Math.max(now.value - ahead - heard.value, 0));

/** Opens the stream, and again when it was lost, for as long as somebody is signed in. */
export function connect(): void {
	if (socket || !who.value) return;
	clearTimeout(retry);
	const s = new WebSocket((location.protocol === "https:" ? "wss://" : "ws://") + location.host + "/stream");
	socket = s;
	opened = Date.now();
	s.onmessage = (e) => {
		failures = 0;
		batch(() => {
			heard.value = Date.now();
			if (line.value !== "live") {
				line.value = "live";
				refusal.value = "";
				tell();
			}
			take(JSON.parse(e.data));
		});
	};
	s.onclose = (e) => {
		if (socket !== s) return;
		socket = undefined;
		if (e.code === 4401) {
			who.value = null;
			return;
		}
		if (line.value === "live" || failures > 0) line.value = "lost";
		refusal.value = e.reason;
		failures++;
		retry = setTimeout(check, Math.min(250 * 2 ** failures, 5000));
	};
}

/** Before it connects again it asks whether the session is still there: a refused stream does not say why. */
async function check(): Promise<void> {
	const answer = await fetch("/session").catch(() => undefined);
	if (answer?.status === 401) who.value = null;
	else connect();
}

export function disconnect(): void {
	const s = socket;
	socket = undefined;
	s?.close();
	clearTimeout(retry);
	failures = 0;
	line.value = "opening";
}

addEventListener("online", () => { if (!socket) connect(); });
document.addEventListener("visibilitychange", tell);

/** Tells the controller which views are shown, once for all that change together. */
function tell(): void {
	if (asking) return;
	asking = true;
	queueMicrotask(() => {
		asking = false;
		if (socket?.readyState !== WebSocket.OPEN) return;
		const watch: Record<string, Ask & { since: string }> = {};
		for (const [name, w] of watches) watch[name] = { ...w.ask, since: w.shown.value.error ? "" : w.shown.value.revision };
		socket.send(JSON.stringify({ watch, hidden: document.hidden }));
	});
}

function take(m: any): void {
	if (m.beat) {
		ahead = Date.parse(m.beat) - Date.now();
		if (build === "") build = m.version;
		newer.value = build !== m.version;
		return;
	}
	const w = watches.get(m.w);
	if (!w) return;
	const was = w.shown.value;
	if (m.error) {
		w.shown.value = { ...was, known: true, error: m.error };
		return;
	}
	if (m.value !== undefined) {
		w.shown.value = { ...was, known: true, error: undefined, value: m.value, command: m.command ?? was.command, revision: m.revision };
		return;
	}
	if (m.reset) {
		w.byID = new Map();
		w.places = new Map((m.fields as Field[]).map((f, i) => [f.name, i]));
	}
	let order = m.reset ? [] : was.rows.map((r) => r.id);
	if (m.left) {
		for (const id of m.left) w.byID.delete(id);
		order = order.filter((id) => w.byID.has(id));
	}
	for (const [id, cells] of m.rows ?? []) {
		if (!w.byID.has(id)) order.push(id);
		w.byID.set(id, new Row(id, cells, w.places));
	}
	if (m.order) order = m.order;
	w.shown.value = {
		known: true, error: undefined, fields: m.fields ?? was.fields, command: m.command ?? was.command, value: undefined, revision: m.revision,
		rows: order.map((id) => w.byID.get(id)!),
	};
}

/** Follows a view for as long as the component is there that calls it. */
export function useView(ask: Ask): Shown {
	const name = JSON.stringify(ask);
	let w = watches.get(name);
	if (!w) {
		w = { ask, users: 0, shown: signal(nothing), places: new Map(), byID: new Map() };
		watches.set(name, w);
	}
	const mine = w;
	useEffect(() => {
		watches.set(name, mine);
		mine.users++;
		tell();
		return () => {
			if (--mine.users === 0) {
				watches.delete(name);
				tell();
			}
		};
	}, [name]);
	return mine.shown.value;
}

/** useView of a list whose limit grows: while more rows are on their way, those that there are stay. */
export function useGrowing(ask: Ask): Shown {
	const shown = useView(ask), of = JSON.stringify({ ...ask, limit: 0 });
	const last = useRef({ of, shown });
	if (shown.known || last.current.of !== of) last.current = { of, shown };
	return last.current.shown;
}
