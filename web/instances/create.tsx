// An instance that is to be made: what is asked for, where it would go and why, and what would be done.
import { useState } from "preact/hooks";
import { go } from "../address";
import { Why, useWhy } from "../parts/act";
import { Empty, Part, Wrong } from "../parts/bits";
import { useReady } from "../parts/frame";
import { Answers, newKey, Outlook, useOperations, useShown } from "../parts/operate";
import { ask, type Problem, problemOf, who } from "../session";
import { line } from "../stream";

export function CreateScreen() {
	const add = useOperations("instance").find((o) => o.name === "add");
	const why = useWhy();
	const [key] = useState(newKey);
	const [name, setName] = useState("");
	const [given, setGiven] = useState<Record<string, string>>({});
	const [wrong, setWrong] = useState<Problem>();
	const [busy, setBusy] = useState(false);
	const asked = name.trim() !== "";
	const wish = { name, uuid: "", given, reason: why.text };
	const seen = useShown("instance", "add", wish, asked && who.value!.change);
	useReady(add !== undefined);
	if (!who.value!.change) return <main class="message"><h1>This account may only look</h1><p><a href="/instances" data-in>All instances</a></p></main>;
	if (!add) return <main aria-busy="true"><h1>A new instance</h1></main>;
	const send = async (e: Event) => {
		e.preventDefault();
		setBusy(true);
		setWrong(undefined);
		try {
			const out = await ask<{ job: number }>("POST", "/api/operations/instance/add", { ...wish, key });
			why.keep();
			go("/jobs/" + out.job);
		} catch (e) {
			setWrong(problemOf(e));
			setBusy(false);
		}
	};
	return <main class="create">
		<div class="head"><h1>A new instance</h1></div>
		<form class="columns" onSubmit={send}>
			<Part title="What it is to be">
				<div class="editor">
					<label class="full">Name<input name="name" required value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="web1" autocomplete="off" spellcheck={false} /></label>
					<Answers asks={add.asks} given={given} set={setGiven} />
				</div>
				<Why of={why} />
				{wrong && <Wrong problem={wrong} />}
				<button class="first" disabled={busy || line.value !== "live" || !asked || seen.stale || !seen.shown}>Create</button>
			</Part>
			<Part title="What would be done" command={asked ? seen.shown?.command : undefined}>
				{asked ? <Outlook {...seen} /> : <Empty><p>Where it would go, why there, and what would be done is shown while you type.</p></Empty>}
			</Part>
		</form>
	</main>;
}
