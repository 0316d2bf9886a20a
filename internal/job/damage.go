package job

import "fmt"

// DamageError is the error of a stored job that cannot be read. It concerns that job
// alone: whoever reads many goes on to the next.
type DamageError struct {
	ID  ID
	Err error
}

// Error names the job and says why.
func (d *DamageError) Error() string {
	return fmt.Sprintf("the stored job %d cannot be read: %v", d.ID, d.Err)
}

// Unwrap returns why.
func (d *DamageError) Unwrap() error { return d.Err }
