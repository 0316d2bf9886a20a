import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { address, go } from "../address";
import { signOut, who } from "../session";
import { age, line, newer, refusal } from "../stream";
import { lasting } from "./bits";

const places = [["/", "Now", "n"], ["/jobs", "Jobs", "j"], ["/instances", "Instances", "i"], ["/nodes", "Nodes", "o"], ["/rules", "Rules", "r"], ["/deployments", "Deployments", "d"], ["/servers", "Servers", "s"], ["/query", "Query", "q"], ["/audit", "Audit", "a"]] as const;

/** Screens that are no place of their own, and the place that they belong to. */
const within: Record<string, string> = { "/environments": "/deployments", "/compare": "/deployments", "/create": "/instances", "/groups": "/nodes", "/networks": "/nodes" };

/** What is around every screen: where one can go, who is signed in, and whether what is shown is what is. */
export function Frame({ children }: { children: ComponentChildren }) {
	const first = "/" + address.value.pathname.split("/")[1], at = within[first] ?? first;
	const me = who.value!;
	const [stays, setStays] = useState(false);
	useKeys();
	useEffect(() => { document.title = (places.find(([path]) => path === at)?.[1] ?? "Drover") + " · " + me.cluster; document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); }, [at]);
	return <>
		<a class="skip" href="#screen">To what is shown</a>
		<header class="top">
			<a class="brand" href="/" data-in>Drover</a>
			<nav aria-label="Screens">{places.map(([path, name]) => <a key={path} href={path} data-in aria-current={path === at ? "page" : undefined}>{name}</a>)}</nav>
			<span class="where" title={"version " + me.version}>{me.cluster}</span>
			<Connection />
			<span class="me"><span title={me.change ? "may look and change" : "may look"}>{me.account}{me.change ? "" : " (read only)"}</span><button type="button" onClick={() => signOut().then(() => setStays(false), () => setStays(true))}>Sign out</button></span>
		</header>
		{stays && <div class="bar lost" role="alert">You are not signed out: the controller does not answer. Try it again before you leave.</div>}
		{line.value === "lost" && <div class="bar lost" role="alert">The connection is lost. What is shown is {lasting(age.value)} old; it is tried again by itself.{refusal.value && " The controller said: " + refusal.value + "."}</div>}
		{newer.value && <div class="bar" role="status">The controller has a newer version of this page. <button type="button" onClick={() => location.reload()}>Load it</button></div>}
		<div id="screen">{children}</div>
	</>;
}

function Connection() {
	const words = { opening: "connecting", live: "live", lost: "lost" };
	return <span class={"line l-" + line.value} role="status">{words[line.value]}</span>;
}

/** g and a letter goes to a screen, / to the filter. */
function useKeys(): void {
	useEffect(() => {
		let waits = 0;
		const key = (e: KeyboardEvent) => {
			if (e.ctrlKey || e.metaKey || e.altKey || (e.target as Element).matches?.("input, textarea, select, [contenteditable]")) return;
			if (e.key === "g") { waits = Date.now(); return; }
			const to = places.find(([, , k]) => k === e.key);
			if (to && Date.now() - waits < 1500) go(to[0]);
			if (e.key === "/") {
				const box = document.querySelector<HTMLInputElement>("input.filter");
				if (box) { e.preventDefault(); box.focus(); }
			}
			waits = 0;
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	}, []);
}

/** Says that the first data are shown. */
export function useReady(known: boolean): void {
	useEffect(() => { if (known) document.documentElement.dataset.ready = "true"; }, [known]);
}
