package yaql

// Touch makes c look as if it changed the library, so that all calls in it are resolved by name when they run.
func (c *Context) Touch() { c.untouched = false }
