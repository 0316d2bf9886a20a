// Package luxi holds our command line against Ganeti's own: both ask the same
// cluster, and what they write must be equal; and Ganeti's tools do on our
// controller what they are for. They come from Debian's packages, which are
// unpacked and not installed (`make stock-tools`, and make test where that is
// allowed); without them the test is skipped.
package luxi
