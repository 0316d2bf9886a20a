// The screen of an instance, which QEMU shows in the protocol RFB. This module is loaded when somebody sits down before one.
import RFB from "@novnc/novnc";
import { initLogging } from "@novnc/novnc/core/util/logging.js";
import type { SitDown } from "./seat";

initLogging("none"); // what goes wrong is said on the page

const controlLeft = 0xffe3, controlRight = 0xffe4;

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
	return {
		focus: () => rfb.focus(),
		ctrlAltDel: () => rfb.sendCtrlAltDel(),
		leave: () => {
			socket.removeEventListener("close", ended);
			into.removeEventListener("keydown", key, true);
			rfb.disconnect();
		},
	};
};
