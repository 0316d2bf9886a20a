// Package luxi holds our command line against Ganeti's own: both ask the same
// cluster, and what they write must be equal. Ganeti's tools come from Debian's
// packages, which are unpacked and not installed. `make stock-tools` runs it.
package luxi
