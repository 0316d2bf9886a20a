import { effect } from "@preact/signals";
import { type ComponentType, render } from "preact";
import { useState, useEffect } from "preact/hooks";
import { address, followLinks } from "./address";
import { Frame } from "./parts/frame";
import { begin, type Problem, who } from "./session";
import { connect, disconnect } from "./stream";
import { ScreenScreen, SerialScreen } from "./console/console";
import { AuditScreen, EventScreen } from "./audit/audit";
import { CompareScreen } from "./deployments/compare";
import { DeploymentScreen, DeploymentsScreen } from "./deployments/deployments";
import { EnvironmentScreen } from "./deployments/environment";
import { GroupScreen, GroupsScreen } from "./groups/groups";
import { CreateScreen } from "./instances/create";
import { InstanceScreen, InstancesScreen } from "./instances/instances";
import { JobScreen } from "./job/job";
import { JobsScreen } from "./jobs/jobs";
import { NetworkScreen, NetworksScreen } from "./networks/networks";
import { NodeScreen, NodesScreen } from "./nodes/nodes";
import { NowScreen } from "./now/now";
import { QueryScreen } from "./query/query";
import { RulesScreen } from "./rules/rules";
import { ServerScreen, ServersScreen } from "./servers/servers";
import { SignIn } from "./signin/signin";

/** The screens, by the beginning of their addresses; what follows is what they are about, and behind that may be a part of it. */
const screens: Record<string, { all?: ComponentType; one?: ComponentType<{ id: string }>; parts?: Record<string, ComponentType<{ id: string }>> }> = {
	"": { all: NowScreen },
	jobs: { all: JobsScreen, one: JobScreen },
	nodes: { all: NodesScreen, one: NodeScreen },
	groups: { all: GroupsScreen, one: GroupScreen },
	networks: { all: NetworksScreen, one: NetworkScreen },
	instances: { all: InstancesScreen, one: InstanceScreen, parts: { console: SerialScreen, screen: ScreenScreen } },
	create: { all: CreateScreen },
	rules: { all: RulesScreen },
	deployments: { all: DeploymentsScreen, one: DeploymentScreen },
	environments: { one: EnvironmentScreen },
	compare: { one: CompareScreen },
	servers: { all: ServersScreen, one: ServerScreen },
	query: { all: QueryScreen },
	audit: { all: AuditScreen, one: EventScreen },
};

function Screen() {
	const [, first = "", ...rest] = address.value.pathname.split("/");
	const id = decodeURIComponent(rest.join("/"));
	const found = screens[first];
	const Part = found?.parts?.[rest[1] ?? ""];
	if (Part && rest.length === 2) return <Part id={decodeURIComponent(rest[0])} />;
	if (found?.one && id !== "") return <found.one id={id} key={id} />;
	if (found?.all && id === "") return <found.all />;
	return <main class="message"><h1>There is no such screen</h1><p>Nothing is at <code>{address.value.pathname}</code>.</p><p><a href="/" data-in>See what happens now</a></p></main>;
}

function Page() {
	const [problem, setProblem] = useState<Problem>();
	useEffect(() => { void begin().then(setProblem); }, []);
	if (who.value === undefined) return <main class="message" aria-busy="true"><p>{problem ? problem.message + "; it is tried again" : "…"}</p></main>;
	if (who.value === null) return <SignIn problem={problem} />;
	return <Frame><Screen /></Frame>;
}

effect(() => { if (who.value) connect(); else disconnect(); });
followLinks();
render(<Page />, document.getElementById("page")!);
