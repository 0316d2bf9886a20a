// A cell of any item as people read it; what it says comes from the controller.
import type { Field, Row } from "../stream";
import { Ago, cellText, missing, moment, Said, size, State } from "./bits";

/** Where the values of fields lead: of some items, or of all. */
const places: Record<string, string> = {
	"job.id": "/jobs/", job: "/jobs/", "instance.name": "/instances/", instance: "/instances/", "node.name": "/nodes/", pnode: "/nodes/", "export.node": "/nodes/",
	"group.name": "/groups/", "node.group": "/groups/", "network.name": "/networks/",
	"event.id": "/audit/", "deployment.id": "/deployments/", deployment: "/deployments/", "server.id": "/servers/", "environment.name": "/environments/", environment: "/environments/",
};

/** What a cell of an item says. */
export function AnyCell({ item, f, r, i }: { item: string; f: Field; r: Row; i: number }) {
	const [status, v] = r.cells[i] ?? [1, null];
	if (status !== 0) return <span class="faint">{missing(r, f.name) || "–"}</span>;
	if (v === null || v === "") return null;
	if ((f.kind === "timestamp" || /_(ts|since)$/.test(f.name)) && moment(v) !== undefined) return <Ago at={v} />;
	const place = places[item + "." + f.name] ?? places[f.name];
	if (place && typeof v !== "object") return <a href={place + encodeURIComponent(String(v))} data-in>{String(v)}</a>;
	if (f.kind === "unit") return <>{size(v)}</>;
	if (f.kind === "bool") return <>{v ? "yes" : "no"}</>;
	if (typeof v === "string" && /^(status|state|job_status)$/.test(f.name)) return <State of={v} />;
	if (typeof v === "string" && f.name === "reason") return <Said text={v} />;
	const text = cellText(r, f.name);
	return <span title={text}>{text}</span>;
}
