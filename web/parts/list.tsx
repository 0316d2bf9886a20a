// Lists of any length: a filter in the address, counts, and of the rows those that are seen.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, change, go, parameter, to } from "../address";
import { ask as request } from "../session";
import { type Field, type Row, type Shown, useGrowing, useView } from "../stream";
import { Command, Empty, Wrong } from "./bits";
import { useReady } from "./frame";

export interface Column { title: string; doc?: string; field?: string; class?: string; show: (r: Row) => ComponentChildren }

interface Titled {
	title: string;
	columns: Column[];
	name: (r: Row) => string;
	href?: (r: Row) => string;
}

interface Wish extends Titled {
	view: string;
	/** Of which kind of item the fields are that the filter knows. */
	item: string;
	/** Filters that are often wanted. */
	chips: [string, string][];
	empty: ComponentChildren;
	/** What can be done with all that the filter lets through. */
	actions?: ComponentChildren;
}

const most = 2000;
const height = 44;

/** A screen that is a list. */
export function List(w: Wish) {
	const filter = parameter("filter"), sort = parameter("sort");
	const [limit, setLimit] = useState(200);
	const shown = useGrowing({ view: w.view, filter, sort, limit });
	const counts = useView({ view: w.view + ".count", filter });
	useReady(shown.known);
	const all = counts.rows.reduce((n, r) => n + (r.value("count") ?? 0), 0);
	return <main class="list">
		<div class="head"><h1>{w.title}</h1><span class="faint" role="status">{counts.error ? counts.error.message : counts.known ? all.toLocaleString() + (filter ? " fit" : "") : ""}
			{counts.rows.map((r) => r.cells.length > 1 && <span key={r.id}> · {String(r.cells[0]?.[1] ?? "")} {r.value("count")?.toLocaleString()}</span>)}</span>{w.actions}<Command text={shown.command} quiet /></div>
		<Filter item={w.item} value={filter} error={shown} />
		<div class="chips" role="group" aria-label="Often wanted">{w.chips.map(([name, f]) => <a key={name} href={to(address.value.pathname, { filter: f, sort })} data-in aria-current={f === filter ? "true" : undefined}>{name}</a>)}</div>
		<Rows w={w} shown={shown} all={all} more={() => shown.rows.length >= limit && limit < most && setLimit(Math.min(limit * 2, most))} />
		{shown.known && !shown.error && shown.rows.length === 0 && (filter ? <Empty><p>Nothing fits the filter.</p><p><a href={address.value.pathname} data-in>Show all</a></p></Empty> : <Empty>{w.empty}</Empty>)}
		{shown.rows.length >= most && <p class="faint">The first {most.toLocaleString()} are shown; a filter brings others up.</p>}
	</main>;
}

/** How many rows of a list are shown at most. */
export const mostRows = most;

/** The rows of a list, sorted by a click on a title. */
export function Rows({ w, shown, all, more, wide }: { w: Titled; shown: Shown; all: number; more: () => void; wide?: boolean }) {
	const sort = parameter("sort");
	const sorted = (c: Column) => c.field ? (sort === c.field ? "ascending" : sort === "-" + c.field ? "descending" : "none") : undefined;
	const sortBy = (c: Column) => go(change({ sort: sort === c.field ? "-" + c.field : sort === "-" + c.field ? "" : c.field! }));
	const box = useRef<HTMLDivElement>(null);
	const [first, setFirst] = useState(0);
	const [fit, setFit] = useState(30);
	useEffect(() => {
		const b = box.current;
		if (!b) return;
		const look = () => {
			setFirst(Math.floor(b.scrollTop / height));
			setFit(Math.ceil(b.clientHeight / height) + 1);
			if (b.scrollTop + b.clientHeight > b.scrollHeight - 20 * height) more();
		};
		look();
		b.addEventListener("scroll", look, { passive: true });
		const o = new ResizeObserver(look);
		o.observe(b);
		return () => { b.removeEventListener("scroll", look); o.disconnect(); };
	}, [shown.rows.length]);
	const from = Math.max(first - 5, 0);
	const part = shown.rows.slice(from, first + fit + 5);
	if (shown.rows.length === 0) return null;
	return <div class={wide ? "table wide-table" : "table"} role="table" aria-label={w.title} aria-rowcount={all + 1} style={{ "--columns": w.columns.length }}>
		<div class="titles" role="row" aria-rowindex={1}>{w.columns.map((c) => <div key={c.title} role="columnheader" class={c.class} aria-sort={sorted(c)}>
			{c.field ? <button type="button" title={c.doc} onClick={() => sortBy(c)}>{c.title}<span aria-hidden="true">{{ ascending: " ↑", descending: " ↓" }[sorted(c) as string] ?? ""}</span></button> : c.title}
		</div>)}</div>
		<div class="window" ref={box} role="rowgroup" tabIndex={0} aria-label={w.title + ", rows"}>
			<div role="presentation" class="long" style={{ height: shown.rows.length * height + "px" }}>
				{part.map((r, i) => <div key={(from + i) % 200} role="row" class="row" data-id={w.name(r)} aria-rowindex={from + i + 2} style={{ transform: `translateY(${(from + i) * height}px)` }} onClick={(e) => w.href && !(e.target as Element).closest("a, button") && getSelection()?.isCollapsed !== false && go(w.href(r))}>
					{w.columns.map((c) => <div key={c.title} role="cell" class={c.class}>{c.show(r)}</div>)}
				</div>)}
			</div>
		</div>
	</div>;
}

const fieldsOf = new Map<string, Promise<Field[]>>();

