// The address is the state: which screen, and its filter. Whoever sends it on shows the same.
import { signal } from "@preact/signals";

export const address = signal(new URL(location.href));

addEventListener("popstate", () => { address.value = new URL(location.href); });

/** Goes to a path of the page. While somebody types, the last address is replaced. */
export function go(to: string, replace = false): void {
	if (replace) history.replaceState(null, "", to);
	else history.pushState(null, "", to);
	address.value = new URL(location.href);
	if (!replace) scrollTo(0, 0);
}

/** An address with parameters; those that are empty are left out. */
export function to(path: string, parameters: Record<string, string> = {}): string {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(parameters)) if (value !== "") q.set(name, value);
	const text = q.toString();
	return text === "" ? path : path + "?" + text;
}

/** The address of this screen with some parameters changed, or left out where they are empty. */
export function change(parameters: Record<string, string>): string {
	return to(address.value.pathname, { ...Object.fromEntries(address.value.searchParams), ...parameters });
}

export const parameter = (name: string): string => address.value.searchParams.get(name) ?? "";

/** Links within the page change the address alone. */
export function followLinks(): void {
	addEventListener("click", (e) => {
		if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
		const a = (e.target as Element).closest?.("a[data-in]"); // those in pictures, too
		if (!a || a.hasAttribute("target") || a.hasAttribute("download")) return;
		const at = new URL(a.getAttribute("href") ?? "", location.href);
		if (at.origin !== location.origin) return;
		e.preventDefault();
		go(at.pathname + at.search + at.hash);
	});
}
