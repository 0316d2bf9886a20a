// What the consoles have in common: somebody sits down before one, and is told what becomes of it.

/** Whose turn it is to type, as the controller tells it. */
export interface Turn { number: number; who?: string; from?: string; since?: string; yours?: boolean }

/** What somebody who sits before a console is told. */
export interface Told {
	/** It is open. */
	opened(): void;
	turn?(turn: Turn): void;
	/** What was typed has not arrived, and why. */
	refused?(why: string): void;
	/** So many bytes came faster than they could be shown. */
	leftOut?(bytes: number): void;
	size?(columns: number, rows: number): void;
	/** Whether a key has the keyboard leave the console, for Tab is the guest's; and that it does: the page has it again. */
	escapes(e: KeyboardEvent): boolean;
	escaped(): void;
	/** It is over; code and reason are those of the WebSocket. */
	ended(code: number, reason: string): void;
}

/** A console that somebody sits before. */
export interface Seat {
	focus(): void;
	/** Leaves it, and takes away all that was made for it. */
	leave(): void;
	/** Takes the keyboard over from whoever has it. */
	take?(): void;
	/** Presses the keys that no browser lets a page have. */
	ctrlAltDel?(): void;
	/** Types a text as keys, and tells when it is done. What cannot be typed is told by an error, and then nothing is. */
	type?(text: string): Promise<void>;
	/** Has what is shown told to screen readers, line by line. */
	readAloud?(on: boolean): void;
}

/** How somebody sits down: at a WebSocket, in an element. The module of each kind of console has such a function. */
export type SitDown = (into: HTMLElement, url: string, told: Told) => Seat;
