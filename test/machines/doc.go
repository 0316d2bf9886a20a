// Package machines runs the program with real virtual machines: guests of QEMU that print, listen and end themselves.
package machines
