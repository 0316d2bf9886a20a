// The tasks of a deployment as a graph. Where each stands was worked out by the controller.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

export interface Drawing { layers: number; height: number; points: { layer: number; y: number }[]; lines: { from: number; to: number; between?: { layer: number; y: number }[] }[] }
export interface Plan { tasks: string[]; drawing: Drawing; groups: Group[] }
export interface Group { task: string; nodes: string[]; roles: { name: string; nodes: number }[] | null; reasons: { why: string; nodes: string[] }[] }
export interface Sum { task: string; state: string; nodes: number; runs: number; passed: number; failed: number; running: number }

const across = 214, down = 42, wide = 176, high = 30, letters = 23;

/** Those that a task is on a way with: what comes before it and what behind it. */
function ways(plan: Plan, task: number): Set<number> {
	const found = new Set([task]);
	for (const [from, to] of [["from", "to"], ["to", "from"]] as const) {
		const work = [task];
		for (let at = work.pop(); at !== undefined; at = work.pop()) for (const l of plan.drawing.lines) if (l[from] === at && !found.has(l[to])) { found.add(l[to]); work.push(l[to]); }
	}
	return found;
}

const far = (s: Sum): string => s.state + (s.runs > 0 ? `, ${s.passed} of ${s.runs} nodes` : "");

/** The tasks as a graph; tells says of each how it is. */
export function Graph({ plan, sums, chosen, choose, tells = far }: { plan: Plan; sums: Sum[]; chosen: string; choose: (task: string) => void; tells?: (s: Sum) => string }) {
	const box = useRef<HTMLDivElement>(null);
	const [zoom, setZoom] = useState(1);
	const d = plan.drawing;
	const x = (layer: number) => 16 + layer * across, y = (at: number) => 12 + at * down;
	const at = plan.tasks.indexOf(chosen);
	const near = useMemo(() => at < 0 ? undefined : ways(plan, at), [plan, at]);
	const lines = useMemo(() => d.lines.map((l, i) => {
		const [a, b] = [d.points[l.from], d.points[l.to]];
		const steps = [...(l.between ?? []), b];
		let from = x(a.layer) + wide, path = `M${from} ${y(a.y) + high / 2}`;
		for (const p of steps) {
			const to = x(p.layer), h = y(p.y) + high / 2;
			path += `C${from + 18} ${path.slice(path.lastIndexOf(" ") + 1)} ${to - 18} ${h} ${to} ${h}`;
			from = to + wide;
			if (p !== b) path += `L${from} ${h}`;
		}
		return <path key={i} d={path} class={near && (near.has(l.from) && near.has(l.to) ? "way" : "pale")} />;
	}), [plan, near]);
	// At first it shows where the deployment is: what failed or runs, else what comes first.
	useEffect(() => {
		const states = new Map(sums.map((s) => [s.task, s.state]));
		const front = at >= 0 ? at : [["error"], ["running", "held", "given"], ["waiting", "blocked", "stopped"], ["ready"]].map((wanted) => plan.tasks.findIndex((t) => wanted.includes(states.get(t) ?? ""))).find((i) => i >= 0) ?? 0;
		const p = d.points[front];
		if (p && box.current) box.current.scrollTo(Math.max(x(p.layer) * zoom - box.current.clientWidth / 3, 0), Math.max(y(p.y) * zoom - box.current.clientHeight / 2, 0));
	}, [plan, zoom, at]);
	const width = x(d.layers) + 4, height = y(d.height) + 12;
	return <>
		<div class="tools" role="group" aria-label="Size of the graph">
			<button type="button" onClick={() => setZoom(Math.min(zoom * 1.25, 2))} aria-label="Larger">+</button><button type="button" onClick={() => setZoom(Math.max(zoom / 1.25, 0.1))} aria-label="Smaller">−</button>
			<button type="button" onClick={() => setZoom(Math.max(Math.min((box.current!.clientWidth - 20) / width, 1), 0.1))}>All of it</button>{chosen && <button type="button" onClick={() => choose("")}>All ways</button>}
			<span class="faint">{plan.tasks.length} tasks; what stands left of a line comes first. A click shows the ways to and from a task, and its nodes.</span>
		</div>
		<div class="graph" ref={box} tabIndex={0} role="group" aria-label="Graph of the tasks; the list below has them all">
			<svg width={width * zoom} height={height * zoom} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
				{lines}
				{sums.map((s, i) => { const p = d.points[i]; return p && <g key={s.task} data-task={s.task} class={"g-" + s.state + (i === at ? " chosen" : near && !near.has(i) ? " pale" : "")} onClick={() => choose(s.task === chosen ? "" : s.task)} transform={`translate(${x(p.layer)} ${y(p.y)})`}>
					<title>{s.task + ": " + tells(s)}</title><rect width={wide} height={high} rx={6} />
					<text x={9} y={20}>{s.task.length > letters ? s.task.slice(0, letters - 1) + "…" : s.task}</text>
				</g>; })}
			</svg>
		</div>
	</>;
}
