// The serial line of an instance, in a terminal. This module is loaded when somebody sits down before one: it is larger than the rest of the page.
import { Terminal } from "@xterm/xterm";
import styles from "@xterm/xterm/css/xterm.css" with { type: "text" };
import type { SitDown } from "./seat";

/** How many bytes are shown between two times that the controller is told how many: it sends 512 KiB ahead of that, and no more. */
const tellEvery = 64 << 10;
/** How many bytes of what is typed or pasted go in one message. */
const atOnce = 32 << 10;

const dark = {
	background: "#131819", foreground: "#e6ecee", cursor: "#5fd0c5", cursorAccent: "#131819", selectionBackground: "#2f5552",
	black: "#2c3539", red: "#ff8a80", green: "#6fd08f", yellow: "#f1b65c", blue: "#84b6ff", magenta: "#e0a3ff", cyan: "#5fd0c5", white: "#d5dde0",
	brightBlack: "#9fb0b7", brightRed: "#ffb4ad", brightGreen: "#9be8b4", brightYellow: "#ffd596", brightBlue: "#b3d2ff", brightMagenta: "#efcaff", brightCyan: "#98e8df", brightWhite: "#ffffff",
};
const light = {
	background: "#ffffff", foreground: "#152024", cursor: "#0a6b66", cursorAccent: "#ffffff", selectionBackground: "#bfe3e0",
	black: "#152024", red: "#b3261e", green: "#17693b", yellow: "#8a5300", blue: "#1756a9", magenta: "#8a2a9b", cyan: "#0a6b66", white: "#55646b",
	brightBlack: "#55646b", brightRed: "#c8372e", brightGreen: "#1c7a45", brightYellow: "#9c5f00", brightBlue: "#1f66c4", brightMagenta: "#9d3bb0", brightCyan: "#0c7a74", brightWhite: "#152024",
};

/** Sheets of styles in place of elements of styles, which the policy of the page forbids. */
class Sheets {
	private readonly all = new Set<CSSStyleSheet>();

	add(text = ""): CSSStyleSheet {
		const sheet = new CSSStyleSheet();
		sheet.replaceSync(text);
		this.all.add(sheet);
		document.adoptedStyleSheets.push(sheet);
		return sheet;
	}

	/** Runs what makes elements of styles, and has each stand for a sheet. */
	during(run: () => void): void {
		const make = document.createElement.bind(document);
		document.createElement = ((name: string) => {
			if (name !== "style") return make(name);
			const sheet = this.add(), stand = make("span");
			stand.hidden = true;
			Object.defineProperty(stand, "textContent", { set: (text: string) => sheet.replaceSync(text) });
			return stand;
		}) as typeof document.createElement;
		try {
			run();
		} finally {
			delete (document as any).createElement; // the document's own is behind it
		}
	}

	drop(): void { document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => !this.all.has(s)); }
}

async function copy(text: string): Promise<void> {
	await navigator.clipboard?.writeText(text).catch(() => undefined); // no right to: the menu of the browser copies
}

export const sitDown: SitDown = (into, url, told) => {
	const sheets = new Sheets();
	sheets.add(styles);
	const scheme = matchMedia("(prefers-color-scheme: dark)");
	const term = new Terminal({
		theme: scheme.matches ? dark : light, minimumContrastRatio: 4.5, scrollback: 10_000, fontSize: 14,
		fontFamily: 'ui-monospace, "Cascadia Code", "DejaVu Sans Mono", monospace', cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
		linkHandler: { activate: () => undefined }, // what a guest prints leads nowhere
	});
	sheets.during(() => term.open(into));
	const core = (term as any)._core;
	core._renderService._renderer.value._rowFactory._addStyle = (e: HTMLElement, style: string) => { e.style.cssText += style; }; // in place of an attribute, which is forbidden, too

	// As many columns and rows as there is room for, beside the scroll bar and the edges (app.css).
	const fit = () => {
		const cell = core._renderService.dimensions.css.cell, bar = 14, edges = 12;
		if (!cell.width || !into.clientWidth) return;
		const columns = Math.max(Math.floor((into.clientWidth - bar - edges) / cell.width), 2), rows = Math.max(Math.floor((into.clientHeight - edges) / cell.height), 1);
		if (columns !== term.cols || rows !== term.rows) term.resize(columns, rows);
		told.size?.(term.cols, term.rows);
	};
	const sized = new ResizeObserver(fit);
	sized.observe(into);
	const recolour = () => { term.options.theme = scheme.matches ? dark : light; };
	scheme.addEventListener("change", recolour);

	const socket = new WebSocket(url, ["drover-console"]);
	socket.binaryType = "arraybuffer";
	const say = (what: object) => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(what)); };
	let shown = 0, toldShown = 0, mine = false;
	socket.onopen = () => told.opened();
	socket.onmessage = (e) => {
		if (typeof e.data === "string") {
			const note = JSON.parse(e.data);
			if (note.turn) {
				mine = note.turn.yours === true;
				told.turn?.(note.turn);
			}
			if (note.refused) told.refused?.(note.refused);
			if (note.left_out) told.leftOut?.(note.left_out);
			return;
		}
		const bytes = new Uint8Array(e.data);
		term.write(bytes, () => {
			shown += bytes.length;
			if (shown - toldShown < tellEvery) return;
			toldShown = shown;
			say({ shown });
		});
	};
	socket.onclose = (e) => {
		term.options.disableStdin = true;
		term.options.cursorBlink = false;
		told.ended(e.code, e.reason);
	};

	// What a person types goes to the guest; what a terminal answers by itself to what is printed, where the person has the keyboard: one who looks would take it so.
	let byHand = false;
	core.coreService.onUserInput(() => { byHand = true; });
	const type = (bytes: Uint8Array<ArrayBuffer>) => {
		if (socket.readyState !== WebSocket.OPEN) return;
		for (let at = 0; at < bytes.length; at += atOnce) socket.send(bytes.subarray(at, at + atOnce));
	};
	term.onData((text) => {
		const typed = byHand;
		byHand = false;
		if (typed || mine) type(new TextEncoder().encode(text));
	});
	term.onBinary((text) => { if (mine) type(Uint8Array.from(text, (c) => c.charCodeAt(0))); });
	term.attachCustomKeyEventHandler((e) => {
		if (told.escapes(e)) {
			e.preventDefault();
			if (e.type === "keydown") told.escaped();
			return false;
		}
		if (e.ctrlKey && (e.shiftKey && e.code === "KeyC" || e.code === "Insert")) {
			e.preventDefault();
			if (e.type === "keydown" && term.hasSelection()) void copy(term.getSelection());
			return false;
		}
		return true;
	});
	fit();
	return {
		focus: () => term.focus(),
		take: () => say({ take: true }),
		readAloud: (on) => { term.options.screenReaderMode = on; },
		leave: () => {
			socket.onclose = null;
			socket.close(1000);
			sized.disconnect();
			scheme.removeEventListener("change", recolour);
			term.dispose();
			sheets.drop();
		},
	};
};
