// Any question about anything: which item, which fields, which of them, in which order or groups.
import { useEffect, useState } from "preact/hooks";
import { change, go, parameter, to } from "../address";
import { Command, Empty, Wrong } from "../parts/bits";
import { AnyCell } from "../parts/cell";
import { useReady } from "../parts/frame";
import { type Column, Completed, fields as fieldsOf, Filter, mostRows, Rows } from "../parts/list";
import { ask, type Problem, problemOf } from "../session";
import { type Ask, type Field, useGrowing, useView } from "../stream";

export interface Catalogue { items: { item: string; doc: string; fields: string; sort: string }[]; verbs: Record<string, string> }

/** What there is to ask about, and what the words of events mean. */
export function useCatalogue(): Catalogue | undefined {
	const [c, setC] = useState<Catalogue>();
	useEffect(() => { void ask<Catalogue>("GET", "/api/catalogue").then(setC, () => undefined); }, []);
	return c;
}

/** A list of names as addresses have it. */
const list = (text: string): string => text.split(/[,\s]+/).filter((w) => w !== "").join(",");

export function QueryScreen() {
	const catalogue = useCatalogue();
	const item = parameter("item") || "job", fields = parameter("fields"), filter = parameter("filter"), sort = parameter("sort"), by = parameter("by"), figures = parameter("figures");
	const [limit, setLimit] = useState(200);
	const groups = by !== "" || figures !== "";
	const wish: Ask = { view: "query", item, filter, sort, limit, ...(groups ? { by, figures } : { fields }) };
	const shown = useGrowing(wish);
	const counted = useView({ view: "query", item, filter, figures: "count" });
	useReady(shown.known);
	const all: number = groups ? shown.rows.length : counted.rows[0]?.value("count") ?? shown.rows.length;
	const usual = catalogue?.items.find((t) => t.item === item);
	const columns: Column[] = shown.fields.map((f, i) => ({ title: f.name, doc: f.doc || f.title, field: f.name, show: (r) => <AnyCell item={item} f={f} r={r} i={i} /> }));
	const address = to("", { item, fields, filter, sort });
	const put = (name: string) => (text: string) => go(change({ [name]: list(text), ...(name === "by" || name === "figures" ? { sort: "" } : {}) }));
	return <main class="list query">
		<div class="head"><h1>Query</h1><span class="faint" role="status">{shown.known && !shown.error ? groups ? all.toLocaleString() + " groups" : all.toLocaleString() + " fit" : ""}</span>
			<span class="buttons">{!groups && <a class="button" href={"/api/query.csv" + address} download>CSV</a>}<Command text={location.href} name="Link" /></span>
			<Command text={shown.command} quiet /></div>
		<div class="asks">
			<label>About<select value={item} onChange={(e) => go(to("/query", { item: e.currentTarget.value }))}>{(catalogue?.items ?? [{ item, doc: "" }]).map((t) => <option key={t.item} title={t.doc}>{t.item}</option>)}</select></label>
			<label>Fields<Completed item={item} value={groups ? "" : fields} label="Fields" id="of-fields" after="," placeholder={usual?.fields ?? ""} commit={(text) => go(change({ fields: list(text), by: "", figures: "" }))} /></label>
			<label>In groups by<Completed item={item} value={by} label="In groups by" id="of-by" after="," placeholder="status" commit={put("by")} /></label>
			<label>Figures<Completed item={item} value={figures} label="Figures" id="of-figures" after=")," placeholder="count,max(mtime)" commit={put("figures")} /></label>
		</div>
		<Filter item={item} value={filter} error={shown} />
		<div class="panels"><AllFields item={item} chosen={list(fields || usual?.fields || "").split(",")} />{!groups && <Carried key={address} address={address} />}</div>
		{columns.length > 0 && <Rows wide w={{ title: "Answer", columns, name: (r) => r.id }} shown={shown} all={all} more={() => shown.rows.length >= limit && limit < mostRows && setLimit(Math.min(limit * 2, mostRows))} />}
		{shown.known && !shown.error && shown.rows.length === 0 && <Empty>{filter ? <><p>Nothing fits the filter.</p><p><a href={change({ filter: "" })} data-in>Show all</a></p></> : <p>There is none{usual ? ": " + usual.doc : ""}. <a href="/query?item=node" data-in>Ask about nodes</a>, of which there is always one.</p>}</Empty>}
		{shown.rows.length >= mostRows && <p class="faint">The first {mostRows.toLocaleString()} are shown; a filter brings others up, and CSV has all.</p>}
	</main>;
}

/** All fields that there are, with what each means, to choose from. */
function AllFields({ item, chosen }: { item: string; chosen: string[] }) {
	const [open, setOpen] = useState(false);
	const [all, setAll] = useState<Field[]>([]);
	useEffect(() => { if (open) void fieldsOf(item).then(setAll); }, [open, item]);
	const turn = (f: Field, on: boolean) => go(change({ fields: (on ? [...chosen, f.name] : chosen.filter((c) => c !== f.name)).filter((c) => c !== "").join(","), by: "", figures: "" }), true);
	return <details onToggle={(e) => setOpen(e.currentTarget.open)}><summary>All fields of {item}, and what they mean</summary>
		{open && <ul class="fields" tabIndex={0} aria-label={"Fields of " + item}>{all.map((f) => <li key={f.name}><label><input type="checkbox" checked={chosen.includes(f.name)} onChange={(e) => turn(f, e.currentTarget.checked)} /> <b>{f.name}</b></label> <span class="faint">{f.kind} · {f.doc}</span></li>)}</ul>}
	</details>;
}

/** How the query is carried out. */
function Carried({ address }: { address: string }) {
	const [seen, setSeen] = useState<{ text?: string; problem?: Problem }>({});
	const look = (open: boolean) => { if (open) void ask<{ text: string }>("GET", "/api/explain" + address).then(setSeen, (e) => setSeen({ problem: problemOf(e) })); };
	return <details onToggle={(e) => look(e.currentTarget.open)}><summary>How it is carried out</summary>
		{seen.problem ? <Wrong problem={seen.problem} /> : <pre>{seen.text ?? "…"}</pre>}
	</details>;
}
