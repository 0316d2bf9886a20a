package events

// Unfinished is how many jobs the outbox, which has stopped, takes for unfinished.
func (o *Outbox) Unfinished() int { return len(o.told) }
