// Who is signed in, and requests.
import { signal } from "@preact/signals";

export interface Who { account: string; change: boolean; cluster: string; version: string; now: string }
export interface Problem { code: string; message: string; hint?: string; field?: string }

/** Who is signed in: undefined while that is not known, null for nobody. */
export const who = signal<Who | null | undefined>(undefined);

export class Refused extends Error {
	constructor(readonly status: number, readonly problem: Problem) { super(problem.message); }
}

/** Asks the controller. What it refuses is thrown as it says it. */
export async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
	let answer: Response;
	try {
		answer = await fetch(path, { method, signal, headers: body === undefined ? {} : { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });
	} catch (e) {
		if (signal?.aborted) throw e;
		throw new Refused(0, { code: "unavailable", message: "the controller does not answer", hint: "what is shown may be old; the page tries again by itself" });
	}
	const out = await answer.json().catch(() => undefined);
	if (answer.ok && out !== undefined) return out as T;
	if (answer.status === 401 && path !== "/session") who.value = null;
	throw new Refused(answer.status, out?.error ?? { code: "internal", message: out?.explain ?? "the answer cannot be read" });
}

export const problemOf = (e: unknown): Problem => e instanceof Refused ? e.problem : { code: "internal", message: String(e) };

/** Finds out who is signed in; a link's code signs in, and is taken out of the address at once. */
export async function begin(): Promise<Problem | undefined> {
	const code = new URLSearchParams(location.hash.slice(1)).get("code");
	if (code) {
		history.replaceState(null, "", location.pathname + location.search);
		try {
			who.value = await ask<Who>("POST", "/session", { code });
			return undefined;
		} catch (e) {
			who.value = null;
			return problemOf(e);
		}
	}
	try {
		who.value = await ask<Who>("GET", "/session");
	} catch (e) {
		if (e instanceof Refused && e.status === 0) {
			setTimeout(begin, 2000);
			return e.problem;
		}
		who.value = null;
	}
	return undefined;
}

export async function signIn(name: string, password: string): Promise<void> {
	who.value = await ask<Who>("POST", "/session", { name, password });
}

/** Ends the session. It throws when that is not known to have come about. */
export async function signOut(): Promise<void> {
	try {
		await ask("DELETE", "/session");
	} catch (e) {
		if (!(e instanceof Refused && e.status === 401)) throw e; // the session is still there: who comes next would have it
	}
	who.value = null;
}
