import { useEffect, useState } from "preact/hooks";
import { parameter } from "../address";
import { Act } from "../parts/act";
import { Ago, Command, Said, State, summary, Wrong } from "../parts/bits";
import { type Column, List } from "../parts/list";
import { ask, type Problem, problemOf, Refused, who } from "../session";
import type { Row } from "../stream";

const columns: Column[] = [
	{ title: "Job", field: "id", class: "number", show: (r) => <a href={"/jobs/" + r.id} data-in>{r.id}</a> },
	{ title: "State", field: "status", class: "short", show: (r) => <State of={r.text("status")} /> },
	{ title: "What", class: "wide", show: (r) => <span title={summary(r)}>{summary(r)}</span> },
	{ title: "Waits for", field: "wait_reason", class: "medium", show: (r) => r.text("wait_reason") && <span title={r.text("wait_reason")}>{r.text("wait_reason")}{r.value("place") ? <span class="faint"> · number {r.value("place")}</span> : null}</span> },
	{ title: "Reason", field: "reason", class: "medium faint optional", show: (r) => <Said text={r.text("reason")} /> },
	{ title: "Since", class: "time", show: (r) => <Ago at={since(r)} /> },
];

/** Since when a job is in its state. */
function since(r: Row): any {
	return r.value("end_ts") ?? (r.text("status") === "running" ? r.value("start_ts") : undefined) ?? r.value("waits_since") ?? r.value("received_ts");
}

const unfinished = 'status == "queued" or status == "waiting" or status == "canceling" or status == "running"';

interface Meant { headline: string; ids: number[]; jobs: { id: number; status: string; summary: string[]; text: string }[] }

/** Cancels all jobs that the filter lets through, after it has shown which, and only those that it has shown. */
function CancelAll({ filter }: { filter: string }) {
	const [open, setOpen] = useState(false);
	return <><button type="button" onClick={() => setOpen(true)}>Cancel all that fit…</button>{open && <CancelThese filter={filter} close={() => setOpen(false)} />}</>;
}

function CancelThese({ filter, close }: { filter: string; close: () => void }) {
	const [meant, setMeant] = useState<Meant>();
	const [wrong, setWrong] = useState<Problem>();
	const look = () => ask<Meant>("POST", "/api/jobs/cancel/preview", { filter }).then(setMeant, (e) => setWrong(problemOf(e)));
	useEffect(() => { void look(); }, [filter]);
	const n = meant?.ids.length ?? 0;
	return <Act title="Cancel these jobs?" button={n === 1 ? "Cancel 1 job" : `Cancel ${n.toLocaleString()} jobs`} close={close} run={async (reason) => {
		if (!meant || n === 0) throw new Refused(0, { code: "invalid", message: "there is no job to cancel" });
		try {
			return (await ask<{ message: string }>("POST", "/api/jobs/cancel", { filter, ids: meant.ids, reason })).message;
		} catch (e) {
			if (problemOf(e).code === "conflict") await look();
			throw e;
		}
	}}>
		{wrong && <Wrong problem={wrong} />}
		{meant ? <div class="effect" aria-live="polite">
			<p class="sentence"><b>{n.toLocaleString()} {n === 1 ? "job" : "jobs"}: {meant.headline}</b></p>
			<ul class="rows" tabIndex={0} aria-label="Jobs that would be cancelled">{meant.jobs.map((j) => <li key={j.id} data-id={String(j.id)}><span><span class="number">{j.id}</span> <span class="words">{j.summary.join(", ")}</span></span> <State of={j.status} /><div class="faint">{j.text}</div></li>)}</ul>
			{n > meant.jobs.length && <p class="faint">and {(n - meant.jobs.length).toLocaleString()} more</p>}
		</div> : !wrong && <p class="faint">Which those are is looked up…</p>}
		<Command text={`drover job cancel --filter '${filter.replaceAll("'", "'\\''")}' --dry-run`} />
	</Act>;
}

export function JobsScreen() {
	const filter = parameter("filter");
	return <List title="Jobs" view="jobs" item="job" columns={columns} name={(r) => r.id} href={(r) => "/jobs/" + r.id} actions={who.value?.change && filter !== "" ? <CancelAll filter={filter} /> : null}
		chips={[["All", ""], ["Unfinished", unfinished], ["Waiting", 'status == "queued" or status == "waiting"'], ["Running", 'status == "running"'], ["Failed", 'status == "error"'], ["Held by rules", "held_by is not missing"], ["Ended within the hour", "end_ts > -1h"]]}
		empty={<><p>No job was submitted yet. Each change is one; make one that waits ten seconds:</p><Command text="drover debug delay 10" /></>} />;
}
