import { Ago, Command, Said, State, summary } from "../parts/bits";
import { type Column, List } from "../parts/list";
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

export function JobsScreen() {
	return <List title="Jobs" view="jobs" item="job" columns={columns} name={(r) => r.id} href={(r) => "/jobs/" + r.id}
		chips={[["All", ""], ["Unfinished", unfinished], ["Waiting", 'status == "queued" or status == "waiting"'], ["Running", 'status == "running"'], ["Failed", 'status == "error"'], ["Held by rules", "held_by is not missing"], ["Ended within the hour", "end_ts > -1h"]]}
		empty={<><p>No job was submitted yet. Each change is one; make one that waits ten seconds:</p><Command text="drover debug delay 10" /></>} />;
}
