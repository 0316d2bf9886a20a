// What the last six hours were like: how many jobs came and ended, and how long they waited, by spans of ten minutes.
import { to } from "../address";
import { lasting, Part, Wrong } from "../parts/bits";
import { now, type Row, useView } from "../stream";

const SPAN = 600; // seconds, as the views have it
const COLUMNS = 36;

/** A piece of a column: how high, what it is called, its colour, and where it leads. */
interface Piece { n: number; of: string; kind: string; href?: string }
interface Column { at: number; pieces: Piece[] }

/** The rows of a view by the span that they are of. */
function spans(rows: Row[], field: string): Map<number, Row[]> {
	const out = new Map<number, Row[]>();
	for (const r of rows) out.set(r.value(field), [...(out.get(r.value(field)) ?? []), r]);
	return out;
}

export function Hours() {
	const came = useView({ view: "now.hours.came" });
	const ended = useView({ view: "now.hours.ended" });
	const waited = useView({ view: "now.hours.waited" });
	const wrong = came.error ?? ended.error ?? waited.error;
	if (wrong) return <Wrong problem={wrong} />;
	const last = Math.floor(now.value / 1000 / SPAN) * SPAN;
	const times = Array.from({ length: COLUMNS }, (_, i) => last - (COLUMNS - 1 - i) * SPAN);
	const columns = (rows: Row[], field: string, pieces: (rows: Row[], at: number) => Piece[]): Column[] => {
		const by = spans(rows, field);
		return times.map((at) => ({ at, pieces: pieces(by.get(at) ?? [], at) }));
	};
	const sum = (rows: Row[], status?: string): number => rows.filter((r) => !status || r.text("status") === status).reduce((n, r) => n + r.value("count"), 0);
	const jobs = (n: number): string => n.toLocaleString() + (n === 1 ? " job" : " jobs");
	return <div class="hours">
		<Chart title="Jobs that came" command={came.command} text={jobs} columns={columns(came.rows, "received_ts/10m", (rows) => [{ n: sum(rows), of: "came", kind: "run" }])} />
		<Chart title="Jobs that ended" command={ended.command} text={jobs} columns={columns(ended.rows, "end_ts/10m", (rows, at) => [
			{ n: sum(rows, "success"), of: "succeeded", kind: "good" },
			{ n: sum(rows, "canceled"), of: "were canceled", kind: "other" },
			{ n: sum(rows, "error"), of: "failed", kind: "bad", href: to("/jobs", { filter: `status == "error" and end_ts >= ${at} and end_ts < ${at + SPAN}` }) }])} />
		<Chart title="How long until they began" command={waited.command} each text={(s) => lasting(s * 1000)} columns={columns(waited.rows, "start_ts/10m", (rows) => {
			const mean = rows[0]?.value("avg(begun_after)") ?? 0, most = rows[0]?.value("max(begun_after)") ?? 0;
			return [{ n: mean, of: "on average", kind: "wait" }, { n: most - mean, of: "more at most", kind: "longest" }];
		})} />
	</div>;
}

const clock = (at: number): string => new Date(at * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

/** Columns on one scale, the highest of which is told, of all jobs of its span together or of each; every one tells what it is of on hover. */
function Chart({ title, command, columns, text, each }: { title: string; command: string; columns: Column[]; text: (n: number) => string; each?: boolean }) {
	const height = (c: Column): number => c.pieces.reduce((n, p) => n + p.n, 0);
	const most = columns.reduce((a, b) => height(b) > height(a) ? b : a);
	const top = height(most);
	const told = (c: Column): string => clock(c.at) + " to " + clock(c.at + SPAN) + ": " + (c.pieces.filter((p) => p.n > 0).map((p) => text(p.n) + " " + p.of).join(", ") || "nothing");
	const summary = top > 0 ? "at most " + text(top) + (each ? "" : " in ten minutes") : "nothing within six hours";
	const leads = columns.some((c) => c.pieces.some((p) => p.n > 0 && p.href));
	return <Part title={title} command={command}>
		<svg viewBox={"0 0 " + COLUMNS + " 40"} preserveAspectRatio="none" role={leads ? "group" : "img"} aria-label={title + ", " + summary}>
			{columns.map((c, i) => {
				let below = 0;
				return <g key={c.at}>
					<rect x={i} y={0} width={1} height={40} class="behind"><title>{told(c)}</title></rect>
					{top > 0 && c.pieces.filter((p) => p.n > 0).map((p) => {
						const high = Math.max(40 * p.n / top, 0.8);
						const bar = <rect x={i + 0.08} y={40 - below - high} width={0.84} height={high} class={"c-" + p.kind}><title>{told(c)}</title></rect>;
						below += high;
						return p.href ? <a key={p.of} href={p.href} data-in aria-label={told(c)}>{bar}</a> : bar;
					})}
				</g>;
			})}
		</svg>
		<div class="faint scale"><span>{clock(columns[0]!.at)}</span><span>{summary}</span><span>now</span></div>
	</Part>;
}
