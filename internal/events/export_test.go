package events

// Remembered is of how many jobs the outbox, which has stopped, knows what it told.
func (o *Outbox) Remembered() int { return len(o.told) }
