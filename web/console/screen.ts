// The screen of an instance, which QEMU shows in the protocol RFB. This module is loaded when somebody sits down before one.
import RFB from "@novnc/novnc";
import { initLogging } from "@novnc/novnc/core/util/logging.js";
import type { SitDown } from "./seat";

initLogging("none"); // what goes wrong is said on the page

const controlLeft = 0xffe3, controlRight = 0xffe4, shiftLeft = 0xffe1;

/** The keys of a US keyboard, by what they are called: what each writes, and with Shift. */
const keys: Record<string, string> = {
	Backquote: "`~", Minus: "-_", Equal: "=+", BracketLeft: "[{", BracketRight: "]}", Backslash: "\\|", Semicolon: ";:", Quote: "'\"", Comma: ",<", Period: ".>", Slash: "/?", Space: " ", Tab: "\t", Enter: "\n",
	...Object.fromEntries([...")!@#$%^&*("].map((shifted, digit) => ["Digit" + digit, digit + shifted])),
	...Object.fromEntries([..."abcdefghijklmnopqrstuvwxyz"].map((letter) => ["Key" + letter.toUpperCase(), letter + letter.toUpperCase()])),
};
const places = new Map(Object.entries(keys).flatMap(([code, writes]) => [...writes].map((letter, shift) => [letter, { code, shift: shift === 1 }] as const)));
const named: Record<string, number> = { "\n": 0xff0d, "\t": 0xff09 };

/** How long it rests between two letters: a machine loses keys that come faster than it reads them. */
const rest = 30;

export const sitDown: SitDown = (into, url, told) => {
	const socket = new WebSocket(url, ["binary"]);
	const rfb = new RFB(into, socket, { shared: true });
	rfb.scaleViewport = true;
	rfb.background = "transparent";
	const canvas = into.querySelector("canvas")!;
	canvas.tabIndex = 0;
	canvas.setAttribute("role", "application");
	canvas.setAttribute("aria-label", "The screen, as a picture; keys go to the machine, and Ctrl-] leaves it");
	rfb.addEventListener("connect", () => told.opened());
	const ended = (e: CloseEvent) => told.ended(e.code, e.reason);
	socket.addEventListener("close", ended);
	const key = (e: KeyboardEvent) => {
		if (!told.escapes(e)) return;
		e.preventDefault();
		e.stopPropagation();
		for (const [keysym, code] of [[controlLeft, "ControlLeft"], [controlRight, "ControlRight"]] as const) rfb.sendKey(keysym, code, false); // else the machine would have it held down
		told.escaped();
	};
	into.addEventListener("keydown", key, true);
	let left = false;
	const type = async (text: string) => {
		const missing = [...new Set([...text].filter((letter) => !places.has(letter)))];
		if (missing.length > 0) throw new Error("a US keyboard has no key for " + missing.join(" "));
		for (const letter of text) {
			if (left) return;
			const { code, shift } = places.get(letter)!;
			if (shift) rfb.sendKey(shiftLeft, "ShiftLeft", true);
			rfb.sendKey(named[letter] ?? letter.codePointAt(0)!, code);
			if (shift) rfb.sendKey(shiftLeft, "ShiftLeft", false);
			await new Promise((on) => setTimeout(on, rest));
		}
	};
	return {
		type,
		focus: () => rfb.focus(),
		ctrlAltDel: () => rfb.sendCtrlAltDel(),
		leave: () => {
			left = true;
			socket.removeEventListener("close", ended);
			into.removeEventListener("keydown", key, true);
			rfb.disconnect();
		},
	};
};
