// What is done: each asks why, and says what came of it.
import type { ComponentChildren, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Problem, problemOf } from "../session";
import { line } from "../stream";
import { Wrong } from "./bits";

/** The last reason, offered again for an hour. */
let last = { text: "", at: 0 };

/** A reason that somebody types. */
export function useWhy() {
	const [text, set] = useState(Date.now() - last.at < 3_600_000 ? last.text : "");
	return { text, set, keep: () => { last = { text, at: Date.now() }; } };
}

/** The field for it. */
export function Why({ of, field }: { of: ReturnType<typeof useWhy>; field?: Ref<HTMLInputElement> }) {
	return <label>Why? It is kept with what is done.<input class="reason" required value={of.text} onInput={(e) => of.set(e.currentTarget.value)} placeholder="OPS-123: switch is replaced" ref={field} /></label>;
}

interface Wish {
	title: string;
	/** What the button says that does it. */
	button: string;
	/** What is done, with the reason that was typed; it returns what came of it. */
	run: (reason: string) => Promise<string>;
	close: () => void;
	children?: ComponentChildren;
}

/** A dialog in which somebody says why, before something is done. */
export function Act({ title, button, run, close, children }: Wish) {
	const box = useRef<HTMLDialogElement>(null);
	const why = useWhy();
	const [wrong, setWrong] = useState<Problem>();
	const [done, setDone] = useState("");
	const [busy, setBusy] = useState(false);
	const field = useRef<HTMLInputElement>(null);
	useEffect(() => { box.current!.showModal(); field.current?.focus(); }, []);
	const send = async (e: Event) => {
		e.preventDefault();
		setBusy(true);
		setWrong(undefined);
		try {
			setDone(await run(why.text));
			why.keep();
		} catch (e) {
			setWrong(problemOf(e));
		}
		setBusy(false);
	};
	return <dialog ref={box} onClose={close} aria-label={title}>
		<form method="dialog" onSubmit={done ? undefined : send}>
			<h2>{title}</h2>
			{children}
			{done ? <p role="status">{done}</p> : <Why of={why} field={field} />}
			{wrong && <Wrong problem={wrong} />}
			<div class="buttons">
				<button type="button" onClick={() => box.current!.close()}>{done ? "Close" : "Leave it"}</button>
				{!done && <button class="first" disabled={busy || line.value !== "live"}>{button}</button>}
			</div>
		</form>
	</dialog>;
}
