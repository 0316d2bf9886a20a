package job

import "fmt"

// Damage is the error of a stored job that cannot be read. It concerns that job
// alone: whoever reads many goes on to the next.
type Damage struct {
	ID  ID
	Err error
}

// Error names the job and says why.
func (d *Damage) Error() string {
	return fmt.Sprintf("the stored job %d cannot be read: %v", d.ID, d.Err)
}

// Unwrap returns why.
func (d *Damage) Unwrap() error { return d.Err }
