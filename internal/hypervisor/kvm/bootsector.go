package kvm

import "encoding/hex"

// bootSector is a guest of 137 bytes, by which it is seen whether guests run. It says GUEST-UP on its serial line, then a dot each
// second, and echoes what is typed; "q" ends it by its own doing and "r" resets it. The power button ends it, too. In assembler:
//
//	start:  set up segments and the stack; print "GUEST-UP"
//	        out 0x602, 0x100                 the power button sets a bit, and does not end the machine
//	loop:   hlt                              until the clock ticks, 18 times a second
//	        in 0x600; bit 8: go to button
//	        in 0x3fd; bit 0 clear: go to tick
//	        in 0x3f8; 'q': go to end; 'r': out 0xcf9, 6; else out 0x3f8
//	tick:   each sixteenth: out 0x3f8, '.'
//	        go to loop
//	button: print "BUTTON"
//	end:    print "BYE"; out 0x604, 0x2000   off
const bootSector = "31c08ed88ed0bc007cfcbe707ce85400ba0206b80001effbf4ba0006edf6c4017524bafd03eca801740dbaf803ec3c71741a3c727426ee43f7c30f0075da" +
	"baf803b02eeeebd2be7b7ce81800be847ce81200ba0406b80020eff4ebfdbaf90cb006eeebf5baf803ac84c07403eeebf8c3" +
	"47554553542d55500d0a00425554544f4e0d0a004259450d0a"

// TinyDisk is the content of a disk that a machine can start from, of 1 MiB: see bootSector for what it does.
func TinyDisk() []byte {
	disk := make([]byte, 1<<20)
	code, err := hex.DecodeString(bootSector)
	if err != nil { // it is a constant
		panic(err)
	}
	copy(disk, code)
	disk[510], disk[511] = 0x55, 0xaa // a BIOS starts nothing without
	return disk
}
