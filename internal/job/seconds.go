package job

import "time"

// Seconds turns a number of seconds that a client gave into a duration: more
// than a century either way is a century, for a duration overflows after three.
func Seconds(n float64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(max(-century, min(century, n)) * float64(time.Second))
}
