// What the pages of nodes and instances have in common.
import { useView, type Row } from "../stream";
import { Ago, cellText, Empty, missing, Part, Said, State, Wrong } from "./bits";
import { Trail } from "./trail";

/** Facts of a row: what each is called, and its field. */
export function Facts({ r, of }: { r: Row; of: [string, string, ((v: any) => any)?][] }) {
	return <dl class="facts">{of.map(([name, field, show]) => {
		const v = r.value(field);
		return [<dt key={field}>{name}</dt>, <dd key={field + "="}>{v === undefined ? <span class="faint">{missing(r, field) || "–"}</span> : show ? show(v) : cellText(r, field) || <span class="faint">–</span>}</dd>];
	})}</dl>;
}

/** Who changed it last, and why. */
export function LastChange({ r }: { r: Row }) {
	const job = r.value("last_change_job");
	return <Part title="Why it is so">
		{job === undefined ? <Empty><p>No job has changed it since it is remembered.</p></Empty> : <>
			<p>Changed last <Ago at={r.value("last_change")} /> by <a href={"/jobs/" + job} data-in>job {job}</a></p>
			<Trail hops={r.value("last_change_trail")} /></>}
	</Part>;
}

/** The jobs that are about it and have not ended. */
export function JobsAbout({ name, view = "object.jobs" }: { name: string; view?: string }) {
	const { known, rows, error, command } = useView({ view, id: name });
	return <Part title="Jobs about it that have not ended" command={command}>
		{error && <Wrong problem={error} />}
		{known && rows.length === 0 && <Empty><p>There is none.</p></Empty>}
		<ul class="rows">{rows.map((r) => <li key={r.id} data-id={r.text("job")}><a href={"/jobs/" + r.text("job")} data-in><span class="number">{r.text("job")}</span> <span class="words">{r.text("summary")}</span></a> <State of={r.text("job_status")} />
			{r.text("reason") && <div class="reason"><Said text={r.text("reason")} /></div>}</li>)}</ul>
	</Part>;
}
