import { useEffect, useRef, useState } from "preact/hooks";
import { Wrong } from "../parts/bits";
import { type Problem, problemOf, signIn } from "../session";

/** Asks for an account of the users file. */
export function SignIn({ problem }: { problem?: Problem }) {
	const [wrong, setWrong] = useState<Problem>();
	useEffect(() => setWrong(problem), [problem]);
	const [busy, setBusy] = useState(false);
	const name = useRef<HTMLInputElement>(null);
	const password = useRef<HTMLInputElement>(null);
	useEffect(() => { document.documentElement.dataset.ready = "true"; name.current?.focus(); }, []);
	const send = async (e: Event) => {
		e.preventDefault();
		setBusy(true);
		setWrong(undefined);
		try {
			await signIn(name.current!.value, password.current!.value);
		} catch (e) {
			setWrong(problemOf(e));
			setBusy(false);
			password.current?.select();
		}
	};
	return <main class="signin">
		<form onSubmit={send}>
			<h1><span class="brand">Drover</span></h1>
			<p>Sign in with an account of the controller's users file.</p>
			<label>Account<input ref={name} name="name" autocomplete="username" required /></label>
			<label>Password<input ref={password} name="password" type="password" autocomplete="current-password" required /></label>
			{wrong && <Wrong problem={wrong} />}
			<button class="first" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button>
			<p class="faint">At the controller's machine <code>drover web</code> prints an address that signs in by itself.</p>
		</form>
	</main>;
}