export function fields(item: string): Promise<Field[]> {
	let found = fieldsOf.get(item);
	if (!found) {
		found = request<Field[]>("GET", "/api/fields/" + item).catch(() => { fieldsOf.delete(item); return []; });
		fieldsOf.set(item, found);
	}
	return found;
}

/** What may be put in place of the letters before the caret. */
interface Offer { name: string; note: string; put: string; letters: number }

/** A field, a comparison, and the beginning of a value. */
const comparison = /([A-Za-z_][\w./]*)\s*(?:==|!=|<=?|>=?)\s*("[^"]*|[^\s"()]*)$/;

interface Boxed {
	item: string;
	value: string;
	label: string;
	placeholder: string;
	class?: string;
	/** What stands behind a field that was chosen. */
	after: string;
	/** Whether values are completed behind comparisons. */
	values?: boolean;
	id: string;
	commit: (text: string) => void;
}

/** A text with names of fields in it: completed with those that there are as one types, and what each means; and with the values that a field has. */
export function Completed({ item, value, label, placeholder, class: kind, after, values, id, commit }: Boxed) {
	const [text, setText] = useState(value);
	const [found, setFound] = useState<Offer[]>([]);
	const [chosen, setChosen] = useState(0);
	const input = useRef<HTMLInputElement>(null);
	const asked = useRef<AbortController>();
	useEffect(() => setText(value), [value]);
	const offers = async (before: string, gone: AbortSignal): Promise<Offer[]> => {
		const compared = values && comparison.exec(before);
		if (compared) {
			const [, field, typed] = compared;
			if (!(await fields(item)).some((f) => f.name === field)) return [];
			await new Promise((later) => setTimeout(later, 100)); // who types on asks again
			if (gone.aborted) return [];
			const all = await request<{ text: string; count: number }[]>("GET", `/api/values/${item}?` + new URLSearchParams({ field, typed: typed.replace(/^"/, "") }), undefined, gone).catch(() => []);
			return all.filter((v) => v.text !== typed).map((v) => ({ name: v.text, note: v.count.toLocaleString(), put: v.text + " ", letters: typed.length }));
		}
		const w = /[A-Za-z_][\w./]*$/.exec(before)?.[0].toLowerCase() ?? "";
		const all = w === "" ? [] : (await fields(item)).filter((f) => f.name.toLowerCase().includes(w) && f.name !== w);
		all.sort((a, b) => Number(b.name.startsWith(w)) - Number(a.name.startsWith(w)));
		return all.slice(0, 8).map((f) => ({ name: f.name, note: f.kind + " · " + f.doc, put: f.name + after, letters: w.length }));
	};
	const suggest = async (text: string) => {
		asked.current?.abort();
		const mine = asked.current = new AbortController();
		const all = await offers(text.slice(0, input.current?.selectionStart ?? text.length), mine.signal);
		if (mine.signal.aborted) return;
		setFound(all);
		setChosen(0);
	};
	const put = (o: Offer) => {
		const at = input.current!.selectionStart!, end = at - o.letters + o.put.length;
		const next = text.slice(0, at - o.letters) + o.put + text.slice(at);
		setText(next);
		setFound([]);
		input.current!.focus();
		queueMicrotask(() => input.current!.setSelectionRange(end, end));
	};
	const send = (t: string) => { asked.current?.abort(); setFound([]); commit(t.trim()); };
	const key = (e: KeyboardEvent) => {
		if (found.length > 0 && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
			e.preventDefault();
			setChosen((chosen + (e.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
		} else if (found.length > 0 && e.key === "Tab" && !e.shiftKey) {
			e.preventDefault();
			put(found[chosen]);
		} else if (e.key === "Escape") {
			if (found.length > 0) setFound([]); else { setText(""); send(""); }
		} else if (e.key === "Enter") {
			e.preventDefault();
			send(text);
		}
	};
	return <span class="completed">
		<input ref={input} class={kind} type="text" spellcheck={false} autocomplete="off" autocapitalize="off" value={text} placeholder={placeholder}
			aria-label={label} role="combobox" aria-expanded={found.length > 0} aria-controls={id} aria-autocomplete="list" aria-activedescendant={found.length > 0 ? id + chosen : undefined}
			onInput={(e) => { setText(e.currentTarget.value); void suggest(e.currentTarget.value); }} onKeyDown={key} onBlur={() => { setTimeout(() => setFound([]), 200); }} />
		<ul id={id} class="completions" role="listbox" aria-label={values ? "Fields and values" : "Fields"} hidden={found.length === 0}>{found.map((o, i) => <li key={o.name} id={id + i} role="option" aria-selected={i === chosen} onMouseDown={(e) => { e.preventDefault(); put(o); }}>
			<b class="words">{o.name}</b> <span class="faint">{o.note}</span></li>)}</ul>
	</span>;
}

/** The filter: in the address when Enter is pressed. */
export function Filter({ item, value, error }: { item: string; value: string; error: Shown }) {
	const form = useRef<HTMLFormElement>(null);
	const commit = (text: string) => go(change({ filter: text }));
	return <form ref={form} class="filterbox" role="search" onSubmit={(e) => { e.preventDefault(); commit(form.current!.querySelector("input")!.value.trim()); }}>
		<Completed item={item} value={value} label="Filter" class="filter" id="completions" after=" " values placeholder={'Filter, for example status == "running" and reason =~ m/OPS-/'} commit={commit} />
		<button type="submit">Filter</button>
		{error.error && <Wrong problem={error.error} />}
	</form>;
}
