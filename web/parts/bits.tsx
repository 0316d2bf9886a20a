// Small parts that several screens have.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../session";
import { now, type Row } from "../stream";

/** A problem, with what to do about it. */
export function Wrong({ problem }: { problem: Problem }) {
	return <div class="wrong" role="alert"><b>{problem.message}</b>{problem.hint && <div>{problem.hint}</div>}</div>;
}

const signs: Record<string, string> = {
	queued: "◌", waiting: "◔", running: "▸", canceling: "⊘", canceled: "⊘", success: "✓", error: "✕",
	PENDADD: "◔", PENDDEL: "◔", ACTIVE: "✓", SHUTOFF: "·", BUILD: "▸", ERROR: "✕", given: "◔", held: "◔", begun: "▸", ready: "✓", tolerated: "✓", blocked: "⊘", stopped: "⊘", stopping: "⊘", skipped: "–",
	planned: "◌", done: "✓", undone: "↶", left: "!", problem: "✕", note: "!", ok: "✓",
};

/** A state: a sign, a word and a colour. */
export function State({ of }: { of: string }) {
	const kind = of.startsWith("ERROR_") ? "error" : of.startsWith("ADMIN") || of.startsWith("USER") ? "canceled" : of;
	return <span class={"state s-" + kind}><span aria-hidden="true">{signs[kind] ?? "·"}</span> {of}</span>;
}

/** A moment as the controller writes it: seconds, microseconds or nanoseconds, which their sizes tell apart, [seconds, microseconds], or RFC 3339. */
export function moment(v: any): number | undefined {
	if (v === undefined || v === null || v === 0) return undefined;
	if (typeof v === "number") return v > 1e17 ? v / 1e6 : v > 1e14 ? v / 1e3 : v * 1000;
	if (typeof v === "string") { const t = Date.parse(v); return isNaN(t) ? undefined : t; }
	if (Array.isArray(v) && typeof v[0] === "number") return v[0] * 1000 + (v[1] ?? 0) / 1000;
	return undefined;
}

/** A length of time in the largest unit that it fills twice. */
export function lasting(ms: number): string {
	for (const [length, unit] of [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"]] as const) if (ms >= 2 * length) return Math.floor(ms / length) + " " + unit;
	if (ms >= 10_000) return Math.floor(ms / 1000) + " s";
	return ms >= 1000 ? (ms / 1000).toFixed(1) + " s" : Math.max(Math.round(ms), 0) + " ms";
}

/** Both ways to write a moment. */
export const both = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, "Z") + "\n" + new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });

/** A moment as how long it is ago. */
export function Ago({ at, bare }: { at: any; bare?: boolean }) {
	const t = moment(at);
	if (t === undefined) return <span class="faint">–</span>;
	const d = now.value - t;
	const text = d < 1500 && d > -1500 ? "now" : d < 0 ? "in " + lasting(-d) : Math.abs(d) < 2000 ? "1 s" : lasting(d < 10_000 ? Math.floor(d / 1000) * 1000 : d).replace(".0", "");
	return <time dateTime={new Date(t).toISOString()} title={both(t)}>{text}{!bare && text !== "now" && d > 0 ? " ago" : ""}</time>;
}

/** A text as shells take it for one word: whoever copies a command types what others have named. */
export const quoted = (text: string): string => /^[A-Za-z0-9._][A-Za-z0-9._-]*$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";

/** A command to copy. */
export function Command({ text, quiet, name }: { text: string; quiet?: boolean; name?: string }) {
	const [copied, setCopied] = useState(false);
	if (text === "") return null;
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(text);
		} catch { // no right to, or no secure connection
			const area = document.createElement("textarea");
			area.value = text;
			document.body.append(area);
			area.select();
			document.execCommand("copy");
			area.remove();
		}
		setCopied(true);
		setTimeout(() => setCopied(false), 1500);
	};
	return <button type="button" class={quiet ? "command quiet" : "command"} onClick={copy} title={"Copy: " + text}>
		{name ?? <code>{text}</code>}<span aria-live="polite">{copied ? "copied" : "copy"}</span>
	</button>;
}

/** A sentence of the controller, in which commands in parentheses can be copied. */
export function Sentence({ text }: { text: string }) {
	return <>{text.split(/(\(drover [^()]*\))/).map((part, i) => i % 2 === 1 ? <Command key={i} text={part.slice(1, -1)} quiet /> : <span key={i}>{part}</span>)}</>;
}

/** What a cell has in place of a value. */
export function missing(row: Row, name: string): string {
	return ["", "no such field", "not known now", "", "node offline"][row.cell(name)[0]] ?? "";
}

/** A cell as text. */
export function cellText(row: Row, name: string): string {
	const v = row.value(name);
	if (v === undefined || v === null) return "";
	if (Array.isArray(v)) return v.map((x) => x === null ? "-" : typeof x === "object" ? JSON.stringify(x) : String(x)).join(", ");
	return typeof v === "object" ? JSON.stringify(v) : String(v);
}

/** Mebibytes as people read them. */
export function size(mib: any): string {
	if (typeof mib !== "number") return "–";
	for (const [unit, name] of [[1024 * 1024, "TiB"], [1024, "GiB"]] as const) if (mib >= unit) return (mib / unit).toFixed(mib % unit === 0 ? 0 : 1) + " " + name;
	return mib + " MiB";
}

/** How much of something is used. */
export function Meter({ used, of, label }: { used: number; of: number; label: string }) {
	const share = of > 0 ? Math.min(used / of, 1) : 0;
	return <span class="meter" role="img" aria-label={label} title={label}><span class={share > 0.9 ? "full" : ""} style={{ width: Math.round(share * 100) + "%" }} /></span>;
}

/** What people said, of a reason as one text, without the hops that programs added; all of it is told on hover. */
export function Said({ text }: { text: string }) {
	const own = text.startsWith("gnt:user: ") ? text.slice("gnt:user: ".length) : text;
	const end = own.search(/(^|; )(gnt:|luxid)/);
	return <span title={text}>{end < 0 ? own : own.slice(0, end)}</span>;
}

/** A part of a screen. */
export function Part({ title, aside, command, children, id }: { title: ComponentChildren; aside?: ComponentChildren; command?: string; children: ComponentChildren; id?: string }) {
	return <section class="part" id={id}>
		<header><h2>{title}</h2>{aside}{command ? <Command text={command} quiet /> : null}</header>
		{children}
	</section>;
}

/** What is said where there is nothing: why, and what to do first. */
export function Empty({ children }: { children: ComponentChildren }) { return <div class="empty">{children}</div>; }

/** The texts of a job, as one. */
export const summary = (row: Row): string => cellText(row, "summary").replaceAll("), ", "),  ");
