package tagsync

import "context"

// ForgetPast forgets the servers that are long gone, as is done from time to time.
func ForgetPast(ctx context.Context, e *Engine) error { return e.forgetPast(ctx) }
