// What a job waits for, to the end of the line, and who waits for it: jobs, and the locks between them. Where each stands was worked out by the controller.
import { useEffect, useRef, useState } from "preact/hooks";
import { to } from "../address";
import { Part, State } from "../parts/bits";
import { useView } from "../stream";

interface Place { layer: number; y: number }
interface Point { job?: number; status?: string; summary?: string[]; why?: string; lock?: string; key?: string }
interface Link { from: number; to: number; kind: string; mode?: string }
interface Around { points: Point[]; links: Link[]; left_out: number; drawing: { layers: number; height: number; points: Place[]; lines: { from: number; to: number; between?: Place[] }[] } }

const verbs: Record<string, string> = { depends: "waits for the end of", met: "waited for", waits: "waits for", behind: "comes behind", needs: "will want", held: "is held by" };

const narrow = matchMedia("(max-width: 720px)");

/** How large boxes are, and how far apart: from left to right, or where that has no room, downwards. */
const sizes = { across: { wide: 206, high: 46, layer: 244, beside: 62 }, down: { wide: 158, high: 46, layer: 88, beside: 172 } };

export function AroundJob({ id }: { id: string }) {
	const { value, command } = useView({ view: "job.around", id });
	const [down, setDown] = useState(narrow.matches);
	useEffect(() => { const turn = () => setDown(narrow.matches); narrow.addEventListener("change", turn); return () => narrow.removeEventListener("change", turn); }, []);
	const a: Around | undefined = value;
	if (!a || a.points.length < 2) return null;
	return <Part id="around" title="What it waits for, and who waits for it" command={command}>
		<Picture of={a} down={down} />
		{a.left_out > 0 && <p class="faint">{a.left_out === 1 ? "One more job has or wants the same." : a.left_out + " more jobs have or want the same."}</p>}
		<details><summary>The same in words</summary><ul>{a.links.map((l, i) => <li key={i}><Name of={a.points[l.from]} /> {verbs[l.kind] ?? l.kind} <Name of={a.points[l.to]} />{l.mode ? ` (${l.mode})` : ""}</li>)}</ul></details>
	</Part>;
}

const address = (p: Point): string => p.job ? "/jobs/" + p.job : to("/query", { item: "lock", filter: `name == ${JSON.stringify(p.key)}` });

function Name({ of: p }: { of: Point }) {
	return <><a href={address(p)} data-in>{p.job ? "job " + p.job : "lock " + p.lock}</a>{p.status && <> <State of={p.status} /></>}{p.why && <span class="faint words"> {p.why}</span>}</>;
}

const short = (text: string, letters: number): string => text.length > letters ? text.slice(0, letters - 1) + "…" : text;

function Picture({ of: a, down }: { of: Around; down: boolean }) {
	const box = useRef<HTMLDivElement>(null);
	const s = down ? sizes.down : sizes.across;
	const x = (p: Place) => 8 + (down ? p.y * s.beside : p.layer * s.layer), y = (p: Place) => 8 + (down ? p.layer * s.layer : p.y * s.beside);
	const most = (of: (p: Place) => number) => Math.max(...a.drawing.points.map(of));
	const width = most(x) + s.wide + 12, height = most(y) + s.high + 12;
	const self = a.drawing.points[0];
	useEffect(() => { const b = box.current!; b.scrollTo(x(self) + s.wide / 2 - b.clientWidth / 2, y(self) + s.high / 2 - b.clientHeight / 2); }, [down, a.points.length]);
	// Where lines come to a box and leave it.
	const enter = (p: Place): [number, number] => down ? [x(p) + s.wide / 2, y(p)] : [x(p), y(p) + s.high / 2];
	const leave = (p: Place): [number, number] => down ? [x(p) + s.wide / 2, y(p) + s.high] : [x(p) + s.wide, y(p) + s.high / 2];
	const curve = ([ax, ay]: [number, number], [bx, by]: [number, number]) => down ? `C${ax} ${ay + 22} ${bx} ${by - 22} ${bx} ${by}` : `C${ax + 28} ${ay} ${bx - 28} ${by} ${bx} ${by}`;
	return <div class="graph around" ref={box} tabIndex={0} role="group" aria-label="Picture of what waits for what; the list below says the same">
		<svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label="Jobs and locks">
			{a.drawing.lines.map((l, i) => {
				const kind = a.links.find((k) => k.from === l.from && k.to === l.to || k.from === l.to && k.to === l.from)?.kind ?? "";
				let at = leave(a.drawing.points[l.from]), path = `M${at[0]} ${at[1]}`;
				for (const p of l.between ?? []) {
					path += curve(at, enter(p)) + `L${leave(p)[0]} ${leave(p)[1]}`;
					at = leave(p);
				}
				const end = enter(a.drawing.points[l.to]);
				return <g key={i} class={"l-" + kind}><path d={path + curve(at, end)} /><path class="head" d={`M${end[0]} ${end[1]}` + (down ? "l-4 -7h8z" : "l-7 -4v8z")} /></g>;
			})}
			{a.points.map((p, i) => <Box key={p.job ?? p.key} of={p} self={i === 0} at={a.drawing.points[i]} wide={s.wide} high={s.high} x={x} y={y} />)}
		</svg>
	</div>;
}

function Box({ of: p, self, at, wide, high, x, y }: { of: Point; self: boolean; at: Place; wide: number; high: number; x: (p: Place) => number; y: (p: Place) => number }) {
	const letters = Math.floor((wide - 18) / 6.9);
	const first = p.job ? `job ${p.job} · ${p.status ?? ""}` : "lock", second = p.job ? p.why || (p.summary ?? []).join(", ") : p.lock ?? "";
	const shape = <><title>{[p.job ? first : "lock " + p.lock, p.summary?.join(", "), p.why].filter(Boolean).join(": ")}</title><rect width={wide} height={high} rx={p.job ? 6 : 20} /><text x={12} y={19} class="first">{short(first, letters)}</text><text x={12} y={36}>{short(second, letters)}</text></>;
	const kind = p.job ? "g-" + p.status : "g-lock";
	const place = `translate(${x(at)} ${y(at)})`;
	return self ? <g class={kind + " chosen"} transform={place}>{shape}</g> : <a href={address(p)} data-in class={kind} transform={place}>{shape}</a>;
}
